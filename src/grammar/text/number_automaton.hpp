#pragma once
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "grammar/automata/dfa.hpp"
#include "grammar/text/decimal.hpp"

namespace skein::grammar {

struct number_bound {
  decimal value;
  bool exclusive = false;
};

/// Which numbers are accepted: all conditions hold.
struct number_rules {
  bool integer = false;  ///< the value is whole; 1.0 counts as whole
  bool plain = false;    ///< an integer is written without fraction and exponent, as in drafts 3 and 4
  bool not_integer = false;
  std::optional<number_bound> least, most;
  std::vector<decimal> multiples, not_multiples;  ///< positive
  std::vector<decimal> excluded;

  [[nodiscard]] bool accepts(const decimal& value) const;
  void raise_least(number_bound bound);
  void lower_most(number_bound bound);
};

/// The JSON texts of these numbers. Numbers with an exponent are included as far as an automaton can judge them: always
/// without a bound or with bounds of 0; with other bounds, numbers with one digit before the point; never with a
/// multiple. Errors: unsupported for a multiple that is too large; too_large.
[[nodiscard]] result<dfa> number_automaton(const number_rules& rules, budget& work);

/// The JSON texts whose value is one of these: without an exponent, or with one digit before the point. `plain`: each
/// in one form.
[[nodiscard]] result<dfa> number_literals(const std::vector<decimal>& values, bool plain, budget& work);

}  // namespace skein::grammar
