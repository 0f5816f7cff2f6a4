#include "grammar/vocabulary_index.hpp"

#include <algorithm>

#include "base/utf8.hpp"

namespace skein::grammar {
namespace {

struct entry {
  std::string_view text;
  token_id token;
};

bool is_plain(std::string_view text) {
  if (!is_utf8(text)) return false;
  return std::ranges::none_of(text,
                              [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\'; });
}

constexpr std::size_t bytes_max = 255;  // of a token; longer ones are never allowed

/// The trie of sorted texts: each text adds the nodes that it does not share with the one before.
std::vector<vocabulary_index::trie_node> walk_of(const std::vector<entry>& sorted) {
  std::vector<vocabulary_index::trie_node> nodes;
  std::vector<std::uint32_t> path;
  std::string_view before;
  const auto close = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back())
      nodes[path.back()].below = static_cast<std::uint32_t>(nodes.size() - path.back() - 1);
  };
  for (const auto& [text, token] : sorted) {
    const auto shared = static_cast<std::size_t>(std::ranges::mismatch(before, text).in1 - before.begin());
    close(shared);
    for (std::size_t i = shared; i < text.size(); ++i) {
      path.push_back(static_cast<std::uint32_t>(nodes.size()));
      nodes.push_back({0, no_token, static_cast<std::uint8_t>(text[i]), static_cast<std::uint8_t>(i)});
    }
    if (!path.empty()) nodes[path.back()].token = token;
    before = text;
  }
  close(0);
  return nodes;
}

}  // namespace

std::shared_ptr<const vocabulary_index> vocabulary_index::build(std::shared_ptr<const tokenizer::vocabulary> of) {
  auto made = std::shared_ptr<vocabulary_index>(new vocabulary_index);
  std::vector<entry> all, plain, special;
  for (std::uint32_t id = 0; id < of->size(); ++id) {
    const auto token = static_cast<token_id>(id);
    const auto text = of->text(token);
    if (text.empty() || text.size() > bytes_max) continue;
    all.push_back({text, token});
    (is_plain(text) ? plain : special).push_back({text, token});
  }
  made->vocabulary_ = std::move(of);
  for (auto* list : {&all, &plain, &special}) std::ranges::sort(*list, {}, &entry::text);
  made->all_ = walk_of(all);
  made->plain_ = walk_of(plain);
  made->special_ = walk_of(special);
  std::size_t longest = 0;
  for (const auto& [text, token] : plain) longest = std::max(longest, utf8_length(text));
  made->plain_masks_.assign(longest + 1, std::vector<std::uint32_t>(made->words()));
  for (const auto& [text, token] : plain)
    for (std::size_t n = utf8_length(text); n <= longest; ++n)
      made->plain_masks_[n][static_cast<std::size_t>(token) / 32] |= 1u << (token % 32);
  return made;
}

std::span<const std::uint32_t> vocabulary_index::plain_mask(std::uint64_t characters) const {
  return plain_masks_[std::min<std::uint64_t>(characters, longest())];
}

}  // namespace skein::grammar
