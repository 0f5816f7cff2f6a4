#pragma once
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace skein::tokenizer {

/// Appends the bytes of a Python literal `'...'`, `"..."`, `b'...'` or `b"..."`; a str is encoded as UTF-8. Supports
/// all of Python's escapes except `\N{name}`; an unknown one keeps its backslash, as in Python. On an error (bad_file)
/// `out` may contain a part of the literal.
[[nodiscard]] result<void> decode_python_literal(std::string_view literal, std::string& out);

}  // namespace skein::tokenizer
