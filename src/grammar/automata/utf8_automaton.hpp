#pragma once
#include <compare>
#include <cstdint>
#include <vector>

#include "grammar/automata/code_set.hpp"

namespace skein::grammar {

/// The minimal automaton of the UTF-8 encodings of a set: what follows from a node depends on the byte only, and equal
/// ends of encodings are the same node. Letters of all scripts take some 200 nodes instead of 2,000.
struct utf8_automaton {
  struct edge {
    unsigned char low = 0, high = 0;
    std::uint32_t to = end;
    auto operator<=>(const edge&) const = default;
  };
  static constexpr std::uint32_t end = ~std::uint32_t{0};

  std::vector<std::vector<edge>> nodes;  ///< the last one is the root; edges lead to earlier nodes
};

/// `sequences` as utf8_sequences() returns them, at least one.
[[nodiscard]] utf8_automaton minimal_automaton(const std::vector<utf8_sequence>& sequences);

}  // namespace skein::grammar
