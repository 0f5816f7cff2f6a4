#include "engine/prompt_parts.hpp"

#include <algorithm>

namespace skein::engine {

bool may_cut(std::span<const prompt_part> parts, std::uint32_t chunk, std::uint32_t position) {
  for (const prompt_part& part : parts) {
    if (position < part.tokens) return position >= chunked_tokens(part, chunk) || position % chunk == 0;
    position -= part.tokens;
  }
  return position == 0;
}

prompt_piece next_piece(std::span<const prompt_part> parts, std::uint32_t chunk, std::uint32_t from, std::uint32_t end,
                        std::uint32_t room) {
  prompt_piece piece;
  std::uint32_t begin = 0;  // of the part
  for (const prompt_part& part : parts) {
    const std::uint32_t at = from + piece.tokens, part_end = begin + part.tokens;
    if (at < part_end) {
      const std::uint32_t chunks_end = begin + chunked_tokens(part, chunk);
      if (at < chunks_end) {
        if (piece.tokens > 0) return piece;  // a row's chunks come first
        const std::uint32_t last = std::min({chunks_end, end, from + room});
        piece.chunked = last == chunks_end ? last - from : (last - from) / chunk * chunk;
        piece.tokens = piece.chunked;
        if (from + piece.tokens < chunks_end) return piece;
      }
      piece.tokens = std::min({part_end, end, from + room}) - from;
      if (from + piece.tokens < part_end) return piece;
    }
    begin = part_end;
  }
  return piece;
}

}  // namespace skein::engine
