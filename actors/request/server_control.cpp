#include "actors/request/server_control.hpp"

#include <algorithm>
#include <utility>

#include "protocol/control_request.hpp"
#include "protocol/json_writer.hpp"

namespace skein::request {
namespace {

using protocol::json_writer;

double seconds_between(std::int64_t begin, std::int64_t end) {
  return std::chrono::duration<double>(duration(end - begin)).count();
}

double speed(std::uint64_t tokens, std::int64_t begin, std::int64_t end) {
  return begin > 0 && end > begin ? static_cast<double>(tokens) / seconds_between(begin, end) : 0;
}

/// The device tells nothing of a prompt until its first token is drawn: then all of it has been fed.
void write_request(json_writer& out, const running_request& r) {
  const auto& what = r.what();
  const std::int64_t admitted = r.admitted_at, first = r.first_token_at, last = r.last_token_at;
  const std::uint64_t prompt = r.prompt_tokens, cached = r.cached_tokens, generated = r.generated_tokens;
  const std::uint64_t fed = first > 0 ? prompt : cached;
  out.begin_object().key("id").value(what.id).key("endpoint").value(what.endpoint).key("model").value(what.model);
  out.key("created").value(what.created).key("prompt_tokens").value(prompt).key("prefilled_tokens").value(fed);
  out.key("generated_tokens").value(generated).key("max_tokens").value(what.max_tokens);
  out.key("stop_requested").value(r.stop_requested.load()).key("pause_requested").value(r.pause_requested.load());
  out.key("prefill_progress").value(prompt > 0 ? static_cast<double>(fed) / static_cast<double>(prompt) : 0.0);
  out.key("prefill_speed").value(speed(prompt - std::min(prompt, cached), admitted, first));
  out.key("decode_speed").value(generated > 1 ? speed(generated - 1, first, last) : 0.0);
  if (r.finished) out.key("finished").value(true);
  if (!what.session.empty()) out.key("state_key").value(what.session);
  out.end_object();
}

void write_request(json_writer& out, const std::shared_ptr<const running_request>& r) {
  if (r)
    write_request(out, *r);
  else
    out.null();
}

template <typename List>
void write_requests(json_writer& out, const char* name, const List& all) {
  out.key(name).begin_array();
  for (const auto& each : all) write_request(out, *each);
  out.end_array();
}

void write_model(json_writer& out, const model_ref& loaded, bool may_see_path) {
  out.key("model");
  if (!loaded) {
    out.null();
    return;
  }
  const served_model& model = loaded->served;
  out.begin_object().key("id").value(model.names.front()).key("name").value(model.names.front());
  if (may_see_path) out.key("path").value(model.path);
  out.key("device").value(model.card.device).key("weight_type").value(model.card.weight_type).end_object();
}

void write_capabilities(json_writer& out, const service_context& context) {
  const bool sessions = context.persistence != nullptr;
  out.key("capabilities").begin_object();
  for (const char* done : {"chat_messages", "completion", "batch_completion", "stream", "stop", "token_count",
                           "metrics", "think_type", "concurrent_generation", "chunk_prefill"})
    out.key(done).value(true);
  out.key("session_cache").value(sessions);
  out.key("pause_resume").value(context.requests->limits().requests_max > 0);
  out.end_object();
}

/// In the words of the older servers, for whom a slot is a place in a batch. Memory is taken when the server starts, so
/// that what is free does not limit anything; null: not known.
void write_queue(json_writer& out, const model_ref& model) {
  static const device::device_counters none;
  const auto& d = model ? *model->counters : none;
  const std::uint32_t slots = d.slots, used = d.slots_used;
  out.key("prefill_queue").begin_object();
  out.key("hard_max_bsz").value(slots).key("dynamic_max_bsz").value(slots).key("reserved_bsz").value(used);
  out.key("available_bsz").value(slots - std::min(slots, used)).key("queued_requests").value(d.waiting.load());
  out.key("free_vram_bytes").null().key("total_vram_bytes").null().key("reserve_vram_bytes").null();
  out.key("bytes_per_bsz");
  model && model->actor ? out.value(model->actor->info().slot_bytes) : out.null();
  out.end_object();
}

}  // namespace

std::string server_status(const service_context& context, const caller& who, bool may_see_path) {
  std::string body;
  json_writer out(body);
  const auto hidden = [&](const auto& r) { return r && !who.sees(r->what().tenant); };
  auto running = context.requests->running();
  std::erase_if(running, hidden);
  auto paused = context.requests->paused(context.time->now());
  std::erase_if(paused, hidden);
  auto last = context.requests->last();
  if (hidden(last)) last.reset();
  const model_ref model = context.models->current();
  out.begin_object().key("status").value(context.draining ? "draining" : "running");
  out.key("api_version").value("v1").key("engine_version").value(context.settings.version);
  write_model(out, model, may_see_path);
  write_capabilities(out, context);
  out.key("prefill_chunk_size").value(model ? model->served.prefill_chunk_tokens : 0);
  write_queue(out, model);
  out.key("active_request");
  write_request(out, running.empty() ? nullptr : running.back());
  write_requests(out, "active_requests", running);
  out.key("last_request");
  write_request(out, last);
  write_requests(out, "paused_requests", paused);
  out.end_object();
  return body;
}

server_control_call::server_control_call(order what, plain_origin origin,
                                         std::shared_ptr<const service_context> context,
                                         std::function<void(std::function<void()>)> post,
                                         std::shared_ptr<connection::response_writer> out)
    : plain_call(std::move(origin), std::move(context), std::move(out)), order_(what), post_(std::move(post)) {}

/// Without an id, stop means all requests and pause the latest one.
void server_control_call::read(std::string body) {
  const auto id = protocol::parse_control(body, context().settings.limits);
  if (!id) return refuse(id.error());
  auto meant = context().requests->running();
  std::erase_if(meant, [&](const auto& r) { return !origin().who->sees(r->what().tenant); });
  if (!id->empty()) std::erase_if(meant, [&](const auto& r) { return r->what().id != *id; });
  if (order_ == order::pause && meant.size() > 1) meant.erase(meant.begin(), meant.end() - 1);
  waiting_ = meant.size();
  if (meant.empty()) return tell();
  latest_ = meant.back();
  for (const auto& each : meant)
    each->tell(order_, [post = post_, self = std::weak_ptr(self_)](bool done) {
      post([self, done] {
        if (const auto call = self.lock()) (*call)->carried_out(done);
      });
    });
}

void server_control_call::carried_out(bool done) {
  guarded([&] {
    any_ = any_ || done;
    if (--waiting_ == 0) tell();
  });
}

void server_control_call::tell() {
  std::string body;
  json_writer out(body);
  out.begin_object().key("ok").value(true);
  out.key(order_ == order::stop ? "stopped" : "paused").value(any_);
  if (order_ == order::pause) {
    out.key("request_id");
    latest_ ? out.value(latest_->what().id) : out.null();
  }
  out.key("active_request");
  write_request(out, latest_);
  out.end_object();
  answer(200, std::move(body));
}

}  // namespace skein::request
