#pragma once
#include <string_view>

#include "base/result.hpp"
#include "grammar/machine/program.hpp"

namespace skein::grammar {

/// Compiles KBNF, the syntax of ai00's bnf_schema: rules `name ::= ... ;` with texts in quotes, alternatives, groups
/// ( ), options [ ], repetitions { }, * + ?, regular expressions #"...", texts without a match #ex"..." and
/// except!("..."), and comments (* *). A rule may be defined several times, and may begin with itself. The text is the
/// rule `start`, and ends as soon as it is complete. Errors: invalid_argument with the line; unsupported for other left
/// recursion, except! of rules or with a length, and #substrs; too_large.
[[nodiscard]] result<program> compile_kbnf(std::string_view text, budget& work);

}  // namespace skein::grammar
