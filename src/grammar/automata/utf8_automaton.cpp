#include "grammar/automata/utf8_automaton.hpp"

#include <map>
#include <span>
#include <utility>

namespace skein::grammar {
namespace {

using edge = utf8_automaton::edge;

class builder {
 public:
  /// The node of sequences that are equal in their first `depth` bytes, at most 3. They are sorted, and two of them
  /// have either the same range of bytes at a place or ranges that do not overlap.
  std::uint32_t node(std::span<const utf8_sequence> of, int depth) {
    std::vector<edge> edges;
    while (!of.empty()) {
      const auto [low, high] = of.front().part[depth];
      std::size_t same = 1;
      while (same < of.size() && of[same].part[depth].first == low) ++same;
      const auto to = of.front().length == depth + 1 ? utf8_automaton::end : node(of.first(same), depth + 1);
      if (!edges.empty() && edges.back().high + 1 == low && edges.back().to == to)
        edges.back().high = high;
      else
        edges.push_back({low, high, to});
      of = of.subspan(same);
    }
    const auto [place, is_new] = known_.try_emplace(edges, static_cast<std::uint32_t>(made.nodes.size()));
    if (is_new) made.nodes.push_back(std::move(edges));
    return place->second;
  }

  utf8_automaton made;

 private:
  std::map<std::vector<edge>, std::uint32_t> known_;
};

}  // namespace

utf8_automaton minimal_automaton(const std::vector<utf8_sequence>& sequences) {
  builder b;
  b.node(sequences, 0);
  return std::move(b.made);
}

}  // namespace skein::grammar
