#pragma once
#include <string>
#include <string_view>

/// Framing of server-sent events. Clients parse line by line, so a data line must not contain a line break; compact
/// JSON has none.
namespace skein::protocol {

/// "data: <json>" and the empty line that ends an event. `json` must not contain a line break (checked).
[[nodiscard]] std::string sse_event(std::string_view json);

/// A comment that clients ignore; sent in long pauses to keep the connection alive.
inline constexpr std::string_view sse_keep_alive = ": keep-alive\n\n";

/// The last event of every stream.
inline constexpr std::string_view sse_done = "data: [DONE]\n\n";

}  // namespace skein::protocol
