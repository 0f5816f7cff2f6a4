#pragma once
#include <chrono>
#include <cstdint>

namespace skein::storage {

/// Unix time in milliseconds, used only for display and to choose what to evict first.
[[nodiscard]] inline std::int64_t wall_time_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace skein::storage
