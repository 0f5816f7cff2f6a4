#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/machine/program.hpp"
#include "grammar/schema/alternative.hpp"
#include "grammar/schema/language_pool.hpp"

namespace skein::grammar {

/// Builds the strings and numbers of a program's nodes. Errors: too_large, unsupported.
class scalar_builder {
 public:
  scalar_builder(language_pool& languages, program& to, budget& work) : languages_(languages), made_(to), work_(work) {}

  [[nodiscard]] result<void> add_strings(program::node& to, const std::vector<alternative>& all);
  [[nodiscard]] result<void> add_numbers(program::node& to, const std::vector<alternative>& all);
  /// Whether a text obeys the rules.
  [[nodiscard]] result<bool> accepts(const string_rules& rules, std::string_view text);
  /// The intersection of all patterns, without the excluded texts; null for any text. `lengths_apart`: a length limit
  /// of a pattern is moved into the rules.
  [[nodiscard]] result<std::shared_ptr<const dfa>> string_automaton(string_rules& rules, bool lengths_apart);

 private:
  [[nodiscard]] bool accepts_listed(const string_rules& rules, std::string_view text) const;
  [[nodiscard]] result<void> add_string(program::node& to, const string_rules& rules,
                                        std::vector<std::string>& literals);
  [[nodiscard]] result<std::shared_ptr<const dfa>> number(const number_rules& rules);

  language_pool& languages_;
  program& made_;
  budget& work_;
  std::map<std::string, std::uint32_t> string_index_;
  std::map<std::string, std::shared_ptr<const dfa>> numbers_;
};

}  // namespace skein::grammar
