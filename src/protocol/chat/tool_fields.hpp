#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "protocol/requests/generation_request.hpp"
#include "protocol/requests/object_reader.hpp"
#include "protocol/responses/answer.hpp"

namespace skein::protocol {

/// Reads tools, tool_choice and parallel_tool_calls of the chat and the Responses API, after the messages. Adds a
/// system message that describes the tools, and the constraint that calls must match: from the start of the answer if a
/// call is required, from the mark of a call if it is not. `form`: of a conversation with tools. `namespaces`:
/// functions may be of one, as in the Responses API. Reports errors to the body's fault.
void read_tools(const object_reader& body, turn_form form, bool namespaces, generation_request& out);
/// The form that a model's setting names; auto: that of its own chat template.
[[nodiscard]] turn_form tool_form(const model_preset& preset);

/// The calls of an assistant's message, `tool_calls`, in a history.
[[nodiscard]] std::vector<tool_call> read_called(const object_reader& message);
/// The arguments of a call in a history at `name`: the text of an object.
[[nodiscard]] std::string read_arguments(const object_reader& function, std::string_view name);

}  // namespace skein::protocol
