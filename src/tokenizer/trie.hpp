#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "tokenizer/token_list.hpp"

namespace skein::tokenizer {

/// Finds the longest token that a text begins with, again and again. Immutable.
class trie {
 public:
  /// Error (bad_file): the tokens differ so wildly that their trie would need too much memory; no real vocabulary does.
  [[nodiscard]] static result<trie> build(const token_list& list);

  /// Appends the ids of `text`: the longest token that it begins with, then the longest that the rest begins with, and
  /// so on. Returns how many bytes that took: less than `text` has where no token begins with the next byte. A byte is
  /// looked at once for each token that could have reached over it: in real text hardly more than once, at worst as
  /// often as the longest token has bytes.
  std::size_t encode(std::string_view text, std::vector<token_id>& out) const;

 private:
  // Packed, because the nodes that a text visits should stay in the caches: 2.4 MB for the World vocabulary.
  struct node {
    std::uint64_t first_child : 26;  // index of the child for the byte `lowest`
    std::uint64_t lowest : 8;        // smallest byte that has a child
    std::uint64_t children : 9;      // bytes from the smallest to the largest that has a child: 0 to 256
    std::uint64_t token : 21;        // id + 1; 0: no token ends here
  };
  static_assert(sizeof(node) == 8);

  std::vector<node> nodes_;  // the root is the first
};

}  // namespace skein::tokenizer
