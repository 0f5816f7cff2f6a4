#include <algorithm>
#include <chrono>
#include <utility>

#include "actors/request/call/memory.hpp"
#include "actors/request/generation/generation_call.hpp"
#include "actors/request/shared/logged_text.hpp"
#include "base/log/log.hpp"
#include "protocol/responses/sse.hpp"

/// The part of a generation call that talks to the device and sends its results to the client.
namespace skein::request {
namespace {

// Extra time to commit a turn that ended at its deadline.
constexpr auto commit_patience = std::chrono::seconds(30);

double milliseconds(duration d) { return std::chrono::duration<double, std::milli>(d).count(); }
double seconds(duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

void generation_call::submit() {
  if (turn_) {
    const auto used = turn_->usage(prefix_ ? prefix_->position() : 0);
    answer_->count_prompt(used.prompt, used.cached);
  } else if (prefix_) {
    answer_->count_prompt(answer_->call().prompts.front().size(), prefix_->position());
  }
  if (prefix_) {
    counts_->prefix_queries.fetch_add(prefix_->tokens(), std::memory_order_relaxed);
    counts_->prefix_hits.fetch_add(prefix_->position(), std::memory_order_relaxed);
  }
  listed_->prompt_tokens = answer_->usage().prompt_tokens;
  listed_->cached_tokens = answer_->usage().cached_tokens;
  runs_.resize(answer_->call().prompts.size());
  for (std::uint32_t prompt = 0; prompt < runs_.size(); ++prompt) to_run_.push_back(prompt);
  submit_more();
  if (ended_) return;
  if (answer_->over()) write_ready();  // no tokens were requested
  if (obeys_later_) obey(*obeys_later_);
  // Wanted copies that did not go to the device will never arrive.
  if (prefix_)
    for (const auto& key : prefix_->unanswered()) hub_.tell(persistence::state_kept{key, nullptr});
}

/// Only some of many prompts wait for slots at a time; others follow as these get their slots.
void generation_call::submit_more() {
  while (!paused_ && !crowded_ && !to_run_.empty() && waiting_ < context_->settings.queue.prompts_waiting_max) {
    if (!submit_prompt(to_run_.front())) {
      if (origin_.model->cut_off) return refuse(cut_off_by_force());
      if (running_ == 0 && !begun_) refuse(nobody_listens(*context_));
      return;  // a later event or tick retries
    }
    to_run_.pop_front();
  }
}

/// The parts of a prompt of this number of tokens, including the session's parts before it.
std::vector<engine::prompt_part> generation_call::parts_of(std::size_t tokens) const {
  if (turn_) return turn_->parts();
  const std::size_t sampled = resumed_ ? std::min(resumed_->answered.size(), tokens) : 0;
  std::vector<engine::prompt_part> parts{{static_cast<std::uint32_t>(tokens - sampled), false}};
  if (sampled > 0) parts.push_back({static_cast<std::uint32_t>(sampled), true});
  return parts;
}

bool generation_call::submit_prompt(std::uint32_t prompt) {
  const prepared_call& call = answer_->call();
  device::submit message;
  message.id = hub_.open(*this, prompt);
  message.reply_to = hub_.io_thread();
  message.tenant = origin_.who->tenant;
  message.client = origin_.who->key.empty() ? origin_.client : "key " + origin_.who->key;
  message.prompt = answer_->give_prompt(prompt);
  if (tuned_) {
    message.from.state = tuned_->values;
    for (const auto& part : tuned_->mixture) message.mixture.push_back({{part.values, {}}, part.weight});
  }
  if (turn_) {
    const auto& resume = turn_->opened().resume;
    message.prompt.insert(message.prompt.begin(), resume.feed.begin(), resume.feed.end());
    if (resume.state) message.from = {resume.state, resume.key};
    if (turn_->stored()) message.settles_as = turn_->opened().key;
    message.may_cut = !call.request.stop.empty() || answer_->hidden_budget() > 0;
  }
  message.parts = parts_of(message.prompt.size());
  if (prefix_) prefix_->apply(message);
  message.memory = memory_;
  message.fed = {listed_, &listed_->fed_tokens};
  message.score_prompt = call.score_prompt;
  message.score_top = call.request.sampling.top_logprobs;
  for (std::uint32_t row = 0; row < call.rows_per_prompt(); ++row) {
    message.rows.push_back(call.row_params(prompt, row));
    message.rows.back().max_tokens += answer_->hidden_budget();
  }
  message.total_deadline = origin_.received + context_->settings.total_timeout();
  // Later prompts wait for prompts of their own request, so the queue timeout does not apply to them.
  message.queue_deadline = message.total_deadline;
  if (prompt == 0)
    message.queue_deadline =
        std::min(message.queue_deadline, context_->time->now() + context_->settings.queue_timeout());
  const request_id id = message.id;
  std::vector<device::wanted_copy> copies = message.copies;
  device::message box(std::move(message));
  if (origin_.model->device->push(box)) {
    runs_[prompt] = {id, call.rows_per_prompt()};
    ++waiting_;
    ++running_;
    return true;
  }
  hub_.close(id);
  for (const auto& copy : copies) hub_.tell(persistence::state_kept{copy.key, nullptr});
  return false;
}

// ---------------------------------------------------------------- from device to client

void generation_call::on_event(std::uint32_t prompt, device::event& e) {
  if (ended_) return;
  guarded([&] { std::visit([&](auto& one) { on(prompt, one); }, e); });
}

void generation_call::on(std::uint32_t prompt, device::admitted& e) {
  --waiting_;
  if (!std::exchange(begun_, true)) spend(answer_->usage().prompt_tokens);
  queued_ = std::max(queued_, e.queued);
  listed_->admitted_at = context_->time->now().time_since_epoch().count();
  const auto& request = answer_->call().request;
  if (request.stream && request.queue_events && prompt == 0) tell_queue();
  if (request.stream) begin_stream();
  answer_->on_admitted(prompt);
}

void generation_call::on(std::uint32_t prompt, device::rejected& e) {
  --waiting_;
  prompt_over(prompt);
  if (origin_.model->cut_off) return refuse(cut_off_by_force());
  if (e.why.kind != error_kind::overloaded || !begun_) return refuse(e.why);
  to_run_.push_front(prompt);  // a full queue need not end a request that has begun
  crowded_ = true;
}

void generation_call::prompt_over(std::uint32_t prompt) {
  hub_.close(std::exchange(runs_[prompt].id, 0));
  --running_;
}

void generation_call::on(std::uint32_t prompt, device::prompt_scored& e) {
  answer_->on_prompt_scored(prompt, e.scores);
}

void generation_call::on(std::uint32_t prompt, device::token& e) {
  const steady_time now = context_->time->now();
  if (!first_token_) listed_->first_token_at = (first_token_ = now)->time_since_epoch().count();
  listed_->last_token_at = now.time_since_epoch().count();
  ++listed_->generated_tokens;
  count_token(now);
  const bool over = answer_->on_token(prompt, e.row, e.id_of_token, e.logprobs.get());
  if (over && !turn_) tell_device(device::cancel_row{e.id, e.row});  // a session's row ends with settle
}

void generation_call::on(std::uint32_t prompt, device::row_finished& e) {
  if (e.cause == device::finish_cause::device_lost)
    failure_ = error{error_kind::internal, "the device failed while it processed this request", ""};
  if (e.cause == device::finish_cause::not_finite && !failure_) {
    failure_ = error{error_kind::internal, "the model computed a logit that is NaN or infinite for this request", ""};
    log::error("logits not finite", {{"request_id", origin_.request_name}, {"model", model().names.front()}});
  }
  if (e.cause == device::finish_cause::shutdown && origin_.model->cut_off) failure_ = cut_off_by_force();
  answer_->on_row_finished(prompt, e.row, e.cause);
  if (!turn_ && --runs_[prompt].rows == 0) prompt_over(prompt);  // a session's prompt ends with settle
}

void generation_call::on_events_done() {
  if (ended_ || !answer_) return;
  guarded([&] { write_ready(); });
}

void generation_call::write_ready() {
  if (failure_) return refuse(*failure_);
  if (streaming_) write(answer_->take_stream());
  if (answer_->over()) {
    if (!turn_) return finish();
    return asked_ == question::commit ? void() : settle_turn();
  }
  submit_more();
  if (ended_) return;
  note_progress();
  if (!paused_ && out_->queued_bytes() > context_->settings.limits.outbound_bytes_max) {
    paused_ = true;
    for (const auto& run : runs_)
      if (run.id != 0) tell_device(device::pause{run.id});
  }
}

void generation_call::writable() {
  if (!paused_ || ended_) return;
  guarded([&] {
    paused_ = false;
    for (const auto& run : runs_)
      if (run.id != 0) tell_device(device::resume{run.id});
    submit_more();
  });
}

/// The device enforces the deadline while it has the request. This covers the time before and after.
bool generation_call::is_late(steady_time now) const {
  if (!read_ || running_ > 0) return false;
  if (answer_ && answer_->over() && asked_ != question::commit) return false;  // only its reader is slow
  const duration grace = asked_ == question::commit ? duration(commit_patience) : duration(0);
  return now >= origin_.received + context_->settings.total_timeout() + grace;
}

void generation_call::on_tick(steady_time now) {
  if (ended_) return;
  if (is_late(now))
    return guarded([&] { refuse({error_kind::timeout, "the request took longer than queue.total_timeout_ms", ""}); });
  if (origin_.who->revoked)
    return guarded([&] { refuse({error_kind::unauthorized, "the key of this request was revoked", ""}); });
  if (unread_) return guarded([&] { look_for_model(now); });
  if (asked_ == question::prefix && now >= prefix_until_) return guarded([&] { go_without_prefix(); });
  if (!answer_) return;
  crowded_ = false;
  if (!to_run_.empty()) guarded([&] { submit_more(); });
  if (ended_ || !answer_->call().request.stream) return;
  if (answer_->call().request.queue_events && listed_->admitted_at == 0) return guarded([&] { tell_queue(); });
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

/// Refuses the request: with a status if none was sent yet, else with the last event of the stream.
void generation_call::refuse(const error& why, std::chrono::seconds retry_after) {
  if (ended_) return;
  if (!begun_) counts().count_rejection(origin_.model ? model().names.front() : "none", origin_.who->key, why.kind);
  protocol::http_error answer = protocol::to_http(why, retry_after, origin_.errors);
  if (!refusal_.empty()) answer.body = std::move(refusal_);
  if (streaming_) {
    write(answer_ ? answer_->failure(why, answer.body) : protocol::sse_event(answer.body).append(protocol::sse_done));
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
    if (!turn_ || !turn_->stores_on_disconnect() || !answer_ || answer_->over() || running_ == 0) return;
    if (turn_->responds())
      answer_->stop("client_gone");
    else
      answer_->on_row_finished(0, 0, device::finish_cause::budget);
    settle_turn();
  });
  if (!ended_) end_call(status, why);
}

void generation_call::end_call(unsigned status, std::string_view how) {
  ended_ = true;
  if (status != 200) guarded([&] { keep_resumed(); });
  delist();
  over_.request_stop();
  memory_.reset();
  place_.reset();
  cancel_device_work();
  leave_session();
  if (prefix_)
    for (const auto& key : prefix_->unanswered()) hub_.tell(persistence::state_kept{key, nullptr});
  hub_.close_ticket(ticket_.number);
  hub_.close_ticket(prefix_ticket_.number);
  const protocol::token_usage usage = answer_ ? answer_->usage() : protocol::token_usage{};
  const steady_time now = context_->time->now();
  count_ending(status);
  log::info("request", {{"request_id", origin_.request_name},
                        {"key_id", origin_.who->key},
                        {"session", session_},
                        {"route", logged_text(origin_.route)},
                        {"status", status},
                        {"prompt_tokens", usage.prompt_tokens},
                        {"cached_tokens", usage.cached_tokens},
                        {"completion_tokens", usage.completion_tokens},
                        {"queue_ms", milliseconds(queued_)},
                        {"ttft_ms", first_token_ ? milliseconds(*first_token_ - origin_.received) : 0.0},
                        {"total_ms", milliseconds(now - origin_.received)},
                        {"finish_reason", how}});
}

/// Tokens of one delivery arrive together, so a reader sees the time between deliveries.
void generation_call::count_token(steady_time now) {
  if (!last_token_)
    counts_->first_token.observe(seconds(now - origin_.received));
  else if (answer_->rows() == 1)
    counts_->inter_token.observe(seconds(now - *last_token_));
  last_token_ = now;
  counts_->generated_total.fetch_add(1, std::memory_order_relaxed);
  spend(1);
}

void generation_call::spend(std::uint64_t tokens) {
  if (origin_.who->usage) origin_.who->usage->spend(tokens);
}

void generation_call::count_ending(unsigned status) {
  if (!begun_) return;
  const protocol::token_usage usage = answer_->usage();
  const steady_time now = context_->time->now();
  const bool whole = status == 200;
  const ending how = !whole ? ending::abort : answer_->finish_word() == "length" ? ending::length : ending::stop;
  counts_->ended[static_cast<std::size_t>(how)].fetch_add(1, std::memory_order_relaxed);
  counts_->prompt_total.fetch_add(usage.prompt_tokens, std::memory_order_relaxed);
  counts_->whole.observe(seconds(now - origin_.received));
  counts_->queue.observe(seconds(queued_));
  counts_->prompt_tokens.observe(static_cast<double>(usage.prompt_tokens));
  counts_->generated_tokens.observe(static_cast<double>(usage.completion_tokens));
  if (!first_token_) return;
  const steady_time admitted(duration(listed_->admitted_at.load()));
  counts_->prefill.observe(seconds(*first_token_ - admitted));
  counts_->decode.observe(seconds(*last_token_ - *first_token_));
  if (usage.completion_tokens > 1 && answer_->rows() == 1)
    counts_->per_token.observe(seconds(*last_token_ - *first_token_) /
                               static_cast<double>(usage.completion_tokens - 1));
}

void generation_call::cancel_device_work() {
  for (auto& run : runs_) {
    if (run.id == 0) continue;
    hub_.close(run.id);
    tell_device(device::cancel{run.id});
    run.id = 0;
  }
}

}  // namespace skein::request
