#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace skein::protocol {

/// The beginning of a call up to its arguments, if the name comes first: `{"name": "add", "arguments": {`, where
/// `parameters` may stand for `arguments`, the object may be in a member `function`, and a list may begin before it.
struct call_head {
  std::string name;
  std::size_t bytes = 0;  ///< up to the opening bracket of the arguments
  int depth = 1;          ///< objects to close after the arguments
  bool in_list = false;
};

/// Whether a text begins with such a head. `open`: so far, but it is not complete.
struct head_found {
  std::optional<call_head> head;
  bool open = false;
};
[[nodiscard]] head_found find_head(std::string_view text);

}  // namespace skein::protocol
