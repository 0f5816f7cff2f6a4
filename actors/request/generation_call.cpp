#include "actors/request/generation_call.hpp"

#include <array>
#include <chrono>
#include <ctime>
#include <random>
#include <utility>

#include "actors/request/attempt.hpp"
#include "actors/request/body_login.hpp"
#include "actors/request/long_work.hpp"
#include "actors/request/memory.hpp"
#include "actors/request/replay.hpp"
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

protocol::answer_head make_head(const protocol::generation_request& request, protocol::api shape,
                                const served_model& model) {
  if (shape == protocol::api::native)
    return {request.answer_name, request.model, model.fingerprint, std::time(nullptr)};
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
  leave_session();
  hub_.close_ticket(ticket_.number);
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

void generation_call::log_in(result<signed_body> body) {
  if (ended_) return;
  if (!body) return refuse(body.error());
  if (const auto no = judge_body_password(body->password, origin_.client, *context_))
    return refuse(no->why, no->retry_after);
  parse(std::move(body->text));
}

void generation_call::parse(std::shared_ptr<const std::string> text) {
  const bool is_long = text->size() > context_->settings.inline_json_bytes_max;
  auto work = [context = context_, origin = origin_, text = std::move(text)] { return read(*text, origin, *context); };
  run<result<parsed_call>>(is_long, std::move(work), &generation_call::parsed);
}

result<generation_call::parsed_call> generation_call::read(const std::string& text, const call_origin& origin,
                                                           const service_context& context) {
  const auto parse = [&]() -> result<protocol::generation_request> {
    const auto& limits = context.settings.limits;
    switch (origin.shape) {
      case protocol::api::chat_completions: return protocol::parse_chat_completion(text, context.model.preset, limits);
      case protocol::api::completions: return protocol::parse_completion(text, context.model.preset, limits);
      case protocol::api::native: break;
    }
    return protocol::parse_state_request(text, origin.branches, limits);
  };
  auto request = parse();
  if (!request) return request.error();
  parsed_call call{std::move(*request), std::nullopt};
  if (!call.request.session) return call;
  if (auto ok = protocol::read_session_headers(origin.if_match, origin.request_key, *call.request.session); !ok)
    return ok.error();
  call.turn.emplace(call.request, context.model.preset);
  return call;
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

void generation_call::parsed(result<parsed_call> call) {
  if (ended_) return;
  if (!call) return refuse(call.error());
  request_ = std::move(call->request);
  turn_ = std::move(call->turn);
  if (!choose_beginning() || !hold(text_bytes(*request_))) return;
  turn_ ? open_session() : tokenise();
}

/// The model that the request names, and the tuned state, whose defaults then count where the request is silent.
bool generation_call::choose_beginning() {
  const auto states = context_->tuned ? context_->tuned->all() : std::make_shared<const tuned_states::list>();
  auto chosen = choose_model(context_->model.names, *states, request_->model, request_->state_name);
  if (!chosen) {
    refuse(chosen.error());
    return false;
  }
  // On native routes a model's name is a label.
  if (!chosen->known && request_->shape != protocol::api::native) {
    refuse({error_kind::not_found, "there is no model '" + request_->model + "'", "model"});
    return false;
  }
  tuned_ = std::move(chosen->state);
  if (!tuned_) return true;
  if (tuned_->temperature && !request_->temperature_named) request_->sampling.temperature = *tuned_->temperature;
  if (tuned_->top_p && !request_->top_p_named) request_->sampling.top_p = *tuned_->top_p;
  return true;
}

void generation_call::open_session() {
  if (!context_->persistence) return refuse({error_kind::unsupported, "this server keeps no sessions", "session_id"});
  ticket_ = hub_.open_ticket(*this);
  const steady_time deadline = context_->time->now() + context_->settings.queue_timeout;
  if (!hub_.ask(turn_->question(ticket_, initial_state(), deadline)))
    return refuse({error_kind::overloaded, "the server is busy; try again soon", ""});
  asked_ = question::session;
}

void generation_call::tokenise() {
  const std::size_t text = text_bytes(*request_);
  const bool is_long = text > context_->settings.inline_text_bytes_max;
  auto work = [context = context_, gone = over_.get_token(),
               taken = std::make_shared<protocol::generation_request>(std::move(*request_))] {
    return prepare(std::move(*taken), context->model, context->settings, gone);
  };
  request_.reset();
  run<result<prepared_call>>(is_long, std::move(work), &generation_call::prepared);
}

void generation_call::prepared(result<prepared_call> call) {
  if (ended_) return;
  if (!call) return refuse(call.error());
  if (turn_) {
    if (turn_->continues()) {
      call->prompts.front() = turn_->opened().unfinished->tokens;
      if (!call->request.reasoning_raw) call->form = turn_->continued_form();
    }
    turn_->set_prompt(call->prompts.front());
  }
  if (!hold(held_bytes(*call))) return;
  if (!call->request.seed_given) call->request.sampling.seed = local_random()();
  auto head = make_head(call->request, origin_.shape, context_->model);
  answer_.emplace(std::move(*call), context_->model, std::move(head), origin_.request_name);
  if (turn_) answer_->continue_after(turn_->earlier_answer());
  find_prefix();
}

/// The states of prefixes serve whoever begins with nothing better.
void generation_call::find_prefix() {
  const prepared_call& call = answer_->call();
  const bool resumes = turn_ && turn_->opened().resume.state;
  if (!context_->persistence || resumes || !prefix_use::may(call)) return submit();
  std::vector<token_id> tokens;
  if (turn_) tokens = turn_->opened().resume.feed;
  const std::size_t offset = tokens.size();
  tokens.insert(tokens.end(), call.prompts.front().begin(), call.prompts.front().end());
  prefix_.emplace(std::move(tokens), call.request.store);
  if (ticket_.number == 0) ticket_ = hub_.open_ticket(*this);
  if (!hub_.ask(prefix_->question(ticket_, initial_state(), call, offset))) {
    prefix_.reset();
    return submit();  // it goes without
  }
  asked_ = question::prefix;
}

void generation_call::submit() {
  if (turn_) {
    const auto used = turn_->usage(prefix_ ? prefix_->position() : 0);
    answer_->count_prompt(used.prompt, used.cached);
  } else if (prefix_) {
    answer_->count_prompt(answer_->call().prompts.front().size(), prefix_->position());
  }
  for (std::uint32_t prompt = 0; prompt < answer_->call().prompts.size(); ++prompt)
    if (!submit_prompt(prompt)) return refuse({error_kind::overloaded, "the server is busy; try again soon", ""});
  // What was wanted and did not go to the device will never come.
  if (prefix_)
    for (const auto& key : prefix_->unanswered()) hub_.tell(persistence::state_kept{key, nullptr});
}

bool generation_call::submit_prompt(std::uint32_t prompt) {
  const prepared_call& call = answer_->call();
  device::submit message;
  message.id = hub_.open(*this, prompt);
  message.reply_to = hub_.io_thread();
  message.client = origin_.client;
  message.prompt = answer_->give_prompt(prompt);
  if (tuned_) message.from.state = tuned_->values;
  if (turn_) {
    const auto& resume = turn_->opened().resume;
    message.prompt.insert(message.prompt.begin(), resume.feed.begin(), resume.feed.end());
    if (resume.state) message.from = {resume.state, resume.key};
    if (turn_->stored()) message.settles_as = turn_->opened().key;
    message.may_cut = !call.request.stop.empty();
  }
  if (prefix_) prefix_->apply(message);
  message.memory = memory_;
  message.score_prompt = call.score_prompt;
  message.score_top = call.request.sampling.top_logprobs;
  for (std::uint32_t row = 0; row < call.rows_per_prompt(); ++row) {
    sampling::sampling_params params = call.request.sampling;
    params.row = row;  // of its own prompt: a prompt draws the same in a list as alone
    params.logprobs = params.logprobs || call.request.best_of > call.request.n;
    message.rows.push_back(std::move(params));
  }
  message.queue_deadline = context_->time->now() + context_->settings.queue_timeout;
  message.total_deadline = origin_.received + context_->settings.total_timeout;
  const request_id id = message.id;
  std::vector<device::wanted_copy> copies = message.copies;
  device::message box(std::move(message));
  if (context_->device->push(box)) {
    ids_.push_back(id);
    return true;
  }
  hub_.close(id);
  for (const auto& copy : copies) hub_.tell(persistence::state_kept{copy.key, nullptr});
  return false;
}

// ---------------------------------------------------------------- sessions

void generation_call::on_reply(persistence::reply& r) {
  if (ended_) return;
  guarded([&] { std::visit([&](auto& one) { on(one); }, r); });
}

void generation_call::on(persistence::session_opened& r) {
  asked_ = question::none;
  leased_ = true;
  auto text = turn_->begin(std::move(r));
  if (!text) return refuse(text.error());
  origin_.headers.emplace_back("X-Session-State", to_string(turn_->opened().state));
  if (!turn_->stored()) leave_session();
  request_->to_feed = std::move(*text);
  tokenise();
}

/// The turn was taken before: its answer once more, from the record.
void generation_call::on(persistence::session_replayed& r) {
  asked_ = question::none;
  origin_.headers.emplace_back("X-Session-State", to_string(persistence::session_state::continued));
  origin_.headers.emplace_back("Idempotent-Replayed", "true");
  const bool streamed = request_->stream;
  const std::string text = replay(*request_, r, *turn_, make_head(*request_, origin_.shape, context_->model));
  if (streamed) {
    begin_stream();
    write(text);
    out_->end();
  } else {
    connection::header_list headers = origin_.headers;
    headers.emplace_back("Content-Type", "application/json");
    out_->respond(200, std::move(headers), text);
  }
  end_call(200, "replayed");
}

void generation_call::on(persistence::refused& r) {
  const question was = std::exchange(asked_, question::none);
  if (was == question::commit) leased_ = false;
  if (was == question::prefix) {  // it goes without
    prefix_.reset();
    return submit();
  }
  refuse(turn_->in_own_words(std::move(r.why)));
}

void generation_call::on(persistence::prefix_found& r) {
  asked_ = question::none;
  prefix_->found(std::move(r));
  submit();
}

void generation_call::on(persistence::turn_committed& r) {
  asked_ = question::none;
  answer_->conclude(turn_->note_of(r.version, r.durable, unfinished_));
  if (streaming_) write(answer_->take_stream());
  finish();
}

void generation_call::note_progress() {
  if (!turn_ || !leased_ || answer_->over()) return;
  if (auto so_far = turn_->note(*answer_, *context_->model.vocabulary))
    (void)hub_.ask(persistence::note_running{turn_->opened().lease, std::move(*so_far)});  // best effort
}

/// The answer is over: its text is decided, the state shall become that text's, and the log gets it. Then the client
/// hears the end.
void generation_call::settle_turn() {
  if (!turn_->stored()) {
    answer_->conclude(turn_->note_of(turn_->opened().base, persistence::durability::memory, false));
    if (streaming_) write(answer_->take_stream());
    return finish();
  }
  auto ending = turn_->end(*answer_, *context_->model.vocabulary);
  if (!ending) return refuse(ending.error());
  hub_.close(ids_.front());
  hub_.tell(device::settle{ids_.front(), ending->drawn, std::move(ending->more)});
  ids_.clear();  // a cancel would undo it
  unfinished_ = ending->version.unfinished;
  leased_ = false;
  asked_ = question::commit;
  hub_.tell(persistence::commit_turn{ticket_, turn_->opened().lease, std::move(ending->version),
                                     std::move(ending->segment), turn_->wanted()});
}

/// The session need not wait for this call any longer.
void generation_call::leave_session() {
  if (std::exchange(asked_, question::none) == question::session) hub_.tell(persistence::release{ticket_, 0});
  if (std::exchange(leased_, false)) hub_.tell(persistence::release{ticket_, turn_->opened().lease});
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
  const bool over = answer_->on_token(prompt, e.row, e.id_of_token, e.logprobs.get());
  if (over && !turn_) hub_.tell(device::cancel_row{e.id, e.row});  // a session's row ends by settle
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
  if (answer_->over()) {
    if (!turn_) return finish();
    return asked_ == question::commit ? void() : settle_turn();
  }
  note_progress();
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
  const protocol::http_error answer = protocol::to_http(why, retry_after, origin_.errors);
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
  if (ended_) return;
  guarded([&] {
    if (!turn_ || !turn_->stores_on_disconnect() || !answer_ || answer_->over() || ids_.empty()) return;
    answer_->on_row_finished(0, 0, device::finish_cause::budget);
    settle_turn();
  });
  if (!ended_) end_call(status, why);
}

void generation_call::end_call(unsigned status, std::string_view how) {
  ended_ = true;
  over_.request_stop();
  memory_.reset();
  cancel_device_work();
  leave_session();
  if (prefix_)
    for (const auto& key : prefix_->unanswered()) hub_.tell(persistence::state_kept{key, nullptr});
  hub_.close_ticket(ticket_.number);
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
