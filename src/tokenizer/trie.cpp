// A trie whose nodes store their children contiguously in one array, from the smallest byte that has a child to the
// largest: the child for a byte is `first_child + byte - lowest`, so a step is a subtraction, a comparison and one
// load. Entries for bytes without a child are nodes with no token and no children: a walk into one ends with the next
// step, so entries need no in-use mark. The World vocabulary has 310,000 entries for 116,000 nodes: smaller than a hash
// table of the edges and, unlike a double array, filled in one pass without a search for free entries. Nodes are laid
// out breadth first, so that the upper levels, where every walk begins, are adjacent.
#include "tokenizer/trie.hpp"

#include <utility>

namespace skein::tokenizer {
namespace {

constexpr std::size_t slots_max = std::size_t{1} << 23;  // 64 MiB

/// A node to be filled: the sorted tokens [begin, end) all begin with the bytes on the path to it.
struct pending_node {
  std::size_t slot;
  std::size_t begin;
  std::size_t end;
};

}  // namespace

result<trie> trie::build(const token_list& list) {
  const auto& tokens = list.tokens;
  const auto byte_at = [&](std::size_t i, std::size_t depth) {
    return static_cast<unsigned char>(list.bytes[tokens[i].offset + depth]);
  };
  trie made;
  made.nodes_.resize(1);
  // The masks below do not change values; they tell the compiler that a value fits its bit field.
  std::vector<pending_node> level{{0, 0, tokens.size()}};
  for (std::size_t depth = 0; !level.empty(); ++depth) {
    std::vector<pending_node> next_level;
    for (auto [slot, begin, end] : level) {
      if (begin < end && tokens[begin].length == depth) {
        made.nodes_[slot].token = (static_cast<std::uint32_t>(tokens[begin].id) + 1) & 0x1fffff;
        ++begin;
      }
      if (begin == end) continue;

      const unsigned char lowest = byte_at(begin, depth);
      const std::size_t children = byte_at(end - 1, depth) - lowest + std::size_t{1};
      const std::size_t first_child = made.nodes_.size();
      if (first_child + children > slots_max)
        return error{error_kind::bad_file, "the trie of the tokens is too large", {}};
      made.nodes_[slot].first_child = first_child & 0x3ffffff;
      made.nodes_[slot].lowest = lowest;
      made.nodes_[slot].children = children & 0x1ff;
      made.nodes_.resize(first_child + children);

      while (begin < end) {
        const unsigned char byte = byte_at(begin, depth);
        std::size_t next = begin + 1;
        while (next < end && byte_at(next, depth) == byte) ++next;
        next_level.push_back({first_child + byte - lowest, begin, next});
        begin = next;
      }
    }
    level = std::move(next_level);
  }
  return made;
}

std::size_t trie::encode(std::string_view text, std::vector<token_id>& out) const {
  const node root = nodes_.front();
  std::size_t at = 0;
  while (at < text.size()) {
    node here = root;
    std::uint64_t token = 0;
    std::size_t end = at;
    for (std::size_t i = at; i < text.size();) {
      const std::uint64_t child = std::uint64_t{static_cast<unsigned char>(text[i])} - here.lowest;
      if (child >= here.children) break;  // also true for a byte below `lowest`: the difference wraps around
      here = nodes_[here.first_child + child];
      ++i;
      if (here.token != 0) {
        token = here.token;
        end = i;
      }
    }
    if (token == 0) return at;
    out.push_back(static_cast<token_id>(token - 1));
    at = end;
  }
  return at;
}

}  // namespace skein::tokenizer
