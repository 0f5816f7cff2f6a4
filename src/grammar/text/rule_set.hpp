#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "grammar/automata/nfa.hpp"
#include "grammar/machine/program.hpp"

namespace skein::grammar {

/// The rules of a grammar while it is parsed: instructions of one NFA, in which a rule that is used is a call. Names
/// are views of the grammar's text.
class rule_set {
 protected:
  explicit rule_set(budget& work) : work_(work) { (void)code_.empty(); }

  /// The number of a rule, which may be defined later: its entry is then nfa::none.
  std::uint32_t index_of(std::string_view name);
  /// The program that begins with the rule `root`. Errors: invalid_argument for missing rules, unsupported for left
  /// recursion.
  [[nodiscard]] result<program> finish(std::string_view root);

  /// Alternatives that are being read: those that are complete, and the current one.
  struct group {
    std::vector<nfa::fragment> choices;
    std::optional<nfa::fragment> sequence;
  };
  /// Ends the current alternative.
  nfa::fragment take(group& of);
  /// Ends the last alternative and the group.
  nfa::fragment end_group(group& of);

  budget& work_;
  nfa code_;
  std::map<std::string_view, std::uint32_t> names_;
  std::vector<std::uint32_t> entries_;

 private:
  /// What is reached from a rule's beginning without a byte: the rules that it calls first, and whether it may be
  /// empty.
  struct beginning {
    std::vector<std::uint32_t> calls;
    bool empty = false;
  };
  [[nodiscard]] beginning beginning_of(std::uint32_t rule, const std::vector<bool>& empty) const;
  [[nodiscard]] result<void> check_recursion();
  [[nodiscard]] program compiled(std::uint32_t root) const;
};

}  // namespace skein::grammar
