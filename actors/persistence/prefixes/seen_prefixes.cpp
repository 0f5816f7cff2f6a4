#include "actors/persistence/prefixes/seen_prefixes.hpp"

#include <functional>

#include "base/check.hpp"

namespace skein::persistence {
namespace {

/// The finaliser of SplitMix64: every bit of the sum reaches every bit of the result.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash += value + 0x9e3779b97f4a7c15;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return hash ^ (hash >> 31);
}

}  // namespace

std::optional<std::uint32_t> seen_prefixes::meet(const tenant_id& tenant, const std::string& root,
                                                 std::span<const token_id> tokens, std::uint32_t from,
                                                 std::uint32_t end, std::uint32_t step) {
  check(step > 0);
  check(end <= tokens.size());
  std::uint64_t hash = mixed(std::hash<std::string>()(tenant), std::hash<std::string>()(root));
  std::optional<std::uint32_t> last;
  std::uint32_t position = 0;
  for (; position + step <= end; position += step) {
    for (const token_id token : tokens.subspan(position, step)) hash = mixed(hash, static_cast<std::uint64_t>(token));
    if (position + step > from && seen_[hash % places] == hash) last = position + step;
  }
  if (position > 0) seen_[hash % places] = hash;
  return last;
}

}  // namespace skein::persistence
