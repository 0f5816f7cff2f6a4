#pragma once
#include <string>
#include <string_view>

/// Framing of server-sent events. Clients read bytes line by line, so a data line must hold no line break: compact
/// JSON has none.
namespace skein::protocol {

/// "data: <json>" and the empty line that ends an event. `json` has no line break (checked).
[[nodiscard]] std::string sse_event(std::string_view json);

/// A comment that clients skip; sent in long silences so that nobody takes the connection for dead.
inline constexpr std::string_view sse_keep_alive = ": keep-alive\n\n";

/// The last event of every stream.
inline constexpr std::string_view sse_done = "data: [DONE]\n\n";

}  // namespace skein::protocol
