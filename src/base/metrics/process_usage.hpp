#pragma once
#include <cstdint>

namespace skein {

/// Resource usage of this process as the system reports it; values that it does not report are 0.
struct process_usage {
  double cpu_seconds = 0;         ///< all threads, user and system time
  double start_time_seconds = 0;  ///< Unix time
  std::uint64_t virtual_bytes = 0, resident_bytes = 0;
  std::uint64_t open_files = 0, open_files_max = 0;
  std::uint64_t threads = 0;
};

/// Reads /proc; needs no disk access.
[[nodiscard]] process_usage measure_process();

}  // namespace skein
