#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/requests/generation_request.hpp"
#include "protocol/requests/object_reader.hpp"
#include "protocol/responses/answer.hpp"

namespace skein::protocol {

/// How tools are read.
struct tool_reading {
  turn_form form;               ///< of a conversation with tools
  bool namespaces;              ///< functions may be of one, as in the Responses API
  std::uint32_t functions_max;  ///< limits.tools_max
};
/// Reads tools, tool_choice and parallel_tool_calls of the chat and the Responses API, after the messages. Adds a
/// system message that describes the tools, and the constraint that calls must match: from the start of the answer if a
/// call is required, from the mark of a call if it is not. Reports errors to the body's fault.
void read_tools(const object_reader& body, const tool_reading& how, generation_request& out);
/// Whether read_tools() wrote this text for a request with these `tools`, which are JSON.
[[nodiscard]] bool describes_tools(std::string_view text, std::string_view tools);
/// The form that a model's setting names; auto: that of its own chat template.
[[nodiscard]] turn_form tool_form(const model_preset& preset);

/// The calls of an assistant's message, `tool_calls`, in a history.
[[nodiscard]] std::vector<tool_call> read_called(const object_reader& message);
/// The arguments of a call in a history at `name`: the text of an object.
[[nodiscard]] std::string read_arguments(const object_reader& function, std::string_view name);

}  // namespace skein::protocol
