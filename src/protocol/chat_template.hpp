#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/generation_request.hpp"

namespace skein::protocol {

/// Renders a conversation as the text that an RWKV chat model was trained on: turns "System: ...", "User: ...",
/// "Assistant: ...", "Observation: ..." (a tool's answer), or as the style names them, joined by a blank line, then the
/// opening of the next answer, which never ends in a space: the next token brings its own.
///   system and developer messages that follow each other share one System turn, a line each
///   user, system and tool texts are normalised (a blank line inside a turn would look like its end): CRLF becomes LF,
///   runs of newlines become one, both ends are trimmed, indentation stays. Assistant texts are kept as they are, since
///   the model's own words are how a resent history is recognised.
/// A conversation that ends with an assistant's text is continued: the prompt ends with that text (without trailing
/// spaces), nothing opens a think block, and the answer holds only what comes after. An empty one there is dropped.
/// A raw message stands as it is; after a style that opens no answer the prompt ends with a turn's blank line.
[[nodiscard]] std::string render_chat(std::span<const chat_message> messages, think_mode think,
                                      const chat_style& style);

/// A conversation in the parts that a session needs. What is fed is a part of `turns`, with the wish put in, and then
/// the opening; how the same turns look when they are resent with the answer is `turns`, `answer_lead` and the content
/// as the client got it (see resent_answer).
struct rendered_chat {
  std::string turns;              ///< each with the blank line after it; a last answer that is continued without
  std::vector<std::size_t> ends;  ///< by message: where its turn ends in `turns`
  std::size_t system_bytes = 0;   ///< of the system text that the conversation begins with; 0: none
  std::size_t wish_at = 0;        ///< where in `turns` the wish belongs
  std::string wish;               ///< how to think, for this answer only
  std::string opening;            ///< of the answer; empty where the last message is continued
  std::string answer_lead;        ///< "Assistant:"
};
[[nodiscard]] rendered_chat render_turns(std::span<const chat_message> messages, think_mode think,
                                         const chat_style& style);

/// What is fed of a rendered conversation when its first `from` bytes are known already.
[[nodiscard]] fed_text text_to_feed(const rendered_chat& chat, std::size_t from);

/// An answer as render_chat writes it in a conversation that is resent, without the blank line after it.
[[nodiscard]] std::string resent_answer(const rendered_chat& chat, std::string_view content);

/// True when render_chat continues the last message instead of opening an answer.
[[nodiscard]] bool continues_answer(std::span<const chat_message> messages);

/// The fill-in-the-middle prompt of the G1c models and later: the answer is what stands between the two.
[[nodiscard]] std::string fim_prompt(std::string_view prefix, std::string_view suffix);

}  // namespace skein::protocol
