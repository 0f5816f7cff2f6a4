#pragma once
#include <span>

#include "base/error.hpp"
#include "config/load.hpp"

namespace skein::cli {

/// sysexits.h, as systemd knows them by name.
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

/// The only map from what went wrong to how the process ends.
[[nodiscard]] exit_code exit_code_of(error_kind kind);

/// no_input when all that is wrong is that named files or folders do not exist; usage when all faults are flags that
/// are wrong by themselves, else bad_config. Needs at least one fault.
[[nodiscard]] exit_code exit_code_of(std::span<const config::fault> faults);

}  // namespace skein::cli
