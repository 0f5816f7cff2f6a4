#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace skein::grammar {

/// Byte strings as a tree, with a number at the end of each: tokens of a vocabulary. The children of a node are
/// neighbours, so that those with a wrong byte are skipped without being visited.
class token_trie {
 public:
  struct entry {
    std::string_view text;
    token_id token;
  };
  struct node {
    std::uint32_t first = 0;          ///< of its children, which have increasing bytes
    token_id token = no_token;        ///< no_token: none ends here
    std::uint32_t from = 0, end = 0;  ///< the tokens here and below are tokens()[from .. end)
    std::uint16_t children = 0;
    std::uint8_t byte = 0;
    std::uint8_t below = 0;   ///< the groups of the bytes below
    std::uint8_t height = 0;  ///< bytes of the longest text below
    bool plain_below = true;  ///< all texts below are whole characters that stand for themselves in a JSON string
  };
  /// Texts have at most `bytes_max` bytes.
  static constexpr std::size_t bytes_max = 255;

  token_trie() : token_trie(std::vector<entry>()) {}
  explicit token_trie(std::vector<entry> entries);

  [[nodiscard]] const node& root() const { return nodes_.front(); }
  [[nodiscard]] const node& operator[](std::uint32_t at) const { return nodes_[at]; }
  [[nodiscard]] std::span<const node> children(const node& of) const { return {nodes_.data() + of.first, of.children}; }
  /// All tokens, sorted by their texts.
  [[nodiscard]] const std::vector<token_id>& tokens() const { return tokens_; }

  /// Bytes that patterns often treat alike. Bytes within a character have no group.
  enum group : std::uint8_t {
    lower = 1,
    upper = 2,
    digit = 4,
    space = 8,
    joiner = 16,   ///< - . _
    other = 32,    ///< of ASCII
    letter = 64,   ///< the first byte of other characters, except for:
    special = 128  ///< those with which white space and line ends begin, too
  };
  [[nodiscard]] static std::uint8_t group_of(unsigned char byte);

 private:
  [[nodiscard]] bool is_plain(const node& child) const;
  [[nodiscard]] bool continues_plain(const node& within, int more, unsigned low, unsigned high) const;

  std::vector<node> nodes_;
  std::vector<token_id> tokens_;
};

}  // namespace skein::grammar
