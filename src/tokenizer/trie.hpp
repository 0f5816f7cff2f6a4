#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "tokenizer/token_list.hpp"

namespace skein::tokenizer {

/// Splits text into tokens by greedy longest match. Immutable.
class trie {
 public:
  /// Errors: bad_file if the trie of the tokens would need too much memory, which no real vocabulary does.
  [[nodiscard]] static result<trie> build(const token_list& list);

  /// Appends the ids of `text`: the longest token at its beginning, then the longest at the beginning of the rest, and
  /// so on. Returns the number of bytes encoded, which is less than the size of `text` if no token begins with the next
  /// byte. A byte is visited once for each token that might have extended over it: hardly more than once in real text,
  /// at worst as often as the longest token has bytes.
  std::size_t encode(std::string_view text, std::vector<token_id>& out) const;

 private:
  // Packed, so that visited nodes stay in the caches: 2.4 MB for the World vocabulary.
  struct node {
    std::uint64_t first_child : 26;  // index of the child for the byte `lowest`
    std::uint64_t lowest : 8;        // smallest byte that has a child
    std::uint64_t children : 9;      // size of the range from the smallest to the largest byte that has a child: 0 to
                                     // 256
    std::uint64_t token : 21;        // id + 1; 0: no token ends here
  };
  static_assert(sizeof(node) == 8);

  std::vector<node> nodes_;  // the root is the first
};

}  // namespace skein::tokenizer
