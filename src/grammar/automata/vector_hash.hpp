#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace skein::grammar {

struct vector_hash {
  std::size_t operator()(const std::vector<std::uint32_t>& key) const {
    std::uint64_t h = 0x9e3779b97f4a7c15u + key.size();
    for (const auto x : key) h = (h ^ x) * 0xff51afd7ed558ccdu, h ^= h >> 32;
    return static_cast<std::size_t>(h);
  }
};

}  // namespace skein::grammar
