#pragma once
#include <span>

#include "base/result.hpp"
#include "grammar/automata/dfa.hpp"
#include "grammar/automata/limits.hpp"
#include "grammar/automata/nfa.hpp"

namespace skein::grammar {

/// What a `look` instruction asks. Ahead: the text from here on has a prefix that `code` accepts; it ends in match_any.
/// Behind: the text up to here is accepted by `code`, which reads it from its beginning and ends in match.
struct lookaround {
  nfa code;
  bool behind = false;
};

/// Subset construction with lookarounds: `other` of a `look` or `look_not` instruction is an index of `looks`, and
/// those of looks[i] are below i. Errors: too_large above a limit.
[[nodiscard]] result<dfa> determinise(const nfa& from, std::span<const lookaround> looks, budget& work);

}  // namespace skein::grammar
