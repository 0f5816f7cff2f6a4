#pragma once
#include <cstdint>
#include <ctime>
#include <string>

#include "actors/connection/http/http.hpp"

namespace skein::connection {

/// The parts of a response head that the connection adds.
struct response_frame {
  enum class body { none, sized, chunked, until_close };
  enum class persistence { implied, close, keep_alive };  ///< whether a Connection field is sent, and its value

  body kind = body::none;
  std::uint64_t content_length = 0;  ///< of a sized body
  persistence after = persistence::implied;
  std::time_t now = 0;
};

/// Status line and fields, including the empty line. Line breaks in values become spaces.
[[nodiscard]] std::string response_head(unsigned status, const header_list& headers, const response_frame& frame);

/// Whether a response of that status may have a body, and so a Content-Length.
[[nodiscard]] bool status_has_body(unsigned status);

}  // namespace skein::connection
