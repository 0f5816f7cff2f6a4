#include <algorithm>
#include <chrono>
#include <utility>

#include "actors/request/call/memory.hpp"
#include "actors/request/generation/generation_call.hpp"
#include "actors/request/generation/replay.hpp"

/// The part of a generation call that talks to the persistence actor.
namespace skein::request {
namespace {

// A known prefix saves time only if the wait for it is short.
constexpr auto prefix_patience = std::chrono::seconds(2);

}  // namespace

void generation_call::open_session() {
  if (!context_->persistence)
    return refuse({error_kind::unsupported, "this server does not store sessions", "session_id"});
  ticket_ = hub_.open_ticket(*this);
  const steady_time deadline = std::min(context_->time->now() + context_->settings.queue_timeout(),
                                        origin_.received + context_->settings.total_timeout());
  auto question = turn_->question(ticket_, initial_state(), deadline);
  question.model = model().card.identity;
  question.session.tenant = origin_.who->tenant;
  if (!hub_.ask(std::move(question))) return refuse(nobody_listens(*context_));
  asked_ = question::session;
}

/// Looks for a prefix state, unless the call resumes from a session's state.
void generation_call::find_prefix() {
  const prepared_call& call = answer_->call();
  const bool resumes = turn_ && turn_->opened().resume.state;
  const bool mixed = tuned_ && !tuned_->mixture.empty();
  if (!context_->persistence || resumes || mixed || !prefix_use::may(call)) return submit();
  std::vector<token_id> tokens;
  if (turn_) tokens = turn_->opened().resume.feed;
  const std::size_t offset = tokens.size();
  tokens.insert(tokens.end(), call.prompts.front().begin(), call.prompts.front().end());
  const engine::prompt_part first = parts_of(tokens.size()).front();
  prefix_.emplace(std::move(tokens), call.request.store);
  prefix_ticket_ = hub_.open_ticket(*this);
  auto question = prefix_->question(prefix_ticket_, initial_state(), call, offset, model().chunk_tokens,
                                    first.sampled ? 0 : first.tokens);
  question.model = model().card.identity;
  question.tenant = origin_.who->tenant;
  prefix_until_ = context_->time->now() + prefix_patience;
  if (!hub_.ask(std::move(question))) return go_without_prefix();
  asked_ = question::prefix;
}

/// The hub handles a late answer.
void generation_call::go_without_prefix() {
  asked_ = question::none;
  hub_.close_ticket(prefix_ticket_.number);
  prefix_.reset();
  submit();
}

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
  if (turn_->responds() && turn_->stored()) announce();
  request_->to_feed = std::move(*text);
  if (turn_->continues()) request_->goes_on_after = turn_->opened().unfinished->tokens;
  tokenise();
}

/// A response's turn is accepted: from now on others may find it. A client that does not wait gets its id.
void generation_call::announce() {
  if (origin_.named) origin_.named(turn_->key());
  background_ = request_->background;
  if (!request_->answers_at_once) return;
  connection::header_list headers = origin_.headers;
  headers.emplace_back("Content-Type", "application/json");
  out_->respond(200, std::move(headers), request_->writer->early_body(head(*request_), false));
}

std::string generation_call::told_again(std::optional<std::uint64_t> after) const {
  return answer_ ? answer_->call().request.writer->told_again(*head_, after) : std::string();
}

std::string generation_call::early_body() const {
  if (answer_) return answer_->call().request.writer->early_body(*head_, begun_);
  return request_ && head_ ? request_->writer->early_body(*head_, false) : std::string();
}

/// The turn was committed before: sends its answer again, from the record.
void generation_call::on(persistence::session_replayed& r) {
  asked_ = question::none;
  if (request_->session->go_on && turn_->responds())
    return refuse({error_kind::conflict, "response was resumed by another client; try again", "session_id"});
  if (turn_->asked_otherwise(r.version))
    return refuse({error_kind::conflict, "Idempotency-Key was used for a request with another body; use a new key",
                   "Idempotency-Key"});
  origin_.headers.emplace_back("X-Session-State", to_string(persistence::session_state::continued));
  origin_.headers.emplace_back("Idempotent-Replayed", "true");
  const bool streamed = request_->stream;
  const std::string text = replay(*request_, r, *turn_, head(*request_));
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
  if (was == question::prefix) return go_without_prefix();
  refuse(turn_->in_own_words(std::move(r.why)));
}

void generation_call::on(persistence::prefix_found& r) {
  asked_ = question::none;
  hub_.close_ticket(prefix_ticket_.number);
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
  if (auto so_far = turn_->note(*answer_, *model().vocabulary))
    (void)hub_.ask(persistence::note_running{turn_->opened().lease, std::move(*so_far)});  // best effort
}

/// The answer is over and its text is final: makes the state match that text and commits the turn. The client gets the
/// end after that.
void generation_call::settle_turn() {
  if (!turn_->stored()) {
    answer_->conclude(turn_->note_of(turn_->opened().base, persistence::durability::memory, false));
    if (streaming_) write(answer_->take_stream());
    return finish();
  }
  auto ending = turn_->end(*answer_, *model().vocabulary);
  if (!ending) return refuse(ending.error());
  const request_id id = runs_.front().id;
  prompt_over(0);  // so that no cancel undoes the settle
  tell_device(device::settle{id, ending->sampled, std::move(ending->more)});
  unfinished_ = ending->version.unfinished;
  hub_.tell(persistence::commit_turn{ticket_, turn_->opened().lease, std::move(ending->version),
                                     std::move(ending->segment), turn_->wanted()});
  leased_ = false;  // only now: after an exception above, the lease is still released
  asked_ = question::commit;
}

/// Releases the session for other turns.
void generation_call::leave_session() {
  if (std::exchange(asked_, question::none) == question::session) hub_.tell(persistence::release{ticket_, 0});
  if (std::exchange(leased_, false)) hub_.tell(persistence::release{ticket_, turn_->opened().lease});
}

}  // namespace skein::request
