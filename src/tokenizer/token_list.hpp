#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace skein::tokenizer {

/// The tokens of a vocabulary and their bytes: not empty, unique ids and texts, sorted by bytes.
struct token_list {
  struct token {
    token_id id;
    std::uint32_t offset;  ///< into `bytes`
    std::uint32_t length;
  };
  std::string bytes;
  std::vector<token> tokens;

  [[nodiscard]] std::string_view text(const token& t) const {
    return std::string_view(bytes).substr(t.offset, t.length);
  }
};

}  // namespace skein::tokenizer
