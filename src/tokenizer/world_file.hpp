#pragma once
#include <cstddef>
#include <string_view>

#include "base/result.hpp"
#include "tokenizer/token_list.hpp"

namespace skein::tokenizer {

/// Limits on a vocabulary file. The World vocabulary has 1 MiB and 65529 tokens of at most 128 bytes.
inline constexpr std::size_t world_file_bytes_max = 32 << 20;
inline constexpr std::uint32_t world_ids_max = 1 << 20;
inline constexpr std::size_t token_bytes_max = 1024;
inline constexpr std::size_t world_line_bytes_max = 10 * token_bytes_max + 64;  // `\U00000041` is one byte

/// Reads a vocabulary file in the World format: a line is `<id> <Python literal> <byte count>`; the literal may contain
/// spaces, so a line is split at its first and last one. Lines end in LF or CRLF, optional for the last line; empty
/// lines are skipped. Id 0 is the end of text and has no line. Errors: bad_file with `where` (the file) and the line;
/// of two conflicting lines, the later one.
[[nodiscard]] result<token_list> parse_world_file(std::string_view text, std::string_view where);

}  // namespace skein::tokenizer
