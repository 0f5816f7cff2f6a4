#include "grammar/automata/dfa.hpp"

#include <algorithm>
#include <unordered_map>

#include "grammar/automata/byte_classes.hpp"
#include "grammar/automata/vector_hash.hpp"

namespace skein::grammar {
namespace {

std::array<unsigned char, 256> first_bytes(const dfa& of) {
  std::array<unsigned char, 256> first{};
  for (unsigned byte = 256; byte-- > 0;) first[of.class_of[byte]] = static_cast<unsigned char>(byte);
  return first;
}

/// The states before each state, as a list per target in one array.
struct reverse_edges {
  std::vector<std::uint32_t> begin, from;
};

reverse_edges edges_into(const dfa& of) {
  reverse_edges made;
  made.begin.assign(of.states() + 1, 0);
  for (const auto to : of.next) ++made.begin[to];
  for (std::size_t i = 0, sum = 0; i <= of.states(); ++i) {
    const auto here = made.begin[i];
    made.begin[i] = static_cast<std::uint32_t>(sum);
    sum += here;
  }
  made.from.resize(of.next.size());
  auto fill = made.begin;
  for (std::size_t i = 0; i < of.next.size(); ++i)
    made.from[fill[of.next[i]]++] = static_cast<std::uint32_t>(i / of.classes);
  return made;
}

class subset_construction {
 public:
  subset_construction(const nfa& from, budget& work)
      : code_(from.code()), ranks_(from.ranks()), work_(work), seen_(from.size(), 0), least_(ranks_.size()) {
    byte_classes classes;
    for (const auto& i : code_)
      if (i.what == nfa::op::byte) classes.add(i.low, i.high);
    classes.write(made_);
    for (const auto& i : code_)
      if (i.what == nfa::op::match_any) all_labels_ |= i.other;
    for (const auto& i : code_)
      if (i.what == nfa::op::match) all_labels_ |= i.other;
  }

  result<dfa> run(std::uint32_t start) {
    made_.accepting.push_back(0);
    made_.next.resize(made_.classes, dfa::dead);
    sets_.push_back(nullptr);
    begin_closure();
    close(start, true, false);
    made_.start = intern(true);
    targets_.resize(made_.classes);
    for (std::uint32_t state = 1; state < sets_.size(); ++state) {
      const auto& set = *sets_[state];
      if (!work_.spend(set.size() * made_.classes + made_.classes)) return too_much_work(work_);
      if (sets_.size() > work_.of().dfa_states_max)
        return too_much("states of an automaton", work_.of().dfa_states_max);
      for (auto& targets : targets_) targets.clear();
      kept_.clear();
      for (const auto at : set) {
        const auto& i = code_[at];
        if (i.what == nfa::op::match_any) kept_.push_back(at);
        if (i.what != nfa::op::byte) continue;
        // A class is an interval of bytes, and so is what an instruction reads, in whole classes.
        for (unsigned c = made_.class_of[i.low]; c <= made_.class_of[i.high]; ++c) targets_[c].push_back(i.out);
      }
      for (std::uint32_t c = 0; c < made_.classes; ++c) {
        const bool as_before = c > 0 && targets_[c] == targets_[c - 1];
        const auto to = as_before ? made_.next[std::size_t{state} * made_.classes + c - 1] : state_of(targets_[c]);
        made_.next[std::size_t{state} * made_.classes + c] = to;
      }
    }
    made_.finish();
    return std::move(made_);
  }

 private:
  void begin_closure() {
    ++round_;
    current_.clear();
  }
  void keep(std::uint32_t at) {
    if (seen_[at] == round_) return;
    seen_[at] = round_;
    current_.push_back(at);
  }
  /// The state after a byte that leads to these instructions.
  std::uint32_t state_of(const std::vector<std::uint32_t>& targets) {
    if (targets.empty() && kept_.empty()) return dfa::dead;
    const bool one = targets.size() == 1 && kept_.empty(), few = targets.size() <= few_targets && kept_.empty();
    if (one) {
      if (const auto known = state_of_target_.find(targets.front()); known != state_of_target_.end())
        return known->second;
    } else if (few) {
      if (const auto known = state_of_targets_.find(targets); known != state_of_targets_.end()) return known->second;
    }
    begin_closure();
    for (const auto at : kept_) keep(at);
    for (const auto target : targets) close(target, false, false);
    const auto state = intern(false);
    if (one)
      state_of_target_.emplace(targets.front(), state);
    else if (few)
      state_of_targets_.emplace(targets, state);
    return state;
  }

  /// Adds what can be reached from `at` without a byte. `at_end` also passes text_end.
  void close(std::uint32_t at, bool at_begin, bool at_end) {
    pending_.push_back(at);
    while (!pending_.empty()) {
      const auto here = pending_.back();
      pending_.pop_back();
      if (here == nfa::none || seen_[here] == round_) continue;
      seen_[here] = round_;
      const auto& i = code_[here];
      switch (i.what) {
        case nfa::op::jump: pending_.push_back(i.out); break;
        case nfa::op::split:
          pending_.push_back(i.other);
          pending_.push_back(i.out);
          break;
        case nfa::op::text_begin:
          if (at_begin) pending_.push_back(i.out);
          break;
        case nfa::op::text_end:
          if (at_end) pending_.push_back(i.out);
          current_.push_back(here);
          break;
        case nfa::op::look:  // see lookaround.hpp
        case nfa::op::look_not:
        case nfa::op::call:  // not in a pattern
        case nfa::op::fail: break;
        case nfa::op::byte:
        case nfa::op::match:
        case nfa::op::match_any: current_.push_back(here); break;
      }
    }
  }

  /// The state of the current set. The set of a text that is accepted whatever follows needs nothing else.
  std::uint32_t intern(bool at_begin) {
    if (current_.empty()) return dfa::dead;
    for (const auto at : current_)
      if (code_[at].what == nfa::op::match_any && code_[at].other == all_labels_) {
        current_ = {at};
        break;
      }
    drop_weaker_copies();
    std::ranges::sort(current_);
    const auto [place, is_new] = index_.try_emplace(current_, static_cast<std::uint32_t>(sets_.size()));
    if (!is_new) return place->second;
    sets_.push_back(&place->first);
    made_.next.resize(made_.next.size() + made_.classes, dfa::dead);
    made_.accepting.push_back(label_of(place->first, at_begin));
    const auto state = place->second;
    // An end of the text before its beginning, as in $^, matches the empty text only: then no other text is here.
    if (at_begin && label_of(place->first, false) != made_.accepting.back()) beginning_ = index_.extract(place);
    return state;
  }

  /// Leaves out what another copy of the same instruction accepts as well.
  void drop_weaker_copies() {
    if (current_.size() < 2 || ranks_.empty()) return;
    for (std::size_t level = 0; level < nfa::rank_levels; ++level) {
      const auto rank_at = [&](std::uint32_t at) { return at < ranks_.size() ? ranks_[at][level] : nfa::copy_rank{}; };
      ++rank_round_;
      for (const auto at : current_) {
        const auto [of, rank] = rank_at(at);
        if (of == nfa::none) continue;
        auto& least = least_[of];
        if (least.round != rank_round_ || rank < least.rank) least = {rank_round_, rank};
      }
      std::erase_if(current_, [&](std::uint32_t at) {
        const auto [of, rank] = rank_at(at);
        return of != nfa::none && rank > least_[of].rank;
      });
    }
  }

  std::uint32_t label_of(const std::vector<std::uint32_t>& set, bool at_begin) {
    std::uint32_t label = 0;
    bool ends = false;
    for (const auto at : set) {
      ends = ends || code_[at].what == nfa::op::text_end;
      if (code_[at].what == nfa::op::match || code_[at].what == nfa::op::match_any) label |= code_[at].other;
    }
    if (!ends) return label;
    begin_closure();
    for (const auto at : set)
      if (code_[at].what == nfa::op::text_end) close(code_[at].out, at_begin, true);
    for (const auto at : current_)
      if (code_[at].what == nfa::op::match || code_[at].what == nfa::op::match_any) label |= code_[at].other;
    return label;
  }

  const std::vector<nfa::instruction>& code_;
  const std::vector<nfa::copy_ranks>& ranks_;
  budget& work_;
  dfa made_;
  std::uint32_t all_labels_ = 0;
  using state_index = std::unordered_map<std::vector<std::uint32_t>, std::uint32_t, vector_hash>;
  state_index index_;
  state_index::node_type beginning_;
  std::vector<const std::vector<std::uint32_t>*> sets_;
  std::vector<std::uint32_t> seen_;
  std::vector<std::uint32_t> current_, pending_;
  std::uint32_t round_ = 0, rank_round_ = 0;
  struct least_rank {
    std::uint32_t round = 0, rank = 0;
  };
  std::vector<least_rank> least_;  // of the copies of an instruction, in this round
  // Of the current state: where each class of bytes leads, and what stays in the set.
  std::vector<std::vector<std::uint32_t>> targets_;
  std::vector<std::uint32_t> kept_;
  std::unordered_map<std::uint32_t, std::uint32_t> state_of_target_;
  static constexpr std::size_t few_targets = 16;
  std::unordered_map<std::vector<std::uint32_t>, std::uint32_t, vector_hash> state_of_targets_;
};

}  // namespace

std::uint32_t dfa::match(std::string_view text) const {
  std::uint32_t state = start;
  for (const char c : text) state = step(state, static_cast<unsigned char>(c));
  return accepting[state];
}

void dfa::add_needs() {
  const auto edges = edges_into(*this);
  const auto &begin = edges.begin, &from = edges.from;
  needs.assign(states(), unreachable);
  std::vector<std::uint32_t> pending;
  for (std::uint32_t s = 1; s < states(); ++s)
    if (accepting[s] != 0) {
      needs[s] = 0;
      pending.push_back(s);
    }
  for (std::size_t k = 0; k < pending.size(); ++k) {
    const auto s = pending[k];
    for (auto i = begin[s]; i < begin[s + 1]; ++i)
      if (needs[from[i]] == unreachable) {
        needs[from[i]] = static_cast<std::uint16_t>(std::min<unsigned>(needs[s] + 1u, unreachable - 1u));
        pending.push_back(from[i]);
      }
  }
}

void dfa::finish() {
  const std::size_t count = states();
  const auto edges = edges_into(*this);
  const auto &begin = edges.begin, &from = edges.from;
  const auto reach_back = [&](std::vector<bool>& marked) {
    std::vector<std::uint32_t> pending;
    for (std::uint32_t s = 0; s < count; ++s)
      if (marked[s]) pending.push_back(s);
    while (!pending.empty()) {
      const auto s = pending.back();
      pending.pop_back();
      for (auto i = begin[s]; i < begin[s + 1]; ++i)
        if (!marked[from[i]]) {
          marked[from[i]] = true;
          pending.push_back(from[i]);
        }
    }
  };
  std::vector<bool> live(count, false);
  for (std::size_t s = 1; s < count; ++s) live[s] = accepting[s] != 0;
  reach_back(live);
  live[dead] = false;
  // Edges into states that just became dead count as edges into the dead one.
  std::vector<bool> closed(count, false);
  for (std::size_t s = 0; s < count; ++s) closed[s] = !live[s];
  reach_back(closed);
  for (auto& to : next)
    if (!live[to]) to = dead;
  for (std::size_t c = 0; c < classes; ++c) next[c] = dead;
  if (!live[start]) start = dead;
  open.assign(count, false);
  for (std::size_t s = 0; s < count; ++s) open[s] = !closed[s];
}

std::vector<std::uint64_t> text_counts(const dfa& of) {
  constexpr std::uint64_t cut = std::uint64_t{1} << 40;
  std::vector<std::uint64_t> bytes_of(of.classes), made(of.states(), no_limit);
  for (const auto kind : of.class_of) ++bytes_of[kind];
  const auto edges = edges_into(of);
  // Each state after those that follow it; states on circles and before them have no turn.
  std::vector<std::uint32_t> left(of.states()), order;
  for (std::uint32_t s = 1; s < of.states(); ++s) {
    for (std::uint32_t c = 0; c < of.classes; ++c) left[s] += of.next[std::size_t{s} * of.classes + c] != dfa::dead;
    if (left[s] == 0) order.push_back(s);
  }
  for (std::size_t k = 0; k < order.size(); ++k) {
    const auto s = order[k];
    std::uint64_t count = of.accepting[s] != 0;
    for (std::uint32_t c = 0; c < of.classes; ++c)
      if (const auto to = of.next[std::size_t{s} * of.classes + c]; to != dfa::dead)
        count = std::min(cut, count + made[to] * bytes_of[c]);
    made[s] = count;
    for (auto i = edges.begin[s]; i < edges.begin[s + 1]; ++i)
      if (--left[edges.from[i]] == 0) order.push_back(edges.from[i]);
  }
  made[dfa::dead] = 0;
  return made;
}

result<dfa> determinise(const nfa& from, budget& work) {
  if (!work.spend(from.size() + 256)) return too_much_work(work);
  return subset_construction(from, work).run(from.start);
}

result<dfa> combine(const dfa& a, const dfa& b, combination how, budget& work, std::uint32_t extra) {
  dfa made;
  std::array<std::uint8_t, 256> pair_class{};
  std::unordered_map<unsigned, std::uint8_t> pairs;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const unsigned key = a.class_of[byte] * 256u + b.class_of[byte];
    pair_class[byte] = pairs.try_emplace(key, static_cast<std::uint8_t>(pairs.size())).first->second;
  }
  made.class_of = pair_class;
  made.classes = static_cast<std::uint32_t>(pairs.size());
  const auto first = first_bytes(made);

  std::unordered_map<std::uint64_t, std::uint32_t> index;
  std::vector<std::uint64_t> states{0};
  made.accepting.push_back(0);
  made.next.resize(made.classes, dfa::dead);
  const auto intern = [&](std::uint32_t x, std::uint32_t y) -> std::uint32_t {
    if (x == dfa::dead && (y == dfa::dead || how != combination::either)) return dfa::dead;
    if (how == combination::both && y == dfa::dead) return dfa::dead;
    const std::uint64_t key = (std::uint64_t{x} << 32) | y;
    const auto [place, is_new] = index.try_emplace(key, static_cast<std::uint32_t>(states.size()));
    if (is_new) {
      states.push_back(key);
      made.next.resize(made.next.size() + made.classes, dfa::dead);
      const auto p = a.accepting[x], q = b.accepting[y];
      std::uint32_t label = 0;
      switch (how) {
        case combination::both: label = q != 0 ? p : 0; break;
        case combination::either: label = p | q; break;
        case combination::first_only: label = q == 0 ? p : 0; break;
        case combination::labels: label = p != 0 && q != 0 ? p | extra : p; break;
      }
      made.accepting.push_back(label);
    }
    return place->second;
  };
  made.start = intern(a.start, b.start);
  for (std::uint32_t state = 1; state < states.size(); ++state) {
    if (!work.spend(made.classes * 2)) return too_much_work(work);
    if (states.size() > work.of().dfa_states_max) return too_much("states of an automaton", work.of().dfa_states_max);
    const auto x = static_cast<std::uint32_t>(states[state] >> 32), y = static_cast<std::uint32_t>(states[state]);
    std::uint32_t x_before = dfa::dead, y_before = dfa::dead, to = dfa::dead;
    for (std::uint32_t c = 0; c < made.classes; ++c) {
      const auto x_next = a.step(x, first[c]), y_next = b.step(y, first[c]);
      if (x_next != x_before || y_next != y_before) to = intern(x_next, y_next);
      x_before = x_next;
      y_before = y_next;
      made.next[std::size_t{state} * made.classes + c] = to;
    }
  }
  made.finish();
  return made;
}

const dfa& any_text() {
  static const dfa made = [] {
    limits of;
    budget work(of);
    nfa all;
    all.accept(all.star(all.codes(any_set())));
    return determinise(all, work).value();
  }();
  return made;
}

result<dfa> complement(const dfa& a, budget& work) { return combine(any_text(), a, combination::first_only, work); }

result<dfa> literals(const std::vector<std::string_view>& texts, budget& work) {
  nfa all;
  std::vector<nfa::fragment> parts;
  parts.reserve(texts.size());
  for (const auto text : texts) parts.push_back(all.text(text));
  if (parts.empty()) parts.push_back(all.never());
  all.accept(all.either(parts));
  return determinise(all, work);
}

}  // namespace skein::grammar
