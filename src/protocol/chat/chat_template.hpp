#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/requests/generation_request.hpp"

namespace skein::protocol {

/// Renders a conversation in the format that RWKV chat models are trained on: turns "System: ...", "User: ...",
/// "Assistant: ...", "Observation: ..." (a tool's answer) or "User: Function output:" (the result of a call), with
/// names from the style, joined by blank lines, then the opening of the next answer. The opening never ends in a space,
/// because the next token includes it.
///   Consecutive system and developer messages share one System turn, one line each.
///   User, system and tool texts are normalised, because a blank line inside a turn would look like its end: CRLF
///   becomes LF, runs of newlines become one, both ends are trimmed, indentation stays. Assistant texts are unchanged,
///   because they identify a resent history.
/// If the last message is the assistant's, the answer continues it: the prompt ends with its text (without trailing
/// spaces), opens no think block, and the answer has only the new text. An empty last assistant message is dropped.
/// With headings: turns "### System", "### User", "### Assistant" and "### Tool Output" (with fenced JSON), each a line
/// before the text, which ends with a newline. The template bot and custom ones have other texts around names.
/// A raw message is inserted unchanged. With a style that opens no answer, the prompt ends with a turn's blank line.
[[nodiscard]] std::string render_chat(std::span<const chat_message> messages, think_mode think,
                                      const chat_style& style);

/// A rendered conversation in the parts that a session needs. The fed text is a part of `turns` with `wish` inserted,
/// then `opening`. When a client resends the conversation with the answer, the text is `turns`, `answer_lead` and the
/// content as the client received it (see resent_answer).
struct rendered_chat {
  std::string turns;              ///< each followed by a blank line, except a last answer that is continued
  std::vector<std::size_t> ends;  ///< by message: the end of its turn in `turns`
  std::size_t system_bytes = 0;   ///< length of the leading system text; 0: none
  std::size_t wish_at = 0;        ///< where in `turns` to insert `wish`
  std::string wish;               ///< the thinking instruction, for this answer only
  std::string opening;            ///< of the answer; empty if the last message is continued
  std::string answer_lead;        ///< "Assistant:"
  std::string gap = " ", end_of_turn = "\n\n";  ///< between a name and its text; after a turn
};
[[nodiscard]] rendered_chat render_turns(std::span<const chat_message> messages, think_mode think,
                                         const chat_style& style);

/// The text to feed if the first `from` bytes of a rendered conversation are already in the state.
[[nodiscard]] fed_text text_to_feed(const rendered_chat& chat, std::size_t from);

/// An answer as render_chat writes it in a resent conversation, without the blank line after it.
[[nodiscard]] std::string resent_answer(const rendered_chat& chat, std::string_view content);

/// The bytes that a message takes at most as the text of a turn.
[[nodiscard]] std::size_t rendered_bytes_max(const chat_message& message, const chat_style& style);

/// The form of a rendered prompt that ends with the opening of an answer. `usual`: the style of the model.
[[nodiscard]] turn_form turns_of(std::string_view prompt, const chat_style& usual = {});

/// Sets the texts of the model's template (setting `chat_template`).
void choose_template(const model_preset& preset, chat_style& style);

/// Whether render_chat continues the last message instead of opening an answer.
[[nodiscard]] bool continues_answer(std::span<const chat_message> messages);

/// The fill-in-the-middle prompt of the G1c models and later: the answer is the text between prefix and suffix.
[[nodiscard]] std::string fim_prompt(std::string_view prefix, std::string_view suffix);

}  // namespace skein::protocol
