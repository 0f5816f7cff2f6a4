#include "app/exit_code.hpp"

#include <algorithm>

namespace skein::cli {

exit_code exit_code_of(error_kind kind) {
  switch (kind) {
    case error_kind::invalid_argument: return exit_code::usage;
    case error_kind::unsupported:
    case error_kind::conflict:
    case error_kind::too_large:
    case error_kind::damaged:
    case error_kind::bad_file: return exit_code::bad_data;
    case error_kind::not_found:
    case error_kind::missing_file: return exit_code::no_input;
    case error_kind::no_memory:
    case error_kind::unavailable: return exit_code::unavailable;
    case error_kind::in_use:
    case error_kind::overloaded:
    case error_kind::timeout:
    case error_kind::cancelled: return exit_code::try_again;
    case error_kind::no_space:
    case error_kind::io: return exit_code::io;
    case error_kind::unauthorized:
    case error_kind::forbidden: return exit_code::no_permission;
    case error_kind::bad_config: return exit_code::bad_config;
    case error_kind::internal: return exit_code::internal;
  }
  return exit_code::internal;
}

exit_code exit_code_of(std::span<const config::fault> faults) {
  const auto is_missing = [](const config::fault& f) { return f.kind == config::fault_kind::missing; };
  if (std::ranges::all_of(faults, is_missing)) return exit_code::no_input;
  const bool all_usage = std::all_of(faults.begin(), faults.end(), [](const config::fault& f) {
    return f.where.kind == config::origin_kind::flag && f.kind != config::fault_kind::conflict;
  });
  return all_usage ? exit_code::usage : exit_code::bad_config;
}

}  // namespace skein::cli
