#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "grammar/token_trie.hpp"
#include "tokenizer/vocabulary.hpp"

namespace skein::grammar {

/// A vocabulary prepared for masks. Nearly all tokens of a vocabulary stand for themselves within a JSON string. The
/// others of interest are few: those that close a string, and those with an escape sequence. So tokens are sorted here
/// by what they do in a string, once for all grammars; a mask inside of a string is then put together from masks and
/// short lists. See mask_builder. Immutable, shared by all grammars; about 8 MB for the World vocabulary.
class vocabulary_index {
 public:
  [[nodiscard]] static std::shared_ptr<const vocabulary_index> build(std::shared_ptr<const tokenizer::vocabulary> of);

  [[nodiscard]] const token_trie& all() const { return all_; }

  /// The tokens of whole characters that stand for themselves in a JSON string: without quotation marks, backslashes
  /// and control characters; with at most `characters` of them.
  [[nodiscard]] std::span<const std::uint32_t> plain_mask(std::uint64_t characters) const;
  [[nodiscard]] std::size_t longest() const { return plain_masks_.size() - 1; }  ///< characters of a plain token
  /// Plain tokens, and those that end within a character but are plain before it.
  [[nodiscard]] const token_trie& raw() const { return raw_; }
  /// The plain tokens whose characters are all of certain groups, without any of other groups.
  struct group_tokens {
    std::uint8_t groups = 0;
    std::vector<token_id> few;
    std::vector<std::uint32_t> mask;  ///< instead of `few`, if there are many
  };
  [[nodiscard]] const std::vector<group_tokens>& by_groups() const { return by_groups_; }

  /// The tokens that stay within a JSON string but are not plain, and the fewest characters of a string that has one.
  struct inner_token {
    token_id token;
    std::uint32_t characters;
    std::uint8_t groups;  ///< see token_trie
    bool raw;             ///< without escape sequences
  };
  [[nodiscard]] const std::vector<inner_token>& inner() const { return inner_; }
  /// All tokens that stay within a JSON string.
  [[nodiscard]] std::span<const std::uint32_t> text_mask() const { return text_mask_; }
  /// A limit of at least this number of characters excludes no token, closing ones included.
  [[nodiscard]] std::size_t characters_max() const { return characters_max_; }

  /// The tokens that close a string: `characters` characters, a quotation mark and a tail. tails() has the numbers of
  /// the tails instead of tokens.
  struct closing_token {
    token_id token;
    std::uint32_t characters;
    std::uint32_t tail;
  };
  [[nodiscard]] const std::vector<closing_token>& closing() const { return closing_; }
  [[nodiscard]] const token_trie& tails() const { return tails_; }
  [[nodiscard]] const token_trie& closing_trie() const { return closing_trie_; }
  /// Closing tokens and those with escape sequences.
  [[nodiscard]] const token_trie& special() const { return special_; }

  /// Tokens that may come between two tokens of JSON: blanks, which are all alike, and then something or nothing.
  /// starts() has the numbers of what comes after the blanks instead of tokens.
  struct blank_token {
    token_id token;
    std::uint32_t blanks;
  };
  [[nodiscard]] const token_trie& starts() const { return starts_; }
  [[nodiscard]] std::span<const blank_token> with_start(token_id number) const {
    const auto from = start_from_[static_cast<std::size_t>(number)];
    return std::span(by_start_).subspan(from, start_from_[static_cast<std::size_t>(number) + 1] - from);
  }

  [[nodiscard]] const tokenizer::vocabulary& vocabulary() const { return *vocabulary_; }
  [[nodiscard]] std::size_t words() const { return (vocabulary_->size() + 31) / 32; }

 private:
  vocabulary_index() = default;
  void add_masks(const std::vector<token_trie::entry>& plain);
  void add_starts(const std::vector<token_trie::entry>& all);

  std::shared_ptr<const tokenizer::vocabulary> vocabulary_;
  token_trie all_, raw_, closing_trie_, special_, tails_, starts_;
  std::vector<std::vector<std::uint32_t>> plain_masks_;  ///< by the number of characters
  std::vector<group_tokens> by_groups_;
  std::vector<inner_token> inner_;
  std::size_t characters_max_ = 0;
  std::vector<std::uint32_t> text_mask_;
  std::vector<blank_token> by_start_;
  std::vector<std::uint32_t> start_from_;  ///< of each start, and the end
  std::vector<closing_token> closing_;
};

}  // namespace skein::grammar
