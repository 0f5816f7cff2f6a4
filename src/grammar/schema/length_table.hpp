#pragma once
#include <cstdint>
#include <memory>

#include "grammar/automata/dfa.hpp"
#include "grammar/machine/program.hpp"

namespace skein::grammar {

/// The table for texts of at most `most` code points and any least number of them. Null if counting is enough: a text
/// of the automaton may end (without a limit: continue) after every code point. Errors: unsupported for a limit above
/// 4096 that matters; too_large.
[[nodiscard]] result<std::shared_ptr<const program::length_table>> lengths_of(const dfa& of, std::uint32_t most,
                                                                              budget& work);

}  // namespace skein::grammar
