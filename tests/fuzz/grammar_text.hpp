#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "grammar/matcher.hpp"

namespace skein::test {

/// Limits that let a fuzzer try many inputs a second.
inline grammar::options small_limits() {
  grammar::options how;
  how.bounds.steps_max = 2'000'000;
  how.bounds.dfa_states_max = 4'000;
  how.bounds.instructions_max = 20'000;
  how.bounds.stacks_max = 64;
  return how;
}

/// Reads a text byte by byte, as far as the grammar accepts it; checks that masks and steps agree.
inline void follow(const std::shared_ptr<const grammar::grammar>& of, std::string_view text) {
  static const auto index = grammar::vocabulary_index::build(tokenizer::vocabulary::bytes());
  grammar::matcher matcher(of, index);
  std::vector<std::uint32_t> allowed(index->words());
  for (const char c : text.substr(0, 64)) {
    const auto byte = static_cast<unsigned char>(c);
    matcher.fill_mask(allowed);
    const bool in_mask = (allowed[byte / 32] >> (byte % 32) & 1) != 0;
    const bool accepted = matcher.accept({&c, 1});
    check(in_mask == accepted || (in_mask && matcher.overflowed()), "a mask and a step disagree");
    if (!accepted) return;
  }
}

}  // namespace skein::test
