#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "actors/request/answer/answer_state.hpp"
#include "base/result.hpp"
#include "protocol/chat/chat_template.hpp"
#include "protocol/requests/generation_request.hpp"

namespace skein::request {

/// What one call adds to its session: which text is new, and what the resulting version contains. A plain class: the
/// call talks to the persistence actor and the device; this class decides what to ask and what to keep.
///
/// A turn has two texts. One is fed; for chats it includes the template's opening of the answer, which clients never
/// see. The other is its segment, by which a resent history is recognised: the turn's messages and the answer as the
/// client got it. Both begin with the blank line that separates the turn from the previous one.
class session_turn {
 public:
  /// From a request with a session; renders its messages.
  explicit session_turn(const protocol::generation_request& request);

  /// The question to the persistence actor; once.
  [[nodiscard]] persistence::open_session question(persistence::return_address reply, std::string initial_state,
                                                   steady_time deadline);
  /// The text to tokenise and feed after the session's content; empty if an answer is continued. Call it once.
  /// Errors: invalid_argument if the request has no new message.
  [[nodiscard]] result<protocol::fed_text> begin(persistence::session_opened opened);

  /// The beginning of a raw prompt that the session has already; after begin().
  [[nodiscard]] std::string_view known_prompt() const { return std::string_view(raw_).substr(0, from_); }

  /// A refusal in the terms of this route.
  [[nodiscard]] error in_own_words(error why) const;

  [[nodiscard]] const persistence::session_opened& opened() const { return opened_; }
  [[nodiscard]] const std::string& id() const { return fields_.id; }
  /// The leading system text of the rendered request; empty: none.
  [[nodiscard]] std::string_view system_text() const {
    return std::string_view(chat_.turns).substr(0, chat_.system_bytes);
  }
  [[nodiscard]] bool stored() const { return stored_; }
  [[nodiscard]] bool stores_on_disconnect() const { return stored_ && fields_.store_on_disconnect; }
  /// The turn is a response, and its key is the response's id.
  [[nodiscard]] bool responds() const { return fields_.responds; }
  [[nodiscard]] const std::string& key() const { return fields_.request_key; }
  /// Digest of the request, for its Idempotency-Key (protocol::request_digest); logged with the turn.
  void set_digest(std::optional<std::uint64_t> digest) { digest_ = digest; }
  /// Why the turn that already has this key is not the answer; nothing: it is. Turns logged by older versions have no
  /// digest, and may be the answer to any body.
  [[nodiscard]] std::optional<error> refusal_of(const persistence::version_record& done) const;
  [[nodiscard]] bool continues() const { return opened_.unfinished.has_value(); }
  /// How the prompt of the continued answer ends.
  [[nodiscard]] protocol::answer_form continued_form() const;

  /// The turn's own tokens, once they are known: of the text from begin(), or of the answer that is continued.
  void set_prompt(std::vector<token_id> tokens);
  [[nodiscard]] const std::vector<token_id>& prompt() const { return prompt_; }
  /// Tokens of `prompt` that are an earlier answer, which is continued.
  [[nodiscard]] std::vector<token_id> earlier_answer() const;
  /// The parts that are fed, of the session and of the turn: client text and answers.
  [[nodiscard]] std::vector<engine::prompt_part> parts() const;
  /// Prompt tokens in `usage`, and how many of them were cached. `prefix` tokens came from the prefix cache.
  struct counts {
    std::uint64_t prompt = 0, cached = 0;
  };
  [[nodiscard]] counts usage(std::uint64_t prefix) const;

  /// The answer so far, if it is time for another progress note; longer turns are noted less often.
  [[nodiscard]] std::optional<persistence::version_record> note(const answer_state& answer,
                                                                const tokenizer::vocabulary& vocabulary);

  /// The result of the turn: for the device, the tokens of the final state; for the log, the version.
  struct ending {
    std::uint32_t sampled = 0;   ///< number of sampled tokens in the state
    std::vector<token_id> more;  ///< tokens after them: the rest of a token that a stop string cut
    std::uint32_t lacks = 0;     ///< tokens at the end of the version that the state does not have
    persistence::version_record version;
    std::string segment;
  };
  /// For an answer that is over. Errors: those of encoding a cut token's rest.
  [[nodiscard]] result<ending> end(const answer_state& answer, const tokenizer::vocabulary& vocabulary) const;

  [[nodiscard]] persistence::durability wanted() const {
    return fields_.power ? persistence::durability::power : persistence::durability::process;
  }
  /// What the answer says about the session; if not stored(), about the version that it continued.
  [[nodiscard]] protocol::session_note note_of(persistence::version_id version, persistence::durability durable,
                                               bool unfinished) const;

 private:
  [[nodiscard]] persistence::version_record record(const answer_state& answer, std::size_t sampled,
                                                   const std::vector<token_id>& more,
                                                   const tokenizer::vocabulary& vocabulary) const;
  void drop_known_messages();
  [[nodiscard]] std::string segment(const std::string& content) const;

  protocol::session_fields fields_;
  bool stored_, is_chat_;
  protocol::chat_style style_;
  protocol::think_mode think_;
  std::vector<protocol::chat_message> messages_;
  protocol::rendered_chat chat_;
  std::string raw_;
  std::string before_;         // the blank line before the turn, if there is one
  std::size_t from_ = 0;       // offset of the new text in the rendered or raw text
  std::string resent_prompt_;  // the turn's messages as they are resent, or its raw prompt
  persistence::session_opened opened_;
  std::vector<token_id> prompt_;
  std::uint32_t said_ = 0;  // tokens of prompt_ that the client sent
  std::size_t noted_ = 0, note_bytes_ = 0;
  std::optional<std::uint64_t> digest_;
};

/// The value of the header X-Session-State.
[[nodiscard]] std::string_view to_string(persistence::session_state state);
[[nodiscard]] std::string_view to_string(persistence::durability durable);

}  // namespace skein::request
