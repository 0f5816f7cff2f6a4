#pragma once
#include <optional>
#include <string_view>

#include "protocol/requests/generation_request.hpp"
#include "protocol/requests/object_reader.hpp"

namespace skein::protocol {

/// The thinking mode for a value of reasoning_effort at `field`; nullopt if absent.
[[nodiscard]] std::optional<think_mode> read_effort(const object_reader& body, std::string_view field);

/// Reads whether an answer thinks and for how many tokens, in the spellings of all clients, into `think` and
/// `thoughts`. Of several fields the most specific one wins. A limit does not depend on `think`: an answer that is
/// continued thinks if it began so.
void read_thinking(const object_reader& body, const model_preset& preset, generation_request& out);

}  // namespace skein::protocol
