#pragma once
#include <span>

#include "base/error.hpp"
#include "config/load.hpp"

namespace skein::cli {

/// Exit codes of sysexits.h, which systemd shows by name.
enum class exit_code : int {
  ok = 0,
  usage = 64,
  bad_data = 65,
  no_input = 66,
  unavailable = 69,
  internal = 70,
  io = 74,
  try_again = 75,
  no_permission = 77,
  bad_config = 78,
};

/// The only mapping from error kinds to exit codes.
[[nodiscard]] exit_code exit_code_of(error_kind kind);

/// no_input if all faults are missing files or folders; usage if all faults are invalid flags; else bad_config. Needs
/// at least one fault.
[[nodiscard]] exit_code exit_code_of(std::span<const config::fault> faults);

}  // namespace skein::cli
