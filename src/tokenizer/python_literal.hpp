#pragma once
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace skein::tokenizer {

/// Appends the bytes that a Python literal `'...'`, `"..."`, `b'...'` or `b"..."` stands for; a str stands for its
/// UTF-8 form. All of Python's escapes but `\N{name}` are known; an unknown one keeps its backslash, as in Python.
/// Errors (bad_file) say what is wrong with the literal; `out` may then hold a part of it.
[[nodiscard]] result<void> decode_python_literal(std::string_view literal, std::string& out);

}  // namespace skein::tokenizer
