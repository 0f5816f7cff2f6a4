#include "grammar/schema/node_builder.hpp"

#include <algorithm>
#include <bit>
#include <set>

#include "grammar/machine/unique_items.hpp"

namespace skein::grammar {
namespace {

constexpr std::uint32_t counted_visits_max = 4'096;

/// How many numbers a node has, or at least `enough`; `enough` if that takes long to find out.
std::uint64_t numbers_of(const program::node& node, std::uint64_t enough) {
  const auto& of = *node.number;
  std::set<std::uint64_t> found;
  thread begin{.where = thread::at::number, .a = of.start};
  digest::begin_number(begin);
  std::vector<thread> open{begin};
  for (std::uint32_t visits = 0; !open.empty() && found.size() < enough; ++visits) {
    if (visits == counted_visits_max) return enough;
    const thread here = open.back();
    open.pop_back();
    if (of.accepting[here.a] != 0) found.insert(digest::of_number(here));
    for (const char c : std::string_view("0123456789-.eE+")) {
      thread longer = here;
      longer.a = node.number_step(here.a, static_cast<unsigned char>(c), ++longer.b);
      if (longer.a == dfa::dead) continue;
      digest::add_number_byte(longer, static_cast<unsigned char>(c));
      open.push_back(longer);
    }
  }
  return found.size();
}

/// Other names than those whose label has no entry end nowhere.
void trim(dfa& names, const std::vector<std::pair<std::uint32_t, program::label>>& by_label) {
  for (auto& label : names.accepting)
    if (std::ranges::none_of(by_label, [&](const auto& each) { return each.first == label; })) label = 0;
  names.finish();
}

bool holds(const program& made, std::uint32_t node) { return node != program::none && made.nodes[node].satisfiable; }

/// How many values a node has, or at least `enough`. Arrays, objects and strings of a pattern are not counted: enough.
std::uint64_t values_of(const program& made, std::uint32_t node, std::uint64_t enough) {
  if (node == program::none) return 0;
  const auto& of = made.nodes[node];
  std::uint64_t count = 0;
  if (!of.arrays.empty() || !of.objects.empty()) return enough;
  for (const bool word : {of.null, of.truth, of.falsehood}) count += word ? 1 : 0;
  for (const auto i : of.strings) {
    if (!made.strings[i].literal) return enough;
    count += made.strings[i].literals.size();
  }
  if (of.number) count += numbers_of(of, enough);
  return std::min(count, enough);
}

/// Removes the nodes of items that have no value, and what would lead into a dead end.
void remove_from_items(const program& made, program::array_spec& from) {
  const auto clear = [&](std::uint32_t& node) {
    if (!holds(made, node)) node = program::none;
  };
  for (auto& node : from.prefix) clear(node);
  for (auto& node : from.prefix_contained) clear(node);
  clear(from.rest);
  clear(from.rest_contained);
  for (std::uint64_t i = 0; i <= from.prefix.size(); ++i)
    if (from.node_at(i) == program::none && from.contained_at(i) == program::none) {
      from.most = std::min(from.most, i);
      break;
    }
  if (from.unique && from.least > from.prefix.size()) {
    // No more items than there are values.
    const auto enough = from.least - from.prefix.size();
    auto values = values_of(made, from.rest, enough);
    if (values < enough && from.counts) values += values_of(made, from.rest_contained, enough);
    if (values < enough) from.most = std::min(from.most, from.prefix.size() + values);
  }
  if (!from.counts) return;
  from.can_count.assign(1, 0);
  from.must_count.assign(1, 0);
  for (std::uint64_t i = 0; i < from.prefix.size(); ++i) {
    const bool can = from.contained_at(i) != program::none, must = can && from.node_at(i) == program::none;
    from.can_count.push_back(from.can_count.back() + (can ? 1 : 0));
    from.must_count.push_back(from.must_count.back() + (must ? 1 : 0));
  }
}

/// How many names an object may have beside the listed ones, of those that an automaton accepts.
std::uint64_t other_names_of(const program& made, const program::object_spec& of) {
  auto by_label = of.other_by_label;
  std::erase_if(by_label, [&](const auto& each) { return !holds(made, each.second.node); });
  auto names = *of.other_names;
  trim(names, by_label);
  const auto count = text_counts(names)[names.start];
  if (count == no_limit) return count;
  return count - static_cast<std::uint64_t>(
                     std::ranges::count_if(of.names, [&](auto& name) { return names.match(name) != 0; }));
}

/// Removes the listed names from the automaton of other names. One that other names continue without end may stay: the
/// text may go on there.
result<void> remove_ended(dfa& names, const std::vector<std::string>& listed, budget& work) {
  const auto counts = text_counts(names);
  std::vector<std::string_view> ended;
  for (const auto& name : listed) {
    std::uint32_t state = names.start;
    for (const char c : name) state = names.step(state, static_cast<unsigned char>(c));
    if (names.accepting[state] != 0 && counts[state] != no_limit) ended.push_back(name);
  }
  if (!work.spend(names.next.size())) return too_much_work(work);
  if (ended.empty()) return {};
  const auto texts = literals(ended, work);
  if (!texts) return texts.error();
  auto rest = combine(names, *texts, combination::first_only, work);
  if (!rest) return rest.error();
  names = std::move(*rest);
  return {};
}

}  // namespace

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
  if (const auto removed = remove_unsatisfiable(); !removed) return removed.error();
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
  auto tried = of;
  remove_from_items(made_, tried);
  if (!tried.may_finish(0, 0)) return false;
  const auto enough = tried.contains_least;
  return !of.unique || !of.counts || tried.prefix.size() + values_of(made_, tried.rest_contained, enough) >= enough;
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
  if (required > of.most || of.least > of.most || (of.beyond & ~beyond) != 0) return false;
  if (available >= of.least || holds(of.other.node)) return true;
  return others && other_names_of(made_, of) >= of.least - available;
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
result<void> node_builder::remove_unsatisfiable() {
  for (auto& array : made_.arrays) remove_from_items(made_, array);
  for (auto& object : made_.objects) {
    if (const auto removed = remove_unsatisfiable(object); !removed) return removed;
    // The required names and one other name are certain to differ.
    std::uint64_t certain = 1;
    for (const auto bits : object.required) certain += static_cast<std::uint64_t>(std::popcount(bits));
    object.counts_others = object.allows_others() && object.least > certain;
  }
  for (auto& node : made_.nodes) {
    std::erase_if(node.arrays, [&](auto i) { return !is_satisfiable(made_.arrays[i]); });
    std::erase_if(node.objects, [&](auto i) { return !is_satisfiable(made_.objects[i]); });
  }
  return {};
}

result<void> node_builder::remove_unsatisfiable(program::object_spec& from) {
  const auto clear = [&](std::uint32_t& node) {
    if (!holds(node)) node = program::none;
  };
  for (auto& label : from.labels) clear(label.node);
  for (auto& witness : from.witnesses) clear(witness.node);
  bool changed = true;
  while (changed) {  // a name that requires one that is not allowed is not allowed either
    changed = false;
    for (const auto& [first, second] : from.dependent)
      if (from.labels[second].node == program::none && from.labels[first].node != program::none) {
        from.labels[first].node = program::none;
        changed = true;
      }
  }
  clear(from.other.node);
  for (auto& [label, follows] : from.other_by_label) clear(follows.node);
  std::erase_if(from.other_by_label, [](const auto& each) { return each.second.node == program::none; });
  if (from.other_names && !from.other_by_label.empty()) {
    auto names = *from.other_names;
    trim(names, from.other_by_label);
    if (const auto removed = remove_ended(names, from.names, work_); !removed) return removed;
    if (!names.is_empty()) {
      from.other_names = std::make_shared<const dfa>(std::move(names));
      return {};
    }
  }
  from.other_names = nullptr;
  from.other_by_label.clear();
  return {};
}

}  // namespace skein::grammar
