#pragma once
#include <cstdint>

namespace skein {

/// What the system says of this process; what it does not say is 0.
struct process_usage {
  double cpu_seconds = 0;         ///< of all threads, user and system
  double start_time_seconds = 0;  ///< Unix time
  std::uint64_t virtual_bytes = 0, resident_bytes = 0;
  std::uint64_t open_files = 0, open_files_max = 0;
  std::uint64_t threads = 0;
};

/// Asks /proc, which reads no disk.
[[nodiscard]] process_usage measure_process();

}  // namespace skein
