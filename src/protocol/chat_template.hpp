#pragma once
#include <span>
#include <string>
#include <string_view>

#include "protocol/generation_request.hpp"

namespace skein::protocol {

/// Renders a conversation as the text that an RWKV chat model was trained on: turns "System: ...", "User: ...",
/// "Assistant: ...", "Observation: ..." (a tool's answer) joined by a blank line, then the opening of the next answer,
/// which never ends in a space: the next token brings its own.
///   system and developer messages that follow each other share one System turn, a line each
///   user, system and tool texts are normalised (a blank line inside a turn would look like its end): CRLF becomes LF,
///   runs of newlines become one, both ends are trimmed, indentation stays. Assistant texts are kept as they are, since
///   the model's own words are how a resent history is recognised.
/// A conversation that ends with an assistant's text is continued: the prompt ends with that text (without trailing
/// spaces), nothing opens a think block, and the answer holds only what comes after. An empty one there is dropped.
[[nodiscard]] std::string render_chat(std::span<const chat_message> messages, think_mode think,
                                      const model_preset& preset);

/// True when render_chat continues the last message instead of opening an answer.
[[nodiscard]] bool continues_answer(std::span<const chat_message> messages);

/// The fill-in-the-middle prompt of the G1c models and later: the answer is what stands between the two.
[[nodiscard]] std::string fim_prompt(std::string_view prefix, std::string_view suffix);

}  // namespace skein::protocol
