#include "actors/request/generation_call.hpp"

#include <array>
#include <chrono>
#include <ctime>
#include <random>
#include <utility>

#include "actors/request/attempt.hpp"
#include "actors/request/auth.hpp"
#include "actors/request/long_work.hpp"
#include "actors/request/memory.hpp"
#include "base/log.hpp"
#include "protocol/body_password.hpp"
#include "protocol/http_error.hpp"
#include "protocol/sse.hpp"

namespace skein::request {
namespace {

std::mt19937_64& local_random() {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return generator;
}

protocol::answer_head make_head(protocol::api shape, const served_model& model) {
  std::array<std::uint8_t, 12> random{};
  for (auto& byte : random) byte = static_cast<std::uint8_t>(local_random()());
  return {protocol::answer_id(shape, random), model.names.front(), model.fingerprint, std::time(nullptr)};
}

double milliseconds(duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

}  // namespace

generation_call::generation_call(call_origin origin, std::shared_ptr<const service_context> context, request_hub& hub,
                                 std::function<void(std::function<void()>)> post,
                                 std::shared_ptr<connection::response_writer> out)
    : origin_(std::move(origin)),
      context_(std::move(context)),
      hub_(hub),
      post_(std::move(post)),
      out_(std::move(out)),
      serial_(hub.enter(*this)) {}

generation_call::~generation_call() {
  cancel_device_work();
  hub_.leave(serial_);
}

// ---------------------------------------------------------------- from body to device

std::uint64_t generation_call::body_bytes_max() const {
  return origin_.authenticated ? http_call::body_bytes_max() : context_->settings.unauthenticated_body_bytes_max;
}

/// Whatever throws ends this call with a 500 or an error event, and no other call.
template <typename Work>
void generation_call::guarded(Work work) {
  const auto done = [&](auto step) {
    return attempt(origin_.request_name, [&]() -> result<void> {
      step();
      return {};
    });
  };
  const result<void> outcome = done(work);
  if (outcome || done([&] { refuse(outcome.error()); })) return;
  ended_ = true;
  out_->abort();
}

/// Hands what `work` answers to `next`; work that is long goes to the worker pool and comes back from there.
template <typename Result>
void generation_call::run(bool is_long, std::function<Result()> work, void (generation_call::*next)(Result)) {
  if (!is_long) return (this->*next)(attempt(origin_.request_name, work));
  auto back = [this_serial = serial_, &hub = hub_, next](Result outcome) {
    if (auto* call = static_cast<generation_call*>(hub.find(this_serial)))
      call->guarded([&] { (call->*next)(std::move(outcome)); });
  };
  const bool taken = run_long(
      *context_, {post_, origin_.request_name, over_.get_token()},
      [work = std::move(work), memory = memory_] { return work(); }, std::move(back));
  if (!taken) refuse({error_kind::overloaded, "too many long requests are being read; try again soon", ""});
}

void generation_call::body(std::string bytes) {
  guarded([&] { receive(std::move(bytes)); });
}

void generation_call::receive(std::string bytes) {
  if (!hold(bytes.size())) return;
  auto text = std::make_shared<const std::string>(std::move(bytes));
  if (origin_.authenticated) return parse(std::move(text));
  const bool is_long = text->size() > context_->settings.inline_json_bytes_max;
  auto find = [context = context_, text]() -> result<signed_body> {
    return signed_body{text, protocol::body_password(*text, context->settings.limits)};
  };
  run<result<signed_body>>(is_long, std::move(find), &generation_call::log_in);
}

/// A body without a password guesses nothing, so it is not counted.
void generation_call::log_in(result<signed_body> body) {
  if (ended_) return;
  if (!body) return refuse(body.error());
  if (!body->password) return refuse(no_password());
  const bool right = same_secret(*body->password, context_->settings.password);
  if (const auto wait = context_->logins->judge(origin_.client, right, context_->time->now()))
    return refuse(too_many_passwords(), retry_after(*wait));
  if (!right) return refuse(no_password());
  parse(std::move(body->text));
}

void generation_call::parse(std::shared_ptr<const std::string> text) {
  const bool is_long = text->size() > context_->settings.inline_json_bytes_max;
  auto work = [context = context_, shape = origin_.shape, text = std::move(text)] {
    const auto& limits = context->settings.limits;
    const auto& preset = context->model.preset;
    return shape == protocol::api::chat_completions ? protocol::parse_chat_completion(*text, preset, limits)
                                                    : protocol::parse_completion(*text, preset, limits);
  };
  run<result<protocol::generation_request>>(is_long, std::move(work), &generation_call::parsed);
}

/// Counts what the next stage takes in place of what the last one took; refuses where there is no room for it.
bool generation_call::hold(std::size_t bytes) {
  memory_.reset();
  auto memory = hold_memory(*context_, bytes);
  if (!memory) {
    refuse(memory.error());
    return false;
  }
  memory_ = std::move(*memory);
  return true;
}

void generation_call::parsed(result<protocol::generation_request> request) {
  if (ended_) return;
  if (!request) return refuse(request.error());
  if (!request->model.empty() && !knows_model(request->model))
    return refuse({error_kind::not_found, "there is no model '" + request->model + "'", "model"});
  const std::size_t text = text_bytes(*request);
  if (!hold(text)) return;
  const bool is_long = text > context_->settings.inline_text_bytes_max;
  auto tokenise = [context = context_, gone = over_.get_token(),
                   taken = std::make_shared<protocol::generation_request>(std::move(*request))] {
    return prepare(std::move(*taken), context->model, context->settings, gone);
  };
  run<result<prepared_call>>(is_long, std::move(tokenise), &generation_call::prepared);
}

bool generation_call::knows_model(const std::string& name) const {
  for (const auto& known : context_->model.names)
    if (known == name) return true;
  return false;
}

void generation_call::prepared(result<prepared_call> call) {
  if (ended_) return;
  if (!call) return refuse(call.error());
  if (!hold(held_bytes(*call))) return;
  if (!call->request.seed_given) call->request.sampling.seed = local_random()();
  answer_.emplace(std::move(*call), context_->model, make_head(origin_.shape, context_->model), origin_.request_name);
  submit();
}

void generation_call::submit() {
  const prepared_call& call = answer_->call();
  const steady_time now = context_->time->now();
  for (std::uint32_t prompt = 0; prompt < call.prompts.size(); ++prompt) {
    device::submit message;
    message.id = hub_.open(*this, prompt);
    message.reply_to = hub_.io_thread();
    message.client = origin_.client;
    message.prompt = answer_->give_prompt(prompt);
    message.memory = memory_;
    message.score_prompt = call.score_prompt;
    message.score_top = call.request.sampling.top_logprobs;
    for (std::uint32_t row = 0; row < call.rows_per_prompt(); ++row) {
      sampling::sampling_params params = call.request.sampling;
      params.row = row;  // of its own prompt: a prompt draws the same in a list as alone
      params.logprobs = params.logprobs || call.request.best_of > call.request.n;
      message.rows.push_back(std::move(params));
    }
    message.queue_deadline = now + context_->settings.queue_timeout;
    message.total_deadline = origin_.received + context_->settings.total_timeout;
    const request_id id = message.id;
    device::message box(std::move(message));
    if (!context_->device->push(box)) {
      hub_.close(id);
      return refuse({error_kind::overloaded, "the server is busy; try again soon", ""});
    }
    ids_.push_back(id);
  }
}

// ---------------------------------------------------------------- from device to client

void generation_call::on_event(std::uint32_t prompt, device::event& e) {
  if (ended_) return;
  guarded([&] { std::visit([&](auto& one) { on(prompt, one); }, e); });
}

void generation_call::on(std::uint32_t, device::admitted& e) {
  queued_ = std::max(queued_, e.queued);
  if (answer_->call().request.stream) begin_stream();
  answer_->on_admitted();
}

void generation_call::on(std::uint32_t prompt, device::rejected& e) {
  hub_.close(ids_[prompt]);
  ids_[prompt] = 0;
  refuse(e.why);
}

void generation_call::on(std::uint32_t prompt, device::prompt_scored& e) {
  answer_->on_prompt_scored(prompt, e.scores);
}

void generation_call::on(std::uint32_t prompt, device::token& e) {
  if (!first_token_) first_token_ = context_->time->now();
  if (answer_->on_token(prompt, e.row, e.id_of_token, e.logprobs.get())) hub_.tell(device::cancel_row{e.id, e.row});
}

void generation_call::on(std::uint32_t prompt, device::row_finished& e) {
  if (e.cause == device::finish_cause::device_lost) device_lost_ = true;
  answer_->on_row_finished(prompt, e.row, e.cause);
}

void generation_call::on_events_done() {
  if (ended_ || !answer_) return;
  guarded([&] { write_ready(); });
}

void generation_call::write_ready() {
  if (device_lost_) return refuse({error_kind::internal, "the device failed while it worked on this request", ""});
  if (streaming_) write(answer_->take_stream());
  if (answer_->over()) return finish();
  if (!paused_ && out_->queued_bytes() > context_->settings.outbound_bytes_max) {
    paused_ = true;
    for (request_id id : ids_) hub_.tell(device::pause{id});
  }
}

void generation_call::writable() {
  if (!paused_ || ended_) return;
  guarded([&] {
    paused_ = false;
    for (request_id id : ids_) hub_.tell(device::resume{id});
  });
}

void generation_call::on_tick(steady_time now) {
  if (ended_ || !answer_ || !answer_->call().request.stream) return;
  const steady_time since = streaming_ ? last_write_ : origin_.received;
  if (now - since < context_->settings.keep_alive) return;
  guarded([&] {
    begin_stream();
    write(std::string(protocol::sse_keep_alive));
  });
}

void generation_call::begin_stream() {
  if (streaming_) return;
  streaming_ = true;
  connection::header_list headers = origin_.headers;
  headers.emplace_back("Content-Type", "text/event-stream; charset=utf-8");
  headers.emplace_back("Cache-Control", "no-cache");
  headers.emplace_back("X-Accel-Buffering", "no");
  out_->begin_stream(200, std::move(headers));
  last_write_ = context_->time->now();
}

void generation_call::write(std::string bytes) {
  if (bytes.empty()) return;
  last_write_ = context_->time->now();
  out_->write(std::move(bytes));
}

void generation_call::finish() {
  if (streaming_) {
    out_->end();
  } else {
    connection::header_list headers = origin_.headers;
    headers.emplace_back("Content-Type", "application/json");
    out_->respond(200, std::move(headers), answer_->body());
  }
  end_call(200, answer_->finish_word());
}

/// A response that says no: as a status while none was sent, as the last event of a stream otherwise.
void generation_call::refuse(const error& why, std::chrono::seconds retry_after) {
  if (ended_) return;
  const protocol::http_error answer = protocol::to_http(why, retry_after);
  if (streaming_) {
    write(protocol::sse_event(answer.body) + std::string(protocol::sse_done));
    out_->end();
  } else {
    connection::header_list headers = origin_.headers;
    headers.emplace_back("Content-Type", "application/json");
    headers.insert(headers.end(), answer.headers.begin(), answer.headers.end());
    out_->respond(answer.status, std::move(headers), answer.body);
  }
  end_call(answer.status, to_string(why.kind));
}

// ---------------------------------------------------------------- ends

void generation_call::gone(std::string_view why, unsigned status) {
  if (!ended_) end_call(status, why);
}

void generation_call::end_call(unsigned status, std::string_view how) {
  ended_ = true;
  over_.request_stop();
  memory_.reset();
  cancel_device_work();
  const protocol::token_usage usage = answer_ ? answer_->usage() : protocol::token_usage{};
  const steady_time now = context_->time->now();
  log::info("request", {{"request_id", origin_.request_name},
                        {"route", origin_.route},
                        {"status", status},
                        {"prompt_tokens", usage.prompt_tokens},
                        {"cached_tokens", usage.cached_tokens},
                        {"completion_tokens", usage.completion_tokens},
                        {"queue_ms", milliseconds(queued_)},
                        {"ttft_ms", first_token_ ? milliseconds(*first_token_ - origin_.received) : 0.0},
                        {"total_ms", milliseconds(now - origin_.received)},
                        {"finish_reason", how}});
}

void generation_call::cancel_device_work() {
  for (request_id& id : ids_) {
    if (id == 0) continue;
    hub_.close(id);
    // Also for what has ended: a cancel for an unknown id is harmless, and it costs less than to keep count here.
    hub_.tell(device::cancel{id});
    id = 0;
  }
}

}  // namespace skein::request
