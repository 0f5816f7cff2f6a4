#include "grammar/schema/node_builder.hpp"

#include <algorithm>

namespace skein::grammar {

result<program> node_builder::build() {
  made_.what = program::kind::json;
  made_.bounds = work_.of();
  if (const auto root = node_of({{0, atom::mode::schema}}); !root) return root.error();
  for (std::uint32_t i = 0; i < sets_.size(); ++i)
    if (const auto filled = fill(i); !filled) {
      auto why = filled.error();
      // What concerns several keywords together is reported at the first of their subschemas.
      if (!why.field.empty() && !why.message.starts_with('/') && !sets_[i]->empty())
        why.message = with_.document().tree().pointer(sets_[i]->front().value) + "/" + why.field + ": " + why.message;
      return why;
    }
  find_satisfiable();
  remove_unsatisfiable();
  const error empty{error_kind::invalid_argument, "no value satisfies the schema", {}};
  if (!made_.nodes.front().satisfiable) return with_.dropped().value_or(empty);
  return std::move(made_);
}

result<std::uint32_t> node_builder::node_of(atom_set set) {
  set = with_.simplified(std::move(set));
  for (const auto& each : set)
    if (each.how == atom::mode::nothing) return program::none;
  if (!work_.spend(20 + set.size())) return too_much_work(work_);
  const auto [place, is_new] = index_.try_emplace(std::move(set), static_cast<std::uint32_t>(sets_.size()));
  if (is_new) {
    if (sets_.size() >= work_.of().nodes_max) return too_much("combinations of subschemas", work_.of().nodes_max);
    sets_.push_back(&place->first);
    made_.nodes.emplace_back();
  }
  return place->second;
}

result<void> node_builder::fill(std::uint32_t index) {
  const auto all = with_.expand(*sets_[index]);
  if (!all) return all.error();
  program::node made;
  for (const auto& each : *all) {
    made.null = made.null || (each.types & null_type) != 0;
    made.truth = made.truth || (each.types & true_type) != 0;
    made.falsehood = made.falsehood || (each.types & false_type) != 0;
    if ((each.types & array_type) != 0)
      if (const auto added = add_array(made, each.arrays); !added) return added;
    if ((each.types & object_type) != 0)
      if (const auto added = add_object(made, each.objects); !added) return added;
  }
  if (const auto added = scalars_.add_strings(made, *all); !added) return added;
  if (const auto added = scalars_.add_numbers(made, *all); !added) return added;
  made_.nodes[index] = std::move(made);
  return {};
}

result<void> node_builder::add_array(program::node& to, const array_rules& rules) {
  program::array_spec made;
  made.least = rules.least;
  made.most = rules.most;
  made.unique = rules.unique && rules.most > 1;
  if (rules.contains.size() > 1) {
    error why{error_kind::unsupported, "more than one contains for the same array is not supported", "contains"};
    for (const auto& each : rules.contains)  // one of them may come from the negation of items
      if (with_.may_drop(each.what, why)) return {};
    return why;
  }
  made.counts = !rules.contains.empty();
  std::size_t prefix = 0;
  for (const auto& layer : rules.layers) prefix = std::max(prefix, layer.prefix.size());
  for (std::size_t i = 0; i <= prefix; ++i) {
    atom_set set;
    for (const auto& layer : rules.layers) {
      const auto& at = i < layer.prefix.size() ? layer.prefix[i] : layer.rest;
      if (at) set.push_back(*at);
    }
    atom_set contained = set;
    if (made.counts) {
      const auto& contains = rules.contains.front();
      made.contains_least = contains.least;
      made.contains_most = contains.most;
      contained.push_back(contains.what);
      if (contains.most != ~std::uint64_t{0})
        set.push_back({contains.what.value,
                       contains.what.how == atom::mode::schema ? atom::mode::not_schema : atom::mode::schema});
    }
    const auto node = node_of(std::move(set));
    if (!node) return node.error();
    const auto counted = made.counts ? node_of(std::move(contained)) : result<std::uint32_t>(program::none);
    if (!counted) return counted.error();
    if (i < prefix) {
      made.prefix.push_back(*node);
      made.prefix_contained.push_back(*counted);
    } else {
      made.rest = *node;
      made.rest_contained = *counted;
    }
  }
  to.arrays.push_back(static_cast<std::uint32_t>(made_.arrays.size()));
  made_.arrays.push_back(std::move(made));
  return {};
}

bool node_builder::is_satisfiable(const program::array_spec& of) const {
  if (of.least > of.most) return false;
  // The items that must be there; after the prefix one stands for all.
  std::uint64_t can_count = 0;
  for (std::uint64_t i = 0; i <= of.prefix.size(); ++i) {
    const bool last = i == of.prefix.size();
    const bool plain = holds(of.node_at(i)), counted = of.counts && holds(of.contained_at(i));
    if (i < of.most && counted) can_count = last ? ~std::uint64_t{0} : can_count + 1;
    if (plain || counted) continue;
    if (i < of.least) return false;
    break;
  }
  return !of.counts || can_count >= of.contains_least;
}

bool node_builder::is_satisfiable(const program::object_spec& of) const {
  std::uint64_t required = 0, available = 0;
  unsigned beyond = 0;
  const auto bits = [&](const program::label& of_name) {
    unsigned made = of_name.beyond;
    for (unsigned i = 0; i < of_name.witnesses; ++i)
      if (const auto& each = of.witnesses[of_name.first_witness + i]; holds(each.node)) made |= each.beyond;
    return made;
  };
  for (std::size_t i = 0; i < of.names.size(); ++i) {
    const bool here = holds(of.labels[i].node), needed = (of.required[i / 64] >> (i % 64) & 1) != 0;
    if (needed && !here) return false;
    required += needed;
    available += here;
    if (here) beyond |= bits(of.labels[i]);
  }
  bool others = holds(of.other.node);
  if (others) beyond |= bits(of.other);
  for (const auto& [label, follows] : of.other_by_label) {
    if (!holds(follows.node)) continue;
    others = true;
    beyond |= bits(follows);
  }
  return required <= of.most && (others || available >= of.least) && (of.beyond & ~beyond) == 0;
}

/// Marks the nodes that have a value, starting from those that need no other node.
void node_builder::find_satisfiable() {
  bool changed = true;
  while (changed) {
    changed = false;
    for (auto& node : made_.nodes) {
      if (node.satisfiable) continue;
      const bool holds_now =
          node.null || node.truth || node.falsehood || node.number || !node.strings.empty() ||
          std::ranges::any_of(node.arrays, [&](auto i) { return is_satisfiable(made_.arrays[i]); }) ||
          std::ranges::any_of(node.objects, [&](auto i) { return is_satisfiable(made_.objects[i]); });
      if (!holds_now) continue;
      node.satisfiable = true;
      changed = true;
    }
  }
}

/// Removes what would lead into a dead end.
void node_builder::remove_unsatisfiable() {
  const auto clear = [&](std::uint32_t& node) {
    if (!holds(node)) node = program::none;
  };
  for (auto& array : made_.arrays) {
    for (auto& node : array.prefix) clear(node);
    for (auto& node : array.prefix_contained) clear(node);
    clear(array.rest);
    clear(array.rest_contained);
    for (std::uint64_t i = 0; i <= array.prefix.size(); ++i)
      if (array.node_at(i) == program::none && array.contained_at(i) == program::none) {
        array.most = std::min(array.most, i);
        break;
      }
  }
  for (auto& object : made_.objects) {
    for (auto& label : object.labels) clear(label.node);
    for (auto& witness : object.witnesses) clear(witness.node);
    bool changed = true;
    while (changed) {  // a name that requires one that is not allowed is not allowed either
      changed = false;
      for (const auto& [first, second] : object.dependent)
        if (object.labels[second].node == program::none && object.labels[first].node != program::none) {
          object.labels[first].node = program::none;
          changed = true;
        }
    }
    clear(object.other.node);
    for (auto& [label, follows] : object.other_by_label) clear(follows.node);
    std::erase_if(object.other_by_label, [](const auto& each) { return each.second.node == program::none; });
    if (object.other_by_label.empty()) object.other_names = nullptr;
    if (!object.other_names) continue;
    auto trimmed = *object.other_names;
    for (auto& label : trimmed.accepting)
      if (std::ranges::none_of(object.other_by_label, [&](const auto& each) { return each.first == label; })) label = 0;
    trimmed.finish();
    object.other_names = std::make_shared<const dfa>(std::move(trimmed));
  }
  for (auto& node : made_.nodes) {
    std::erase_if(node.arrays, [&](auto i) { return !is_satisfiable(made_.arrays[i]); });
    std::erase_if(node.objects, [&](auto i) { return !is_satisfiable(made_.objects[i]); });
  }
}

}  // namespace skein::grammar
