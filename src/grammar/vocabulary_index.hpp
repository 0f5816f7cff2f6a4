#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary.hpp"

namespace skein::grammar {

/// A vocabulary prepared for masks: its trie in the order of a depth-first walk, and masks for what any grammar asks.
/// Immutable, shared by all grammars; about 3 MB for the World vocabulary.
class vocabulary_index {
 public:
  [[nodiscard]] static std::shared_ptr<const vocabulary_index> build(std::shared_ptr<const tokenizer::vocabulary> of);

  /// A node of a trie. Its descendants are the `below` nodes that follow it.
  struct trie_node {
    std::uint32_t below;
    token_id token;  ///< no_token: none ends here
    std::uint8_t byte;
    std::uint8_t depth;  ///< 0 below the root
  };
  /// All tokens; those that are plain text (see below); the others.
  [[nodiscard]] std::span<const trie_node> all() const { return all_; }
  [[nodiscard]] std::span<const trie_node> plain() const { return plain_; }
  [[nodiscard]] std::span<const trie_node> special() const { return special_; }

  /// The tokens of whole characters that stand for themselves in a JSON string: without quotation marks, backslashes
  /// and control characters; with at most `characters` of them.
  [[nodiscard]] std::span<const std::uint32_t> plain_mask(std::uint64_t characters) const;
  [[nodiscard]] std::size_t longest() const { return plain_masks_.size() - 1; }  ///< characters of a plain token

  [[nodiscard]] const tokenizer::vocabulary& vocabulary() const { return *vocabulary_; }
  [[nodiscard]] std::size_t words() const { return (vocabulary_->size() + 31) / 32; }

 private:
  vocabulary_index() = default;

  std::shared_ptr<const tokenizer::vocabulary> vocabulary_;
  std::vector<trie_node> all_, plain_, special_;
  std::vector<std::vector<std::uint32_t>> plain_masks_;  ///< by the number of characters
};

}  // namespace skein::grammar
