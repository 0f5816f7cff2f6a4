#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "grammar/automata/limits.hpp"
#include "grammar/automata/nfa.hpp"

namespace skein::grammar {

/// A deterministic automaton over bytes. State 0 is dead; from every other state an accepting one can be reached.
/// Immutable once built.
struct dfa {
  static constexpr std::uint32_t dead = 0;

  std::array<std::uint8_t, 256> class_of{};
  std::uint32_t classes = 1;
  std::uint32_t start = dead;
  std::vector<std::uint32_t> next;       ///< [states, classes]
  std::vector<std::uint32_t> accepting;  ///< [states] labels; 0: does not accept
  std::vector<bool> open;                ///< [states] no byte sequence from here reaches the dead state

  static constexpr std::uint16_t unreachable = 0xffff;
  /// [states] bytes of the shortest text from each to an accepting one; unreachable from the dead one.
  std::vector<std::uint16_t> needs;

  [[nodiscard]] std::size_t states() const { return accepting.size(); }
  [[nodiscard]] std::uint32_t step(std::uint32_t state, unsigned char byte) const {
    return next[std::size_t{state} * classes + class_of[byte]];
  }
  [[nodiscard]] bool is_empty() const { return start == dead; }
  /// The label of a whole text; 0: not accepted.
  [[nodiscard]] std::uint32_t match(std::string_view text) const;

  /// Fills `needs`. Only automata of numbers have it.
  void add_needs();
  /// Redirects all states that cannot accept to the dead one, and fills `open`. The builders below call it.
  void finish();
};

/// [states] How many texts lead from each state to an accepting one. Large numbers are cut; no_limit: there is no end
/// of them.
inline constexpr std::uint64_t no_limit = ~std::uint64_t{0};
[[nodiscard]] std::vector<std::uint64_t> text_counts(const dfa& of);

/// Subset construction. Errors: too_large above a limit.
[[nodiscard]] result<dfa> determinise(const nfa& from, budget& work);

/// Which texts a combination of two automata accepts.
enum class combination : std::uint8_t { both, either, first_only, labels };
/// `labels` accepts what the first accepts, with its label, and adds the bit `extra` if the second accepts, too.
[[nodiscard]] result<dfa> combine(const dfa& a, const dfa& b, combination how, budget& work, std::uint32_t extra = 0);

/// All UTF-8 texts, and those that `a` does not accept.
[[nodiscard]] const dfa& any_text();
[[nodiscard]] result<dfa> complement(const dfa& a, budget& work);

/// Exactly these texts.
[[nodiscard]] result<dfa> literals(const std::vector<std::string_view>& texts, budget& work);

}  // namespace skein::grammar
