#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"

namespace skein::persistence {

/// Fingerprints of the ends of earlier prompts: the admission filter ("doorkeeper") of the prefix cache. Keeping a
/// state inside a prompt costs that prompt a tick, which is wasted if the prompt is never repeated. The table has a
/// fixed size; newer fingerprints replace older ones. A collision (one pair of prefixes in 2^64) costs one state.
class seen_prefixes {
 public:
  /// The largest multiple of `step` in (`from`, `end`] at which an earlier prompt of the same root ended. Records the
  /// largest multiple up to `end` as the end of this prompt. `step` is not 0.
  [[nodiscard]] std::optional<std::uint32_t> meet(const tenant_id& tenant, const std::string& root,
                                                  std::span<const token_id> tokens, std::uint32_t from,
                                                  std::uint32_t end, std::uint32_t step);

 private:
  static constexpr std::size_t places = std::size_t{1} << 16;
  std::vector<std::uint64_t> seen_ = std::vector<std::uint64_t>(places);
};

}  // namespace skein::persistence
