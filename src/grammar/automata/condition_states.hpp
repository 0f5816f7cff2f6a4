#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/automata/vector_hash.hpp"

namespace skein::grammar {

/// The states of automata with lookarounds, each stored once. A state is a set of configurations, of which one has to
/// accept the rest of the text. A configuration is a place in the code and a set of conditions on the rest of the text,
/// which have to hold as well. A condition is a state that has to accept the rest, or that must not.
class condition_states {
 public:
  using state = std::uint32_t;
  static constexpr state never = 0, always = 1;

  /// Places that are no instructions: accepts at the end of the text, and accepts whatever follows.
  static constexpr std::uint32_t at_match = ~std::uint32_t{0}, at_match_any = ~std::uint32_t{0} - 1;

  /// A sorted set of conditions, each a state times 2, plus 1 if the state must not accept.
  using conditions = std::uint32_t;
  static constexpr conditions none = 0, impossible = ~std::uint32_t{0};

  struct configuration {
    std::uint32_t place = 0;
    conditions on = none;
    auto operator<=>(const configuration&) const = default;
  };

  condition_states();

  /// The set with one more condition; impossible if it cannot hold, alone or beside the others.
  [[nodiscard]] conditions with(conditions on, state of, bool negated);
  /// The set of these conditions, in any order; impossible if they cannot hold together.
  [[nodiscard]] conditions set_of(std::vector<std::uint32_t> all);
  /// The state of these configurations, which are sorted and reduced to those that matter.
  [[nodiscard]] state state_of(std::vector<configuration>& all);

  [[nodiscard]] const std::vector<std::uint32_t>& list(conditions on) const { return *condition_lists_[on]; }
  [[nodiscard]] const std::vector<configuration>& configurations(state of) const { return states_[of]; }
  /// The work of state_of() since the last call, in steps of the budget.
  [[nodiscard]] std::uint64_t take_work() { return std::exchange(work_, 0); }
  [[nodiscard]] std::size_t size() const { return states_.size() + condition_lists_.size(); }

 private:
  [[nodiscard]] bool implies(conditions more, conditions less);

  std::vector<std::vector<configuration>> states_;
  std::unordered_map<std::vector<std::uint32_t>, state, vector_hash> state_index_;
  std::vector<const std::vector<std::uint32_t>*> condition_lists_;
  std::unordered_map<std::vector<std::uint32_t>, conditions, vector_hash> condition_index_;
  std::uint64_t work_ = 0;
};

}  // namespace skein::grammar
