#pragma once
#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "grammar/automata/dfa.hpp"

namespace skein::grammar {

/// The texts that a pattern matches: those of the automaton that have `least` to `most` code points.
struct pattern_language {
  static constexpr std::uint32_t no_limit = ~std::uint32_t{0};
  dfa automaton;
  std::uint32_t least = 0, most = no_limit;
};

/// Compiles a regular expression of ECMA-262 with the flag `u`. Supported: alternatives, groups, quantifiers, classes,
/// the escapes \d \w \s \D \W \S \t \n \r \v \f \0 \cX \xHH \uHHHH \u{H}, \p{...} and \P{...} (unicode_properties.hpp),
/// and the assertions ^ $ \b \B, lookaheads and lookbehinds. A backslash may precede any punctuation. Errors:
/// invalid_argument with the offset; unsupported for back references, group modifiers, unknown properties, and more or
/// deeper lookarounds than regex_parser allows; too_large.

/// The texts in which the expression occurs. `^.{1,255}$` and the like become a short automaton with a limit of length.
[[nodiscard]] result<pattern_language> compile_search(std::string_view pattern, budget& work);
/// The same without limits of length, for combination with other automata.
[[nodiscard]] result<dfa> compile_search_automaton(std::string_view pattern, budget& work);
/// The texts that the expression matches as a whole.
[[nodiscard]] result<dfa> compile_whole(std::string_view pattern, budget& work);

}  // namespace skein::grammar
