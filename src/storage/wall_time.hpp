#pragma once
#include <chrono>
#include <cstdint>

namespace skein::storage {

/// Unix time, for people and for what is thrown away first; nothing else hangs on it.
[[nodiscard]] inline std::int64_t wall_time_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace skein::storage
