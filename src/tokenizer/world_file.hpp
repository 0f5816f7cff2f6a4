#pragma once
#include <cstddef>
#include <string_view>

#include "base/result.hpp"
#include "tokenizer/token_list.hpp"

namespace skein::tokenizer {

/// What a vocabulary file may ask for. The World vocabulary has a 1 MiB file, 65529 tokens and at most 128 bytes each.
inline constexpr std::size_t world_file_bytes_max = 32 << 20;
inline constexpr std::uint32_t world_ids_max = 1 << 20;
inline constexpr std::size_t token_bytes_max = 1024;
inline constexpr std::size_t world_line_bytes_max = 10 * token_bytes_max + 64;  // `\U00000041` is one byte

/// Reads a vocabulary file in the World format: a line is `<id> <Python literal> <byte count>`; the literal may hold
/// spaces, so a line is cut at its first and last one. Lines end in LF or CRLF, the last may lack its end, empty ones
/// are skipped. Id 0 is the end of text and has no line. `where` names the file in errors, which are bad_file and name
/// the line; of two lines that contradict each other, the later.
[[nodiscard]] result<token_list> parse_world_file(std::string_view text, std::string_view where);

}  // namespace skein::tokenizer
