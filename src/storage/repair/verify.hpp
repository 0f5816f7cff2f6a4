#pragma once
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "storage/database/database.hpp"

namespace skein::storage {

/// The contents of a database after a full read.
struct verification {
  struct finding {
    std::string record;  ///< "version 3 of session number 7"
    std::string why;
  };
  std::uint64_t sessions = 0, versions = 0, running = 0, states = 0, prefixes = 0;  ///< intact ones
  std::uint64_t state_bytes = 0;                                                    ///< of states and prefixes
  std::uint64_t set_aside = 0;   ///< records in quarantine, found damaged earlier
  std::vector<finding> damaged;  ///< at most `findings_max` are kept
  std::uint64_t damaged_count = 0;
  static constexpr std::size_t findings_max = 1000;
};

/// Reads every record and checks it alone and against related records. Changes nothing; no other thread or process may
/// write meanwhile. Errors: cancelled, soon after `stop` is requested.
[[nodiscard]] result<verification> verify(database& db, const std::stop_token& stop = {});

}  // namespace skein::storage
