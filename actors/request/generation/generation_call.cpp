#include "actors/request/generation/generation_call.hpp"

#include <algorithm>
#include <utility>

#include "actors/request/call/attempt.hpp"
#include "actors/request/call/auth.hpp"
#include "actors/request/call/memory.hpp"
#include "actors/request/generation/replay.hpp"
#include "base/log/log.hpp"
#include "protocol/json/http_error.hpp"
#include "protocol/json/json_writer.hpp"
#include "protocol/responses/sse.hpp"

namespace skein::request {
namespace {

constexpr std::size_t logged_prompt_bytes = 4096;
// A known prefix saves time only if the wait for it is short.
constexpr auto prefix_patience = std::chrono::seconds(2);
// Extra time to commit a turn that ended at its deadline.
constexpr auto commit_patience = std::chrono::seconds(30);

/// Logs the text that is fed, for log.prompts.
void log_prompt(const prepared_call& call, const call_origin& origin) {
  if (call.prompts.empty()) return;
  std::string text;
  for (const token_id token : call.prompts.front()) {
    if (text.size() >= logged_prompt_bytes) break;
    text += origin.model->served.vocabulary->text(token);
  }
  log::info("prompt", {{"request_id", origin.request_name},
                       {"prompts", static_cast<std::uint64_t>(call.prompts.size())},
                       {"text", std::string_view(text).substr(0, logged_prompt_bytes)}});
}

std::string queue_status(const request_register::place& place) {
  std::string json;
  protocol::json_writer out(json);
  out.begin_object().key("object").value("queue.status");
  out.key("status").value(place.position > 0 ? "queued" : "processing").key("ticket").value(place.ticket);
  out.key("queue_position").value(place.position);
  out.key("requests_ahead").value(place.position > 0 ? place.position - 1 : 0);
  out.key("waiting_requests").value(place.waiting).end_object();
  return json;
}

/// What the prompts of a call have in common.
run_order order_of(const call_origin& origin, const service_context& context, const call_request& request,
                   std::shared_ptr<running_request> entry) {
  const auto& settings = context.settings;
  const std::string& key = origin.who->key;
  return {origin.model,
          origin.request_name,
          origin.who->tenant,
          key.empty() ? origin.client : "key " + key,
          request.beginning(),
          std::move(entry),
          origin.received + settings.total_timeout(),
          settings.queue_timeout(),
          settings.queue.prompts_waiting_max,
          context.time};
}

/// Carries orders to the call with that work.
running_request::messenger orders_to(const call_work& work, request_hub& hub) {
  return [post = work.post(), &hub, serial = work.serial()](order what, std::function<void(outcome)> done) {
    post([&hub, serial, what, done = std::move(done)] {
      auto* call = static_cast<generation_call*>(hub.find(serial));
      done(call ? call->obey(what) : outcome::nothing_ran);
    });
  };
}

std::string_view reason_of(order what) {
  return what == order::pause ? "paused" : what == order::park ? "client_gone" : "admin_stop";
}

}  // namespace

generation_call::generation_call(call_origin origin, std::shared_ptr<const service_context> context, request_hub& hub,
                                 std::function<void(std::function<void()>)> post,
                                 std::shared_ptr<connection::response_writer> out)
    : context_(std::move(context)),
      hub_(hub),
      work_(context_, hub, *this, std::move(post), origin.request_name, [this](const auto& next) { guarded(next); }),
      output_(std::move(out), origin.headers, context_->time),
      reader_(std::move(origin), context_, work_, output_, *this),
      record_(context_, hub.io_thread()),
      session_(hub, *this) {}

// ---------------------------------------------------------------- from body to device

/// An exception ends only this call, with a 500 or an error event.
void generation_call::guarded(const std::function<void()>& work) {
  const std::string& name = origin().request_name;
  const result<void> outcome = attempt_step(name, work);
  if (outcome || attempt_step(name, [&] { refuse(outcome.error()); })) return;
  if (!is(call_phase::ended)) phase_.enter(call_phase::ended);
  work_.end();
  output_.abort();
}

void generation_call::body(std::string bytes) {
  if (!is(call_phase::reading) || reader_.has_body()) return;
  guarded([&] { reader_.read(std::move(bytes)); });
}

void generation_call::begin(protocol::generation_request request) {
  if (!is(call_phase::reading) || reader_.has_body()) return;
  guarded([&] {
    reader_.skip();
    if (!on_identified()) return;
    session_turn turn(request);
    on_read({std::move(request), std::move(turn), std::nullopt});
  });
}

bool generation_call::on_identified() {
  if (origin().who->revoked) return refuse(revoked_key()), false;  // while the body was on its way
  const auto no = record_.enter(origin().who, model().names.front());
  if (no) refuse(no->why, no->retry_after);
  return !no;
}

void generation_call::on_read(parsed_call call) {
  session_.take(std::move(call.turn), call.resumed ? call.resumed->answered.size() : 0);
  request_.take(std::move(call.request), std::move(call.resumed));
  record_.enlist(origin(), *request_.get(), orders_to(work_, hub_));
  if (const auto chosen = request_.choose_beginning(*origin().model, *context_); !chosen) return refuse(chosen.error());
  if (!hold(text_bytes(*request_.get()))) return;
  session_.turn() ? open_session() : tokenise();
}

bool generation_call::hold(std::size_t bytes) {
  const auto held = work_.hold(origin().share, bytes);
  if (!held) refuse(held.error());
  return held.has_value();
}

void generation_call::open_session() {
  if (!context_->persistence)
    return refuse({error_kind::unsupported, "this server does not store sessions", "session_id"});
  const steady_time deadline = std::min(context_->time->now() + context_->settings.queue_timeout(),
                                        origin().received + context_->settings.total_timeout());
  if (!session_.open(scope(), deadline)) return refuse(nobody_listens(*context_));
  phase_.enter(call_phase::opening_session);
}

void generation_call::on_reply(persistence::reply& r) {
  if (is(call_phase::ended)) return;
  guarded([&] { std::visit([&](auto& one) { on(one); }, r); });
}

void generation_call::on(persistence::session_opened& r) {
  if (!is(call_phase::opening_session)) return;
  auto text = session_.opened(std::move(r));
  if (!text) return refuse(text.error());
  const session_turn& turn = *session_.turn();
  output_.add_header("X-Session-State", std::string(to_string(turn.opened().state)));
  if (turn.responds() && turn.stored()) announce();
  request_.feed(std::move(*text), turn);
  tokenise();
}

/// A response's turn is accepted: from now on others may find it. A client that does not wait gets its id.
void generation_call::announce() {
  if (origin().named) origin().named(session_.turn()->key());
  const protocol::generation_request& request = *request_.get();
  const auto& head = this->head(request);
  background_ = request.background;
  if (request.answers_at_once) output_.respond(200, request.writer->early_body(head, false));
}

/// The turn was committed before: sends its answer again, from the record.
void generation_call::on(persistence::session_replayed& r) {
  if (!is(call_phase::opening_session)) return;
  session_.not_opened();
  replay_work again = replaying(*request_.get(), r, *session_.turn(), head(*request_.get()), origin().share, *context_);
  const auto next = [this, streamed = again.streamed](result<replayed_answer> answer) {
    if (!answer) return refuse(answer.error());
    output_.respond_again(streamed, std::move(answer->text));
    end_call(200, "replayed");
  };
  if (!work_.run<result<replayed_answer>>(again.is_long, std::move(again.work), next)) refuse(too_much_long_work());
}

void generation_call::on(persistence::refused& r) {
  if (is(call_phase::finding_prefix)) {
    session_.go_without_prefix();
    return submit();
  }
  if (is(call_phase::opening_session)) session_.not_opened();
  if (is(call_phase::opening_session) || is(call_phase::committing))
    refuse(session_.turn()->in_own_words(std::move(r.why)));
}

void generation_call::tokenise() {
  phase_.enter(call_phase::tokenising);
  const bool is_long = request_.takes_long(*origin().model, *context_);
  auto work = request_.preparation(context_, origin().model, work_.over());
  const auto next = [this](result<prepared_call> call) { prepared(std::move(call)); };
  if (!work_.run<result<prepared_call>>(is_long, std::move(work), next)) refuse(too_much_long_work());
}

void generation_call::prepared(result<prepared_call> call) {
  if (!call) return refuse(call.error());
  if (context_->settings.log.prompts) log_prompt(*call, origin());
  if (!hold(request_.complete(*call, session_.turn(), context_->requests->limits()))) return;
  const auto& head = this->head(call->request);
  const session_turn* const turn = session_.turn();
  const paused_request* const resumed = request_.resumed();
  if (turn) session_.set_prompt(call->prompts.front());
  run_.emplace(hub_, *this, session_, order_of(origin(), *context_, request_, record_.entry()),
               answer_state(std::move(*call), model(), head, origin().request_name));
  if (const auto fits = run_->answer().make_room_for_frame(context_->settings.limits); !fits)
    return refuse(fits.error());
  if (turn || resumed) run_->answer().continue_after(turn ? turn->earlier_answer() : resumed->answered);
  find_prefix();
}

/// Looks for a prefix state, unless the call resumes from a session's state.
void generation_call::find_prefix() {
  const bool mixed = request_.beginning() && !request_.beginning()->mixture.empty();
  const steady_time until = context_->time->now() + prefix_patience;
  const prepared_call& call = run_->answer().call();
  if (!context_->persistence || mixed || !session_.find_prefix(scope(), call, model().chunk_tokens, until))
    return submit();
  phase_.enter(call_phase::finding_prefix);
}

void generation_call::on(persistence::prefix_found& r) {
  if (!is(call_phase::finding_prefix)) return;
  session_.found(std::move(r));
  submit();
}

void generation_call::submit() {
  phase_.enter(call_phase::queued);
  session_.count_prompt(run_->answer());
  record_.prompt(run_->answer().usage(), session_.prefix());
  run_->begin();
  submit_more();
  if (is(call_phase::ended)) return;
  if (run_->answer().over()) write_ready();  // no tokens were requested
  if (obeys_later_) obey(*std::exchange(obeys_later_, std::nullopt));
  session_.drop_copies();
}

void generation_call::submit_more() {
  if (run_->submit_more(work_.memory())) return;
  if (origin().model->cut_off) return refuse(cut_off_by_force());
  if (run_->running() == 0 && is(call_phase::queued)) refuse(nobody_listens(*context_));
}

// ---------------------------------------------------------------- from device to client

void generation_call::on_event(std::uint32_t prompt, device::event& e) {
  if (!is_on_device()) return;
  guarded([&] { std::visit([&](auto& one) { on(prompt, one); }, e); });
}

void generation_call::on(std::uint32_t prompt, device::admitted& e) {
  if (is(call_phase::queued)) {
    phase_.enter(call_phase::generating);
    record_.spend(run_->answer().usage().prompt_tokens);
  }
  record_.admitted(e.queued);
  const auto& request = run_->answer().call().request;
  if (request.stream && request.queue_events && prompt == 0) tell_queue();
  if (request.stream) output_.begin_stream();
  run_->on(prompt, e);
}

void generation_call::on(std::uint32_t prompt, device::rejected& e) {
  run_->on(prompt, e);
  if (origin().model->cut_off) return refuse(cut_off_by_force());
  if (e.why.kind != error_kind::overloaded || is(call_phase::queued)) return refuse(e.why);
  run_->put_back(prompt);  // a full queue need not end a request that has begun
}

void generation_call::on(std::uint32_t prompt, device::token& e) {
  record_.token(origin().received, run_->answer().rows());
  run_->on(prompt, e);
}

void generation_call::on_events_done() {
  if (is_on_device()) guarded([&] { write_ready(); });
}

void generation_call::write_ready() {
  answer_state& answer = run_->answer();
  if (run_->failure()) return refuse(*run_->failure());
  if (output_.streaming()) output_.write(answer.take_stream());
  if (answer.over()) return session_.turn() ? settle_turn() : finish();
  submit_more();
  if (is(call_phase::ended)) return;
  session_.note_progress(answer, *model().vocabulary);
  if (output_.queued_bytes() > context_->settings.limits.outbound_bytes_max) run_->pause();
}

void generation_call::writable() {
  if (is(call_phase::ended) || !run_ || !run_->is_paused()) return;
  guarded([&] {
    run_->resume();
    submit_more();
  });
}

/// The answer is over and its text is final: makes the state match that text and commits the turn. The client gets the
/// end after that.
void generation_call::settle_turn() {
  if (!session_.turn()->stored()) return conclude(session_.note_unstored());
  auto ending = session_.turn()->end(run_->answer(), *model().vocabulary);
  if (!ending) return refuse(ending.error());
  run_->settle(ending->sampled, std::move(ending->more));
  session_.commit(std::move(*ending));
  phase_.enter(call_phase::committing);
}

void generation_call::on(persistence::turn_committed& r) {
  if (is(call_phase::committing)) conclude(session_.note_of(r));
}

/// The device enforces the deadline while it has the request. This covers the time before and after.
bool generation_call::is_late(steady_time now) const {
  if (is(call_phase::reading) && !reader_.has_body()) return false;
  if (run_ && run_->running() > 0) return false;
  const duration grace = is(call_phase::committing) ? duration(commit_patience) : duration(0);
  return now >= origin().received + context_->settings.total_timeout() + grace;
}

void generation_call::on_tick(steady_time now) {
  if (is(call_phase::ended)) return;
  guarded([&] { tick(now); });
}

void generation_call::tick(steady_time now) {
  if (is_late(now)) return refuse({error_kind::timeout, "the request took longer than queue.total_timeout_ms", ""});
  if (origin().who->revoked) return refuse(revoked_key());
  if (is(call_phase::reading)) return reader_.on_tick(now);
  if (is(call_phase::finding_prefix) && session_.waited_long_for_prefix(now)) {
    session_.go_without_prefix();
    return submit();
  }
  if (!run_) return;
  run_->on_tick();
  submit_more();
  const auto& request = run_->answer().call().request;
  if (is(call_phase::ended) || !request.stream) return;
  if (request.queue_events && !run_->begun()) return tell_queue();
  output_.keep_alive(now, origin().received, context_->settings.keep_alive);
}

/// Sends a queue event to a client that requested them.
void generation_call::tell_queue() {
  output_.begin_stream();
  output_.write(protocol::sse_event(queue_status(context_->requests->place_of(*record_.entry()))));
}

// ---------------------------------------------------------------- ends

/// A request with a slot ends as if its text were complete, with the reason; one without a slot is refused. A session's
/// turn is stored with its text so far, and a response that has an id even without text. A request that cannot be
/// paused runs on.
outcome generation_call::obey(order what) {
  const bool ends = is(call_phase::committing) || is(call_phase::ended) || (run_ && run_->answer().over());
  if (is(call_phase::reading) || ends) return outcome::nothing_ran;
  if (what == order::pause && (!is(call_phase::generating) || run_->answer().call().pause_tokens_max == 0)) {
    record_.entry()->pause_requested = false;
    return outcome::refused;
  }
  guarded([&] { stop_answer(what); });
  return outcome::done;
}

void generation_call::stop_answer(order what) {
  if (!is(call_phase::generating)) {
    if (!session_.is_named()) return refuse({error_kind::conflict, "Request cancelled", ""});
    const bool cancelled = obeys_later_ == order::stop;  // then it is not resumed
    if (!run_ || run_->running() == 0) return void(obeys_later_ = cancelled ? order::stop : what);
    run_->answer().on_admitted(0);
    if (run_->answer().call().request.stream) output_.begin_stream();
  }
  run_->answer().stop(reason_of(what));
  if (what == order::pause) request_.keep_paused(run_->answer(), record_.entry(), model(), *context_);
  write_ready();
}

void generation_call::gone(std::string_view why, unsigned status) {
  if (is(call_phase::ended)) return;
  guarded([&] {
    const session_turn* turn = session_.turn();
    if (!turn || !turn->stores_on_disconnect() || !run_ || run_->answer().over() || run_->running() == 0) return;
    answer_state& answer = run_->answer();
    turn->responds() ? answer.stop("client_gone") : answer.on_row_finished(0, 0, device::finish_cause::budget);
    settle_turn();
  });
  if (!is(call_phase::ended)) end_call(status, why);
}

void generation_call::conclude(protocol::session_note note) {
  run_->answer().conclude(std::move(note));
  if (output_.streaming()) output_.write(run_->answer().take_stream());
  finish();
}

void generation_call::finish() {
  answer_state& answer = run_->answer();
  output_.streaming() ? output_.end_stream() : output_.respond(200, answer.body());
  end_call(200, answer.finish_word());
}

/// Refuses the request: with a status if none was sent yet, else with the last event of the stream.
void generation_call::refuse(const error& why, std::chrono::seconds retry_after) {
  if (is(call_phase::ended)) return;
  if (!run_ || !run_->begun()) record_.count_rejection(origin(), why.kind);
  const protocol::http_error answer = reader_.refusal(why, retry_after);
  if (output_.streaming()) {
    output_.write(run_ ? run_->answer().failure(why, answer.body)
                       : protocol::sse_event(answer.body).append(protocol::sse_done));
    output_.end_stream();
  } else {
    output_.respond(answer.status, answer.body, answer.headers);
  }
  end_call(answer.status, to_string(why.kind));
}

void generation_call::end_call(unsigned status, std::string_view how) {
  phase_.enter(call_phase::ended);
  if (status != 200) guarded([&] { request_.give_back_resumed(*context_); });
  record_.leave();
  work_.end();
  if (run_) run_->cancel();
  session_.close();
  record_.ended(origin(), status, how, answer(), run_ && run_->begun());
}

}  // namespace skein::request
