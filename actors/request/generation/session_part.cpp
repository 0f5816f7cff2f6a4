#include "actors/request/generation/session_part.hpp"

#include <algorithm>
#include <utility>

namespace skein::request {

bool session_part::open(const state_scope& scope, steady_time deadline) {
  ticket_ = hub_.open_ticket(call_);
  auto question = turn_->question(ticket_, scope.initial_state, deadline);
  question.model = scope.model;
  question.session.tenant = scope.tenant;
  if (!hub_.ask(std::move(question))) return false;
  hold_.enter(session_hold::asked);
  return true;
}

result<protocol::fed_text> session_part::opened(persistence::session_opened reply) {
  hold_.enter(session_hold::leased);
  auto text = turn_->begin(std::move(reply));
  if (text && !turn_->stored()) leave();
  return text;
}

void session_part::note_progress(const answer_state& answer, const tokenizer::vocabulary& vocabulary) {
  if (!hold_.is(session_hold::leased) || answer.over()) return;
  if (auto so_far = turn_->note(answer, vocabulary))
    (void)hub_.ask(persistence::note_running{turn_->opened().lease, std::move(*so_far)});  // best effort
}

void session_part::commit(session_turn::ending ending) {
  unfinished_ = ending.version.unfinished;
  hub_.tell(persistence::commit_turn{ticket_, turn_->opened().lease, std::move(ending.version),
                                     std::move(ending.segment), turn_->wanted(), ending.lacks});
  hold_.enter(session_hold::none);  // only now: after an exception above, the lease is still released
}

protocol::session_note session_part::note_of(const persistence::turn_committed& reply) const {
  return turn_->note_of(reply.version, reply.durable, unfinished_);
}

protocol::session_note session_part::note_unstored() const {
  return turn_->note_of(turn_->opened().base, persistence::durability::memory, false);
}

void session_part::leave() {
  if (hold_.is(session_hold::none)) return;
  const bool leased = hold_.is(session_hold::leased);
  hold_.enter(session_hold::none);
  hub_.tell(persistence::release{ticket_, leased ? turn_->opened().lease : 0});
}

bool session_part::find_prefix(const state_scope& scope, const prepared_call& call, std::uint32_t chunk_tokens,
                               steady_time until) {
  const bool resumes = turn_ && turn_->opened().resume.state;  // from a later state than any prefix
  if (resumes || !prefix_use::may(call)) return false;
  std::vector<token_id> tokens;
  if (turn_) tokens = turn_->opened().resume.feed;
  const std::size_t offset = tokens.size();
  tokens.insert(tokens.end(), call.prompts.front().begin(), call.prompts.front().end());
  const engine::prompt_part first = parts(tokens.size()).front();
  prefix_.emplace(std::move(tokens), call.request.store);
  prefix_ticket_ = hub_.open_ticket(call_);
  auto question = prefix_->question(prefix_ticket_, scope.initial_state, call, offset, chunk_tokens,
                                    first.sampled ? 0 : first.tokens);
  question.model = scope.model;
  question.tenant = scope.tenant;
  prefix_until_ = until;
  if (hub_.ask(std::move(question))) return true;
  go_without_prefix();
  return false;
}

void session_part::found(persistence::prefix_found reply) {
  hub_.close_ticket(prefix_ticket_.number);
  prefix_->found(std::move(reply));
}

void session_part::go_without_prefix() {
  hub_.close_ticket(prefix_ticket_.number);
  prefix_.reset();
}

void session_part::drop_copies() {
  if (!prefix_) return;
  for (const auto& key : prefix_->unanswered()) hub_.tell(persistence::state_kept{key, nullptr});
}

void session_part::count_prompt(answer_state& answer) const {
  const std::uint32_t known = prefix_ ? prefix_->position() : 0;
  if (turn_) {
    const auto used = turn_->usage(known);
    answer.count_prompt(used.prompt, used.cached);
  } else if (prefix_) {
    answer.count_prompt(answer.call().prompts.front().size(), known);
  }
}

/// The parts of a prompt of this number of tokens, including the session's parts before it.
std::vector<engine::prompt_part> session_part::parts(std::size_t tokens) const {
  if (turn_) return turn_->parts();
  const std::size_t sampled = std::min(answered_, tokens);
  std::vector<engine::prompt_part> parts{{static_cast<std::uint32_t>(tokens - sampled), false}};
  if (sampled > 0) parts.push_back({static_cast<std::uint32_t>(sampled), true});
  return parts;
}

void session_part::apply(device::submit& message, const answer_state& answer) {
  if (turn_) {
    const auto& resume = turn_->opened().resume;
    message.prompt.erase(message.prompt.begin(), message.prompt.begin() + static_cast<std::ptrdiff_t>(resume.ahead));
    message.prompt.insert(message.prompt.begin(), resume.feed.begin(), resume.feed.end());
    if (resume.state) message.from = {resume.state, resume.key};
    if (turn_->stored()) message.settles_as = turn_->opened().key;
    message.may_cut = !answer.call().request.stop.empty() || answer.hidden_budget() > 0;
  }
  message.parts = parts(message.prompt.size());
  if (prefix_) prefix_->apply(message);
}

void session_part::close() {
  leave();
  drop_copies();
  hub_.close_ticket(ticket_.number);
  hub_.close_ticket(prefix_ticket_.number);
}

}  // namespace skein::request
