#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "grammar/schema/expander.hpp"
#include "grammar/schema/scalar_builder.hpp"

namespace skein::grammar {

/// Judges names of members by the schemas of propertyNames. Errors: those of expand; too_large.
class member_names {
 public:
  member_names(expander& with, scalar_builder& scalars, budget& work) : with_(with), scalars_(scalars), work_(work) {}

  /// True if a name satisfies all of these.
  [[nodiscard]] result<bool> allowed(const std::vector<atom>& rules, std::string_view name);
  /// The names that satisfy all of these; null for all names.
  [[nodiscard]] result<std::shared_ptr<const dfa>> automaton(const std::vector<atom>& rules);

 private:
  expander& with_;
  scalar_builder& scalars_;
  budget& work_;
};

}  // namespace skein::grammar
