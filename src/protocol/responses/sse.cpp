#include "protocol/responses/sse.hpp"

#include "base/check.hpp"

namespace skein::protocol {

std::string sse_event(std::string_view json) {
  check(json.find_first_of("\r\n") == std::string_view::npos, "a data line must not contain a line break");
  std::string event;
  event.reserve(json.size() + 8);
  return event.append("data: ").append(json).append("\n\n");
}

}  // namespace skein::protocol
