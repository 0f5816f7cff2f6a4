#include "grammar/token_trie.hpp"

#include <algorithm>

namespace skein::grammar {

std::uint8_t token_trie::group_of(unsigned char byte) {
  if (byte >= 'a' && byte <= 'z') return lower;
  if (byte >= 'A' && byte <= 'Z') return upper;
  if (byte >= '0' && byte <= '9') return digit;
  if (byte == ' ') return space;
  if (byte == '-' || byte == '.' || byte == '_') return joiner;
  if (byte < 0x80) return other;
  if (byte < 0xc0) return 0;
  const bool begins_space = byte == 0xc2 || (byte >= 0xe1 && byte <= 0xe3) || byte == 0xef;
  return begins_space ? special : letter;
}

token_trie::token_trie(std::vector<entry> entries) {
  if (!std::ranges::is_sorted(entries, {}, &entry::text)) std::ranges::sort(entries, {}, &entry::text);
  nodes_.reserve(2 * entries.size() + 1);  // as in the World vocabulary
  tokens_.reserve(entries.size());
  for (const auto& each : entries) tokens_.push_back(each.token);
  struct open {
    std::uint32_t node;
    std::size_t depth;
  };
  std::vector<open> pending{{0, 0}};
  nodes_.push_back({.end = static_cast<std::uint32_t>(entries.size())});
  while (!pending.empty()) {
    const auto [at, depth] = pending.back();
    pending.pop_back();
    auto from = nodes_[at].from;
    const auto end = nodes_[at].end;
    for (; from < end && entries[from].text.size() == depth; ++from) nodes_[at].token = entries[from].token;
    nodes_[at].first = static_cast<std::uint32_t>(nodes_.size());
    while (from < end) {
      const char byte = entries[from].text[depth];
      auto next = from;
      while (next < end && entries[next].text[depth] == byte) ++next;
      nodes_.push_back({.from = from, .end = next, .byte = static_cast<std::uint8_t>(byte)});
      from = next;
    }
    nodes_[at].children = static_cast<std::uint16_t>(nodes_.size() - nodes_[at].first);
    for (auto child = nodes_.size(); child > nodes_[at].first; --child)
      pending.push_back({static_cast<std::uint32_t>(child - 1), depth + 1});
  }
  for (auto at = nodes_.size(); at-- > 0;) {
    auto& node = nodes_[at];
    for (const auto& child : children(node)) {
      node.below = static_cast<std::uint8_t>(node.below | child.below | group_of(child.byte));
      node.height = std::max<std::uint8_t>(node.height, child.height + 1);
      node.plain_below = node.plain_below && is_plain(child);
    }
  }
}

/// True if all texts that begin with this byte of a first character are plain.
bool token_trie::is_plain(const node& child) const {
  const unsigned byte = child.byte;
  if (byte < 0x80) return byte >= 0x20 && byte != '"' && byte != '\\' && child.plain_below;
  if (byte < 0xc2 || byte > 0xf4) return false;
  const int more = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
  return continues_plain(child, more,
                         byte == 0xe0   ? 0xa0
                         : byte == 0xf0 ? 0x90
                                        : 0x80,
                         byte == 0xed   ? 0x9f
                         : byte == 0xf4 ? 0x8f
                                        : 0xbf);
}

/// The same within a character that needs `more` bytes, the next one low .. high.
bool token_trie::continues_plain(const node& within, int more, unsigned low, unsigned high) const {
  if (within.token != no_token) return false;
  for (const auto& child : children(within)) {
    if (child.byte < low || child.byte > high) return false;
    if (more == 1 ? !child.plain_below : !continues_plain(child, more - 1, 0x80, 0xbf)) return false;
  }
  return true;
}

}  // namespace skein::grammar
