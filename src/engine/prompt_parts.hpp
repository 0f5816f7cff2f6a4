#pragma once
#include <cstdint>
#include <span>

/// How a prompt is divided into chunks if the engine has chunks (engine_info::chunk_tokens). The division depends on
/// the prompt alone, not on the free room of a tick, so that an answer depends on its request alone.
///
/// A part supplied by the client is computed in chunks, counted from the beginning of the part, except for its last
/// token, which each of n rows and each state of a mixture feeds separately. A remainder of at least half a chunk after
/// the last whole chunk is a chunk too; a shorter remainder and the last token are computed token by token. So is a
/// generated part, as it was when it was generated. A tick may end between chunks and anywhere among the other tokens.
namespace skein::engine {

struct prompt_part {
  std::uint32_t tokens = 0;
  bool sampled = false;  ///< a generated answer, or the tokens that settled one
};

/// How many tokens of a part supplied by the client, from the first, are computed in chunks. `chunk` is 0 if the engine
/// has no chunks.
[[nodiscard]] constexpr std::uint32_t chunked_tokens(std::uint32_t tokens, std::uint32_t chunk) {
  if (chunk == 0 || tokens == 0) return 0;
  const std::uint32_t rest = (tokens - 1) % chunk;
  return 2 * rest >= chunk ? tokens - 1 : tokens - 1 - rest;
}
[[nodiscard]] constexpr std::uint32_t chunked_tokens(const prompt_part& part, std::uint32_t chunk) {
  return part.sampled ? 0 : chunked_tokens(part.tokens, chunk);
}

/// Whether a sequence may pause after `position` tokens of these parts, so that its state can be copied there.
[[nodiscard]] bool may_cut(std::span<const prompt_part> parts, std::uint32_t chunk, std::uint32_t position);

struct prompt_piece {
  std::uint32_t tokens = 0;  ///< 0: the next chunk does not fit into `room`
  std::uint32_t chunked = 0;
};
/// The tokens that a row feeds next: from `from`, where may_cut() is true, to `end` at most, as many as fit into `room`
/// and into one row.
[[nodiscard]] prompt_piece next_piece(std::span<const prompt_part> parts, std::uint32_t chunk, std::uint32_t from,
                                      std::uint32_t end, std::uint32_t room);

}  // namespace skein::engine
