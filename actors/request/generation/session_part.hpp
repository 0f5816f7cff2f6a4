#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/request/answer/answer_state.hpp"
#include "actors/request/generation/phase.hpp"
#include "actors/request/generation/prefix_use.hpp"
#include "actors/request/generation/session_turn.hpp"
#include "actors/request/shared/request_hub.hpp"
#include "base/result.hpp"

namespace skein::request {

/// Whether a session waits for the turn of a call.
enum class session_hold : std::uint8_t { none, asked, leased };

[[nodiscard]] constexpr bool may_follow(session_hold from, session_hold to) {
  using enum session_hold;
  switch (from) {
    case none: return to == asked;
    case asked: return to == leased || to == none;
    case leased: return to == none;
  }
  return false;
}

/// Whose states a question to the persistence actor means.
struct state_scope {
  std::string model;          ///< identity
  std::string initial_state;  ///< identity of the tuned state; empty: none
  tenant_id tenant = default_tenant;
};

/// What one call has in common with the persistence actor: the session that its turn continues, with its lease, and the
/// known prefix that its prompt begins with. It says what the device is fed before the prompt, and commits the turn.
/// The destructor leaves the session to other turns. Lives on the call's io thread.
class session_part {
 public:
  /// Replies go to `call`; both references must outlive this.
  session_part(request_hub& hub, persistence_client& call) : hub_(hub), call_(call) {}
  ~session_part() { close(); }
  session_part(const session_part&) = delete;  // one owner of the lease
  session_part& operator=(const session_part&) = delete;

  // ---- the session ----

  /// The turn of the call, if it has one; once. Without a turn the last `answered` tokens of the prompt are an earlier
  /// answer, which the call resumes.
  void take(std::optional<session_turn> turn, std::size_t answered) {
    turn_ = std::move(turn);
    answered_ = answered;
  }
  /// Null: the call has no session.
  [[nodiscard]] const session_turn* turn() const { return turn_ ? &*turn_ : nullptr; }

  /// Asks for the session's content. False: the mailbox is full or closed. For a call with a turn.
  [[nodiscard]] bool open(const state_scope& scope, steady_time deadline);
  /// The session is leased. Returns the text to tokenise and feed: session_turn::begin. A turn that is not stored gives
  /// the lease back at once.
  [[nodiscard]] result<protocol::fed_text> opened(persistence::session_opened reply);
  /// The turn gets no lease: it was refused, or is in the log already.
  void not_opened() { hold_.enter(session_hold::none); }
  /// The tokens of the turn's own text, as session_turn::set_prompt.
  void set_prompt(std::vector<token_id> tokens) { turn_->set_prompt(std::move(tokens)); }
  /// Whether the turn is a response that others know by its id, so that it must get an end in the log.
  [[nodiscard]] bool is_named() const {
    return turn_ && turn_->responds() && turn_->stored() && hold_.is(session_hold::leased);
  }
  /// Tells the log how far the answer is, if it is time for that. Best effort.
  void note_progress(const answer_state& answer, const tokenizer::vocabulary& vocabulary);
  /// Commits the turn; answered by turn_committed or refused. The lease ends with it.
  void commit(session_turn::ending ending);
  /// What the answer says about the committed turn, or about one that is not stored.
  [[nodiscard]] protocol::session_note note_of(const persistence::turn_committed& reply) const;
  [[nodiscard]] protocol::session_note note_unstored() const;

  // ---- a known prefix ----

  /// Asks for a state of a prefix. False: there is no reason to, or the mailbox is full or closed.
  [[nodiscard]] bool find_prefix(const state_scope& scope, const prepared_call& call, std::uint32_t chunk_tokens,
                                 steady_time until);
  void found(persistence::prefix_found reply);
  [[nodiscard]] bool waited_long_for_prefix(steady_time now) const { return now >= prefix_until_; }
  /// Waits for the prefix no longer. The hub handles a late reply.
  void go_without_prefix();
  /// Null: no prefix was looked for.
  [[nodiscard]] const prefix_use* prefix() const { return prefix_ ? &*prefix_ : nullptr; }
  /// The persistence actor waits no more for copies of states that the device was not asked for.
  void drop_copies();

  // ---- what the device is told ----

  /// Sets the answer's numbers of prompt tokens, of which some may be cached.
  void count_prompt(answer_state& answer) const;
  /// Puts what precedes the prompt before it: states, tokens, and the parts of all tokens. Call it once for each
  /// prompt.
  void apply(device::submit& message, const answer_state& answer);

  /// The device that has the state that the turn continues in a slot.
  [[nodiscard]] std::optional<device_id> device() const { return turn_ ? turn_->opened().resume.device : std::nullopt; }

  /// The call is over: leaves the session, and gets no more replies.
  void close();

 private:
  [[nodiscard]] std::vector<engine::prompt_part> parts(std::size_t tokens) const;
  void leave();

  request_hub& hub_;
  persistence_client& call_;
  persistence::return_address ticket_, prefix_ticket_;
  std::optional<session_turn> turn_;
  checked_phase<session_hold> hold_{session_hold::none};
  bool unfinished_ = false;  // the version that was committed
  std::size_t answered_ = 0;
  std::optional<prefix_use> prefix_;
  steady_time prefix_until_{};
};

}  // namespace skein::request
