// A call at the end of a rule needs no stack entry, so a list that is written as a right recursion does not grow the
// stack.
#include "grammar/text/rule_set.hpp"

#include <algorithm>
#include <functional>
#include <string>

namespace skein::grammar {

std::uint32_t rule_set::index_of(std::string_view name) {
  const auto [place, is_new] = names_.try_emplace(name, static_cast<std::uint32_t>(entries_.size()));
  if (is_new) entries_.push_back(nfa::none);
  return place->second;
}

result<program> rule_set::finish(std::string_view root) {
  const auto found = names_.find(root);
  if (found == names_.end() || entries_[found->second] == nfa::none)
    return error{error_kind::invalid_argument, "grammar: the rule " + std::string(root) + " is missing", {}};
  for (const auto& [name, index] : names_)
    if (entries_[index] == nfa::none)
      return error{error_kind::invalid_argument, "grammar: the rule " + std::string(name) + " is used but missing", {}};
  if (const auto checked = check_recursion(); !checked) return checked.error();
  return compiled(entries_[found->second]);
}

nfa::fragment rule_set::take(group& of) {
  const auto made = of.sequence ? *of.sequence : code_.empty();
  of.sequence.reset();
  return made;
}

nfa::fragment rule_set::end_group(group& of) {
  of.choices.push_back(take(of));
  return code_.either(of.choices);
}

rule_set::beginning rule_set::beginning_of(std::uint32_t rule, const std::vector<bool>& empty) const {
  beginning found;
  std::vector<std::uint32_t> pending{entries_[rule]};
  std::vector<bool> seen(code_.size());
  while (!pending.empty()) {
    const auto here = pending.back();
    pending.pop_back();
    if (here == nfa::none || seen[here]) continue;
    seen[here] = true;
    const auto& i = code_.code()[here];
    if (i.what == nfa::op::match) found.empty = true;
    if (i.what == nfa::op::call) found.calls.push_back(i.other);
    if (i.what == nfa::op::split) pending.push_back(i.other);
    if (i.what == nfa::op::jump || i.what == nfa::op::split || (i.what == nfa::op::call && empty[i.other]))
      pending.push_back(i.out);
  }
  return found;
}

/// A rule that begins with itself would push forever.
result<void> rule_set::check_recursion() {
  std::vector<bool> empty(entries_.size());
  std::vector<beginning> all(entries_.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t r = 0; r < entries_.size(); ++r) {
      if (!work_.spend(code_.size() / 16 + 100)) return too_much_work(work_);
      all[r] = beginning_of(r, empty);
      if (all[r].empty && !empty[r]) changed = empty[r] = true;
    }
  }
  // Removes rules that begin with none of the rest, until none is left.
  std::vector<bool> done(entries_.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t r = 0; r < entries_.size(); ++r) {
      if (!work_.spend(all[r].calls.size() + 1)) return too_much_work(work_);
      if (done[r] || !std::ranges::all_of(all[r].calls, [&](auto c) { return done[c]; })) continue;
      changed = done[r] = true;
    }
  }
  for (const auto& [name, index] : names_)
    if (!done[index])
      return error{error_kind::unsupported,
                   "grammar: the rule " + std::string(name) + " is left-recursive, which is not supported",
                   {}};
  if (!std::ranges::all_of(done, std::identity()))
    return error{error_kind::unsupported, "grammar: a rule that repeats what may be empty is not supported", {}};
  return {};
}

program rule_set::compiled(std::uint32_t root) const {
  using to = program::instruction::op;
  program made;
  made.what = program::kind::rules;
  made.bounds = work_.of();
  const auto& code = code_.code();
  for (const auto& i : code) {
    program::instruction one{.low = i.low, .high = i.high, .out = i.out, .other = i.other};
    switch (i.what) {
      case nfa::op::split: one.what = to::split; break;
      case nfa::op::byte: one.what = to::byte; break;
      case nfa::op::match:
      case nfa::op::match_any: one.what = to::leave; break;
      case nfa::op::call: {
        one.what = to::call;
        one.other = entries_[i.other];
        std::size_t steps = 0;
        const auto jumps = [&] { return one.out != nfa::none && code[one.out].what == nfa::op::jump; };
        while (jumps() && ++steps <= code.size()) one.out = code[one.out].out;
        // Nothing follows what is repeated zero times; it is never reached.
        if (one.out == nfa::none || code[one.out].what == nfa::op::match) one.out = program::none;
        break;
      }
      case nfa::op::fail:  // a byte that does not exist
        one = {.what = to::byte, .low = 1, .high = 0};
        break;
      default: one.what = to::jump;
    }
    made.instructions.push_back(one);
  }
  made.instructions.front() = {.what = to::jump, .out = root};
  return made;
}

}  // namespace skein::grammar
