#include "grammar/automata/nfa.hpp"

#include "grammar/automata/utf8_automaton.hpp"

namespace skein::grammar {

std::uint32_t nfa::push(instruction made) {
  code_.push_back(made);
  return static_cast<std::uint32_t>(code_.size() - 1);
}

nfa::fragment nfa::empty() {
  const auto at = push({});
  return {at, at, at};
}

nfa::fragment nfa::never() {
  const auto at = push({.what = op::fail});
  return {at, at, push({})};
}

nfa::fragment nfa::assertion(op which) {
  const auto at = push({.what = which});
  code_[at].out = push({});
  return {at, at, at + 1};
}

nfa::fragment nfa::look(std::uint32_t lookaround, bool negative) {
  const auto at = push({.what = negative ? op::look_not : op::look, .other = lookaround});
  code_[at].out = push({});
  return {at, at, at + 1};
}

nfa::fragment nfa::bytes(unsigned char low, unsigned char high) {
  const auto at = push({.what = op::byte, .low = low, .high = high});
  code_[at].out = push({});
  return {at, at, at + 1};
}

nfa::fragment nfa::text(std::string_view literal) {
  const auto first = static_cast<std::uint32_t>(code_.size());
  for (const char c : literal) {
    const auto byte = static_cast<unsigned char>(c);
    const auto at = push({.what = op::byte, .low = byte, .high = byte});
    code_[at].out = at + 1;
  }
  return {first, first, push({})};
}

nfa::fragment nfa::call(std::uint32_t rule) {
  const auto at = push({.what = op::call, .other = rule});
  code_[at].out = push({});
  return {at, at, at + 1};
}

nfa::fragment nfa::codes(const code_set& set) {
  const auto sequences = utf8_sequences(set);
  if (sequences.empty()) return never();
  if (sequences.size() == 1) {
    const auto& [part, length] = sequences.front();
    const auto at = static_cast<std::uint32_t>(code_.size());
    for (int k = 0; k < length; ++k)
      push({.what = op::byte,
            .low = part[k].first,
            .high = part[k].last,
            .out = at + static_cast<std::uint32_t>(k) + 1});
    return {at, at, push({})};
  }
  const auto made = minimal_automaton(sequences);
  const auto first = static_cast<std::uint32_t>(code_.size());
  // A node is a split and a byte for each edge but the last one, which has no split.
  std::vector<std::uint32_t> entries;
  std::uint32_t size = 0;
  for (const auto& edges : made.nodes) {
    entries.push_back(first + size);
    size += static_cast<std::uint32_t>(2 * edges.size() - 1);
  }
  const auto exit = first + size;
  for (const auto& edges : made.nodes) {
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const auto& [low, high, to] = edges[i];
      if (i + 1 < edges.size()) {
        const auto split = push({.what = op::split});
        code_[split].out = split + 1;
        code_[split].other = split + 2;
      }
      push({.what = op::byte, .low = low, .high = high, .out = to == utf8_automaton::end ? exit : entries[to]});
    }
  }
  return {first, entries.back(), push({})};
}

nfa::fragment nfa::automaton(std::uint32_t states, std::uint32_t start, std::span<const step> steps,
                             const std::vector<bool>& accepting) {
  const auto first = static_cast<std::uint32_t>(code_.size());
  std::vector<std::uint32_t> entries(states);
  for (auto& entry : entries) entry = push({});
  const auto inner_exit = push({});
  std::vector<std::vector<std::uint32_t>> choices(states);
  for (const auto& one : steps)
    choices[one.from].push_back(push({.what = op::byte, .low = one.low, .high = one.high, .out = entries[one.to]}));
  for (std::uint32_t state = 0; state < states; ++state) {
    if (accepting[state]) choices[state].push_back(inner_exit);
    if (choices[state].empty()) choices[state].push_back(push({.what = op::fail}));
    const auto chosen = choose(choices[state]);
    code_[entries[state]].out = chosen;
  }
  const auto exit = push({});  // the last instruction, so that copies cover all of them
  code_[inner_exit].out = exit;
  return {first, entries[start], exit};
}

std::uint32_t nfa::choose(std::span<const std::uint32_t> entries) {
  std::uint32_t chosen = entries.back();
  for (std::size_t i = entries.size() - 1; i-- > 0;)
    chosen = push({.what = op::split, .out = entries[i], .other = chosen});
  return chosen;
}

nfa::fragment nfa::concat(const fragment& a, const fragment& b) {
  code_[a.exit].out = b.entry;
  return {a.first, a.entry, b.exit};
}

nfa::fragment nfa::either(std::span<const fragment> choices) {
  if (choices.size() == 1) return choices.front();
  std::uint32_t entry = choices.back().entry;
  for (std::size_t i = choices.size() - 1; i-- > 0;)
    entry = push({.what = op::split, .out = choices[i].entry, .other = entry});
  const auto exit = push({});
  for (const auto& choice : choices) code_[choice.exit].out = exit;
  return {choices.front().first, entry, exit};
}

nfa::fragment nfa::optional(const fragment& a) {
  const auto split = push({.what = op::split, .out = a.entry});
  const auto exit = push({});
  code_[split].other = exit;
  code_[a.exit].out = exit;
  return {a.first, split, exit};
}

nfa::fragment nfa::star(const fragment& a) {
  const auto split = push({.what = op::split, .out = a.entry});
  const auto exit = push({});
  code_[split].other = exit;
  code_[a.exit].out = split;
  return {a.first, split, exit};
}

nfa::fragment nfa::plus(const fragment& a) {
  const auto split = push({.what = op::split, .out = a.entry});
  const auto exit = push({});
  code_[split].other = exit;
  code_[a.exit].out = split;
  return {a.first, a.entry, exit};
}

nfa::fragment nfa::copy(const fragment& a) {
  const auto begin = static_cast<std::uint32_t>(code_.size());
  const std::uint32_t shift = begin - a.first;
  for (std::uint32_t i = a.first; i <= a.exit; ++i) {
    instruction made = code_[i];
    if (made.out != none) made.out += shift;
    if (made.other != none && made.what == op::split) made.other += shift;
    code_.push_back(made);
  }
  if (ranks_.size() > a.first) {
    ranks_.resize(code_.size());
    for (std::uint32_t i = a.first; i <= a.exit; ++i) {
      ranks_[i + shift] = ranks_[i];
      for (auto& each : ranks_[i + shift])
        if (each.of != none) each.of += shift;
    }
  }
  return {begin, a.entry + shift, a.exit + shift};
}

void nfa::rank_copies(std::span<const fragment> parts, std::uint32_t least, bool last_is_star) {
  const std::size_t count = parts.size(), from = last_is_star || least == 0 ? 0 : least - 1;
  if (count - from < 2) return;
  ranks_.resize(code_.size());
  for (std::size_t i = from; i < count; ++i)
    for (std::uint32_t at = parts[i].first; at <= parts[i].exit; ++at) {
      auto& place = ranks_[at][ranks_[at].front().of == none ? 0 : rank_levels - 1];
      place.of = at - parts[i].first + parts[from].first;
      place.rank = static_cast<std::uint32_t>(last_is_star ? count - i : i);
    }
}

nfa::fragment nfa::repeat(const fragment& a, std::uint32_t least, std::uint32_t most, std::size_t instructions_max,
                          bool& fits) {
  fits = true;
  if (most == none && least == 0) return star(a);
  if (most == none && least == 1) return plus(a);
  if (least == 0 && most == 1) return optional(a);
  if (most == 0) {  // the fragment stays in the code, unreachable
    const auto at = push({});
    return {a.first, at, at};
  }
  const std::uint64_t copies = most == none ? std::uint64_t{least} + 1 : most;
  if (copies * (a.exit - a.first + 3) + code_.size() > instructions_max) {
    fits = false;
    return a;
  }
  // All copies are made first: gluing them would change the original.
  std::vector<fragment> parts{a};
  for (std::uint64_t i = 1; i < copies; ++i) parts.push_back(copy(a));
  rank_copies(parts, least, most == none);
  const auto exit = push({});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    if (i >= least && !(most == none && last)) {  // this copy and all after it may be left out
      const auto split = push({.what = op::split, .out = parts[i].entry, .other = exit});
      parts[i].entry = split;
    }
    if (most == none && last) {  // the last one is a star
      const auto split = push({.what = op::split, .out = parts[i].entry, .other = exit});
      code_[parts[i].exit].out = split;
      parts[i].entry = split;
    }
  }
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) code_[parts[i].exit].out = parts[i + 1].entry;
  if (most != none) code_[parts.back().exit].out = exit;
  // The exit has to be the last instruction, so that later copies cover all of it.
  const auto end = push({});
  code_[exit].out = end;
  return {a.first, parts.front().entry, end};
}

void nfa::add_start(std::uint32_t entry) {
  start = start == none ? entry : push({.what = op::split, .out = start, .other = entry});
}

void nfa::accept(const fragment& a, std::uint32_t label) {
  code_[a.exit].out = push({.what = op::match, .other = label});
  add_start(a.entry);
}

void nfa::accept_anywhere(const fragment& a, std::uint32_t label) {
  code_[a.exit].out = push({.what = op::match_any, .other = label});
  const auto skip = push({.what = op::byte, .low = 0, .high = 255});
  code_[skip].out = push({.what = op::split, .out = a.entry, .other = skip});
  add_start(code_[skip].out);
}

void nfa::begin_at_any_character() {
  const auto skip = codes(any_set());
  start = push({.what = op::split, .out = start, .other = skip.entry});
  code_[skip.exit].out = start;
}

}  // namespace skein::grammar
