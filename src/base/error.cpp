#include "base/error.hpp"

namespace skein {

std::string_view to_string(error_kind kind) {
  switch (kind) {
    case error_kind::invalid_argument: return "invalid_argument";
    case error_kind::unsupported: return "unsupported";
    case error_kind::unauthorized: return "unauthorized";
    case error_kind::forbidden: return "forbidden";
    case error_kind::not_found: return "not_found";
    case error_kind::conflict: return "conflict";
    case error_kind::in_use: return "in_use";
    case error_kind::too_large: return "too_large";
    case error_kind::overloaded: return "overloaded";
    case error_kind::unavailable: return "unavailable";
    case error_kind::timeout: return "timeout";
    case error_kind::cancelled: return "cancelled";
    case error_kind::bad_file: return "bad_file";
    case error_kind::missing_file: return "missing_file";
    case error_kind::damaged: return "damaged";
    case error_kind::no_space: return "no_space";
    case error_kind::no_memory: return "no_memory";
    case error_kind::io: return "io";
    case error_kind::bad_config: return "bad_config";
    case error_kind::internal: return "internal";
  }
  return "unknown";
}

}  // namespace skein
