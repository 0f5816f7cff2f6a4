#include "actors/request/status/server_status.hpp"

#include <algorithm>
#include <utility>

#include "actors/request/call/long_work.hpp"
#include "actors/request/status/device_totals.hpp"
#include "base/version.hpp"
#include "protocol/json/json_writer.hpp"

namespace skein::request {
namespace {

using protocol::json_writer;

double seconds_between(std::int64_t begin, std::int64_t end) {
  return std::chrono::duration<double>(duration(end - begin)).count();
}

double speed(std::uint64_t tokens, std::int64_t begin, std::int64_t end) {
  return begin > 0 && end > begin ? static_cast<double>(tokens) / seconds_between(begin, end) : 0;
}

void write_one(json_writer& out, const running_request& r) {
  const auto& what = r.what();
  const std::int64_t admitted = r.admitted_at, first = r.first_token_at, last = r.last_token_at;
  const std::uint64_t prompt = r.prompt_tokens, cached = r.cached_tokens, generated = r.generated_tokens;
  const std::uint64_t fed = std::min(cached + r.fed_tokens, prompt);
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

template <typename List>
void write_requests(json_writer& out, const char* name, const List& all) {
  out.key(name).begin_array();
  for (const auto& each : all) write_one(out, *each);
  out.end_array();
}

void write_model(json_writer& out, const model_ref& loaded, bool may_see_path) {
  out.key("model");
  if (!loaded) {
    out.null();
    return;
  }
  const served_model& model = loaded->served;
  out.begin_object().key("id").value(loaded->id()).key("name").value(loaded->id());
  if (may_see_path) out.key("path").value(model.path);
  out.key("device").value(model.card.device).key("weight_type").value(model.card.weight_type).end_object();
}

/// Memory that the engine allocated at its start; it never allocates more.
void write_memory(json_writer& out, const memory_plan& taken) {
  out.key("memory").begin_object();
  out.key("weight_bytes").value(taken.weight_bytes).key("activation_bytes").value(taken.activation_bytes);
  out.key("workspace_bytes").value(taken.workspace_bytes).key("slot_bytes").value(taken.slot_bytes);
  out.key("total_bytes").value(taken.bytes()).end_object();
}

/// The devices of a model, by id.
void write_devices(json_writer& out, const model_devices& devices) {
  out.key("devices").begin_array();
  for (const model_device& device : devices) {
    const device::device_counters& d = *device.counters;
    out.begin_object().key("id").value(device.id).key("name").value(device.name());
    out.key("status").value(device.lost() ? "lost" : "running");
    out.key("slots").value(d.slots.load()).key("slots_used").value(d.slots_used.load());
    out.key("requests").value(d.requests.load()).key("waiting").value(d.waiting.load());
    if (device.actor && !device.lost()) write_memory(out, device.actor->info().memory);
    out.end_object();
  }
  out.end_array();
}

/// All models in memory, the current one first.
void write_models(json_writer& out, std::span<const model_ref> models) {
  out.key("models").begin_array();
  for (const auto& model : models) {
    using counters = device::device_counters;
    const auto& card = model->served.card;
    out.begin_object().key("id").value(model->id());
    out.key("device").value(card.device).key("weight_type").value(card.weight_type);
    const model_devices& devices = model->devices;
    out.key("slots").value(devices.sum(&counters::slots)).key("slots_used").value(devices.sum(&counters::slots_used));
    out.key("requests").value(devices.sum(&counters::requests)).key("waiting").value(devices.sum(&counters::waiting));
    if (const memory_plan memory = devices.memory(); memory.slots > 0) write_memory(out, memory);
    write_devices(out, devices);
    out.end_object();
  }
  out.end_array();
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

/// In the format of the older servers, which call a slot a place in a batch. An engine allocates its memory at its
/// start, so free memory limits nothing. Null: the model is not on a GPU.
void write_queue(json_writer& out, const service_context& context, const std::optional<card_memory>& card) {
  const device_totals d(*context.models);
  const model_ref model = context.models->current();
  const auto number = [&](const char* name, std::optional<std::uint64_t> value) {
    out.key(name);
    value ? out.value(*value) : out.null();
  };
  const auto of_card = [&](auto member) { return card ? std::optional<std::uint64_t>((*card).*member) : std::nullopt; };
  const memory_plan memory = model ? model->devices.memory() : memory_plan{};
  const bool known = memory.slots > 0;
  out.key("prefill_queue").begin_object();
  out.key("hard_max_bsz").value(d.slots).key("dynamic_max_bsz").value(d.slots);
  out.key("reserved_bsz").value(d.slots_used).key("available_bsz").value(d.slots - std::min(d.slots, d.slots_used));
  out.key("queued_requests").value(d.waiting);
  number("free_vram_bytes", of_card(&card_memory::free_bytes));
  number("total_vram_bytes", of_card(&card_memory::total_bytes));
  number("reserve_vram_bytes", card && known ? std::optional<std::uint64_t>(memory.bytes()) : std::nullopt);
  number("bytes_per_bsz", known ? std::optional<std::uint64_t>(memory.slot_bytes) : std::nullopt);
  out.end_object();
}

std::string status_body(const service_context& context, const caller& who, bool may_see_path,
                        const std::optional<card_memory>& card) {
  std::string body;
  json_writer out(body);
  const auto hidden = [&](const auto& r) { return r && !who.sees(r->what().tenant); };
  auto running = context.requests->running();
  std::erase_if(running, hidden);
  auto paused = context.requests->paused(context.time->now());
  std::erase_if(paused, hidden);
  auto last = context.requests->last();
  if (hidden(last)) last.reset();
  const auto models = context.models->resident();
  const model_ref current = context.models->current();
  out.begin_object().key("status").value(context.draining ? "draining" : "running");
  out.key("api_version").value("v1").key("engine_version").value(version_line());
  write_model(out, current, may_see_path);
  write_models(out, models);
  write_capabilities(out, context);
  out.key("prefill_chunk_size").value(current ? current->served.prefill_chunk_tokens : 0);
  write_queue(out, context, card);
  out.key("active_request");
  write_request(out, running.empty() ? nullptr : running.back());
  write_requests(out, "active_requests", running);
  out.key("last_request");
  write_request(out, last);
  write_requests(out, "paused_requests", paused);
  out.end_object();
  return body;
}

}  // namespace

void write_request(json_writer& out, const std::shared_ptr<const running_request>& r) {
  if (r)
    write_one(out, *r);
  else
    out.null();
}

status_call::status_call(bool may_see_path, plain_origin origin, std::shared_ptr<const service_context> context,
                         std::function<void(std::function<void()>)> post,
                         std::shared_ptr<connection::response_writer> out)
    : plain_call(std::move(origin), std::move(context), std::move(out)),
      may_see_path_(may_see_path),
      post_(std::move(post)) {}

/// The GPU may answer slowly, so the worker pool queries it.
void status_call::read(std::string) {
  const model_ref model = context().models->current();
  if (!model || !model->served.card_usage) return tell(std::nullopt);
  auto work = [model] { return model->served.card_usage(); };
  auto back = [self = std::weak_ptr(self_)](const result<card_memory>& card) {
    if (const auto call = self.lock())
      (*call)->guarded([&] { (*call)->tell(card ? std::optional(*card) : std::nullopt); });
  };
  if (!run_long(context(), {post_, origin().request_name, over(), origin().share}, std::move(work), std::move(back)))
    tell(std::nullopt);
}

void status_call::tell(const std::optional<card_memory>& card) {
  answer(200, status_body(context(), *origin().who, may_see_path_, card));
}

}  // namespace skein::request
