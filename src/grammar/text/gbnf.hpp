#pragma once
#include <string_view>

#include "base/result.hpp"
#include "grammar/machine/program.hpp"

namespace skein::grammar {

/// Compiles the GBNF syntax of llama.cpp: rules `name ::= ...` with literals, classes, `.`, groups, alternatives,
/// * + ? {m,n} and comments; the text is the rule `root`. Errors: invalid_argument with the line; unsupported for left
/// recursion; too_large.
[[nodiscard]] result<program> compile_gbnf(std::string_view text, budget& work);

}  // namespace skein::grammar
