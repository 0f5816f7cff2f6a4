#pragma once
#include <cstdint>
#include <span>

/// How the tokens of a prompt are computed, where an engine has chunks (engine_info::chunk_tokens): by what they are,
/// and not by what a tick has room for, so that an answer depends on its request alone.
///
/// A part of a prompt that a client brought goes in chunks, counted from the part's beginning, but for its last token:
/// n rows, and the states of a mixture, feed that one each for itself. Behind the last whole chunk, half a chunk and
/// more is a chunk too; fewer tokens, and the last one, go token by token. So does a part that was drawn, as it was
/// when it was drawn. A tick may end between chunks, and anywhere among the other tokens.
namespace skein::engine {

struct prompt_part {
  std::uint32_t tokens = 0;
  bool drawn = false;  ///< an answer, or what settled one
};

/// Of a part that a client brought, how many of its tokens go in chunks: the first ones. `chunk`: 0: there are none.
[[nodiscard]] constexpr std::uint32_t chunked_tokens(std::uint32_t tokens, std::uint32_t chunk) {
  if (chunk == 0 || tokens == 0) return 0;
  const std::uint32_t rest = (tokens - 1) % chunk;
  return 2 * rest >= chunk ? tokens - 1 : tokens - 1 - rest;
}
[[nodiscard]] constexpr std::uint32_t chunked_tokens(const prompt_part& part, std::uint32_t chunk) {
  return part.drawn ? 0 : chunked_tokens(part.tokens, chunk);
}

/// Whether a sequence may pause after `position` tokens of these parts, so that its state can be copied there.
[[nodiscard]] bool may_cut(std::span<const prompt_part> parts, std::uint32_t chunk, std::uint32_t position);

struct prompt_piece {
  std::uint32_t tokens = 0;  ///< 0: the next chunk does not fit
  std::uint32_t chunked = 0;
};
/// What a row feeds next of these parts: of the tokens from `from` on, which may_cut() allows, to `end` at most, as
/// many as fit into `room` and into one row.
[[nodiscard]] prompt_piece next_piece(std::span<const prompt_part> parts, std::uint32_t chunk, std::uint32_t from,
                                      std::uint32_t end, std::uint32_t room);

}  // namespace skein::engine
