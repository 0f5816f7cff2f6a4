#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/machine/program.hpp"
#include "grammar/schema/member_names.hpp"

namespace skein::grammar {

/// Builds the nodes of a program: one for each set of atoms that is reached from the root.
class node_builder {
 public:
  node_builder(expander& with, budget& work) : with_(with), work_(work) {}

  /// Errors: those of expand; too_large; invalid_argument if no value is valid.
  [[nodiscard]] result<program> build();

 private:
  [[nodiscard]] result<std::uint32_t> node_of(atom_set set);
  [[nodiscard]] result<void> fill(std::uint32_t index);

  [[nodiscard]] result<void> add_array(program::node& to, const array_rules& rules);
  [[nodiscard]] result<void> add_object(program::node& to, const object_rules& rules);
  [[nodiscard]] result<void> add_other_names(program::object_spec& to, const object_rules& rules);
  [[nodiscard]] std::function<result<std::uint32_t>(atom_set)> nodes() {
    return [this](atom_set set) { return node_of(std::move(set)); };
  }

  void find_satisfiable();
  [[nodiscard]] bool is_satisfiable(const program::object_spec& of) const;
  [[nodiscard]] bool is_satisfiable(const program::array_spec& of) const;
  [[nodiscard]] result<void> remove_unsatisfiable();
  [[nodiscard]] result<void> remove_unsatisfiable(program::object_spec& from);
  [[nodiscard]] bool holds(std::uint32_t node) const { return node != program::none && made_.nodes[node].satisfiable; }

  expander& with_;
  budget& work_;
  program made_;
  std::map<atom_set, std::uint32_t> index_;
  std::vector<const atom_set*> sets_;
  scalar_builder scalars_{with_.languages(), made_, work_};
  member_names names_{with_, scalars_, work_};
};

}  // namespace skein::grammar
