#include "actors/persistence/states/thinning.hpp"

namespace skein::persistence {

std::vector<storage::version_id> thinnable(std::span<const storage::version_id> present, storage::version_id head) {
  std::vector<storage::version_id> out;
  for (std::size_t i = 0; i < present.size(); ++i) {
    const auto version = present[i];
    if (version > head) {
      out.push_back(version);
      continue;
    }
    if (i + 1 == present.size() || present[i + 1] > head) continue;  // the newest one
    const std::uint64_t newer = head - present[i + 1];
    const std::uint64_t older = i == 0 ? head : head - present[i - 1];  // the beginning needs no state
    if (newer > 0 && older <= 2 * newer) out.push_back(version);
  }
  return out;
}

}  // namespace skein::persistence
