#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"

namespace skein::persistence {

/// Ends of prompts that have come before, as fingerprints: the doorkeeper of the prefix cache. A state inside of a
/// prompt costs the prompt a tick, which a prompt that never comes again would pay for nothing. A fixed table, in which
/// a newer fingerprint takes the place of an older one; two prefixes of equal fingerprints, one pair in 2^64, cost a
/// state.
class seen_prefixes {
 public:
  /// The largest multiple of `step` above `from` and up to `end` tokens at which an earlier prompt of the same root had
  /// its end. From then on this one has its end at the largest multiple of all. `step` is not 0.
  [[nodiscard]] std::optional<std::uint32_t> meet(const tenant_id& tenant, const std::string& root,
                                                  std::span<const token_id> tokens, std::uint32_t from,
                                                  std::uint32_t end, std::uint32_t step);

 private:
  static constexpr std::size_t places = std::size_t{1} << 16;
  std::vector<std::uint64_t> seen_ = std::vector<std::uint64_t>(places);
};

}  // namespace skein::persistence
