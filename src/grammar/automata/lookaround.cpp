// A state of the result is a state of the expression (condition_states.hpp) and a context: what the lookarounds are
// worth at this place of the text. A lookahead is worth the state of its code that begins here. A lookbehind has a
// state that runs along from the beginning of the text, and is worth the configurations of it that match here. A `look`
// instruction then adds what it refers to as a condition.
//
// A lookaround may contain those of lower indices, so all loops go upwards, and conditions are nested as deep as the
// lookarounds of the expression, which its reader limits.
#include "grammar/automata/lookaround.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "grammar/automata/byte_classes.hpp"
#include "grammar/automata/condition_states.hpp"

namespace skein::grammar {
namespace {

using states = condition_states;
using configuration = states::configuration;

class construction {
 public:
  construction(const nfa& from, std::span<const lookaround> looks, budget& work) : work_(work) {
    main_start_ = add(from);
    for (const auto& look : looks) looks_.push_back({add(look.code), look.behind});
    byte_classes classes;
    for (const auto& i : code_)
      if (i.what == nfa::op::byte) classes.add(i.low, i.high);
    classes.write(made_);
    seen_.resize(code_.size(), 0);
  }

  result<dfa> run() {
    made_.accepting.push_back(0);
    made_.next.resize(made_.classes, dfa::dead);
    made_.start = start();
    for (std::uint32_t at = 1; at < keys_.size() && fits(); ++at) {
      const auto [state, context] = keys_[at];
      std::uint32_t to = at, after = context, before = context;
      for (std::uint32_t c = 0; c < made_.classes && fits(); ++c) {
        if (state != states::always) {
          before = std::exchange(after, context_after(context, c));
          if (c == 0 || before != after || !same_seeds(state, c)) to = intern(step(state, c, after), after);
        }
        made_.next[std::size_t{at} * made_.classes + c] = to;
      }
    }
    if (out_of_work_) return too_much_work(work_);
    if (!fits()) return too_much("states of an automaton", work_.of().dfa_states_max);
    made_.finish();
    return std::move(made_);
  }

 private:
  struct part {
    std::uint32_t start = 0;
    bool behind = false;
  };
  /// What the first lookarounds are worth, for as many as `worth` has. Contexts form a tree, in which each lookaround
  /// adds a level, so that a lookaround can be computed in the context of those before it.
  struct context {
    bool at_begin = false;
    std::vector<states::state> running;  ///< of lookbehinds; `never` for lookaheads
    std::vector<states::state> worth;
  };
  struct key {
    states::state state;
    std::uint32_t context;
  };
  struct seed {
    std::uint32_t place;
    states::conditions on;
  };

  /// Appends code; returns its start.
  std::uint32_t add(const nfa& of) {
    const auto shift = static_cast<std::uint32_t>(code_.size());
    for (auto i : of.code()) {
      if (i.out != nfa::none) i.out += shift;
      if (i.what == nfa::op::split) i.other += shift;
      code_.push_back(i);
    }
    if (!of.ranks().empty()) {
      ranks_.resize(shift);
      for (auto each : of.ranks()) {
        for (auto& level : each)
          if (level.of != nfa::none) level.of += shift;
        ranks_.push_back(each);
      }
    }
    return of.start + shift;
  }

  bool spend(std::uint64_t steps) {
    out_of_work_ = out_of_work_ || !work_.spend(steps);
    return !out_of_work_;
  }
  [[nodiscard]] bool fits() const {
    const auto most = work_.of().dfa_states_max;
    return !out_of_work_ && keys_.size() <= most && contexts_.size() <= most && states_.size() <= 8 * most;
  }

  std::uint32_t start() {
    contexts_.push_back({.at_begin = true, .running = {}, .worth = {}});
    contexts_.push_back({});
    keys_.push_back({states::never, 0});
    std::uint32_t at = 0;
    for (const auto& look : looks_) at = next_context(at, look.behind ? begin_at(look.start, at) : states::never);
    return intern(begin_at(main_start_, at), at);
  }

  /// The context with one more lookaround.
  std::uint32_t next_context(std::uint32_t from, states::state running) {
    const std::uint64_t edge = std::uint64_t{from} << 32 | running;
    if (const auto found = context_index_.find(edge); found != context_index_.end()) return found->second;
    const auto& look = looks_[contexts_[from].worth.size()];
    auto made = contexts_[from];
    spend(32 + made_.classes + 2 * made.worth.size());
    made.running.push_back(running);
    made.worth.push_back(look.behind ? matches_here(running) : begin_at(look.start, from));
    const auto at = static_cast<std::uint32_t>(contexts_.size());
    contexts_.push_back(std::move(made));
    context_index_.emplace(edge, at);
    return at;
  }

  std::uint32_t context_after(std::uint32_t from, std::uint32_t c) {
    after_.resize(std::max(after_.size(), std::size_t{from + 1} * made_.classes), unknown);
    if (const auto known = after_[std::size_t{from} * made_.classes + c]; known != unknown) return known;
    std::uint32_t at = 1;
    for (std::size_t i = 0; i < looks_.size() && spend(32); ++i)
      at = next_context(at, looks_[i].behind ? step(contexts_[from].running[i], c, at) : states::never);
    after_[std::size_t{from} * made_.classes + c] = at;
    return at;
  }

  states::state begin_at(std::uint32_t place, std::uint32_t context) {
    seeds_.assign(1, {place, states::none});
    return close(context);
  }

  /// What a lookbehind is worth whose code is in this state.
  states::state matches_here(states::state running) {
    std::vector<configuration> found;
    for (auto one : states_.configurations(running)) {
      if (one.place == states::at_match)
        one.place = states::at_match_any;
      else if (code_[one.place].what != nfa::op::text_end)
        continue;
      found.push_back(one);
    }
    spend(found.size() + 1);
    return states_.state_of(found);
  }

  /// The state after a byte, in the context there.
  states::state step(states::state from, std::uint32_t c, std::uint32_t context) {
    if (from == states::never || from == states::always) return from;
    const step_key key{from, c, context};
    if (const auto known = steps_.find(key); known != steps_.end()) return known->second;
    const auto& table = seeds_of(from);
    if (!spend(64 + 8 * (table.begin[c + 1] - table.begin[c]))) return states::never;
    std::vector<seed> seeds(table.seeds.begin() + table.begin[c], table.seeds.begin() + table.begin[c + 1]);
    for (auto& one : seeds) one.on = step_conditions(one.on, c, context);
    std::erase_if(seeds, [](const seed& one) { return one.on == states::impossible; });
    std::vector<std::uint32_t> all{context};
    for (const auto& one : seeds) all.insert(all.end(), {one.place, one.on});
    const auto [known, is_new] = closed_.try_emplace(std::move(all), states::never);
    if (is_new) {
      seeds_ = std::move(seeds);
      known->second = close(context);
    }
    steps_.emplace(key, known->second);
    return known->second;
  }

  /// Where each class of bytes leads from a state, with the conditions before the byte.
  struct seed_table {
    std::vector<std::uint32_t> begin;  ///< [classes + 1] into `seeds`
    std::vector<seed> seeds;
  };
  /// True if a byte of class c leads from a state to the same as one of class c - 1, without conditions.
  bool same_seeds(states::state from, std::uint32_t c) {
    const auto& table = seeds_of(from);
    const auto* const all = table.seeds.data();
    const std::span a(all + table.begin[c - 1], all + table.begin[c]),
        b(all + table.begin[c], all + table.begin[c + 1]);
    spend(8 + b.size());
    return std::ranges::equal(a, b, [](const seed& x, const seed& y) {
      return x.place == y.place && x.on == states::none && y.on == states::none;
    });
  }
  const seed_table& seeds_of(states::state from) {
    if (const auto known = tables_.find(from); known != tables_.end()) return known->second;
    constexpr std::size_t kept_max = 4'000'000;
    if (kept_ > kept_max) {
      tables_.clear();
      kept_ = 0;
    }
    std::vector<std::vector<seed>> by_class(made_.classes);
    for (const auto& one : states_.configurations(from)) {
      if (one.place == states::at_match) continue;
      if (one.place == states::at_match_any) {
        for (auto& list : by_class) list.push_back({one.place, one.on});
      } else if (const auto& i = code_[one.place]; i.what == nfa::op::byte) {
        for (unsigned c = made_.class_of[i.low]; c <= made_.class_of[i.high]; ++c)
          by_class[c].push_back({i.out, one.on});
      }
    }
    auto& made = tables_[from];
    for (const auto& list : by_class) {
      made.begin.push_back(static_cast<std::uint32_t>(made.seeds.size()));
      made.seeds.insert(made.seeds.end(), list.begin(), list.end());
    }
    made.begin.push_back(static_cast<std::uint32_t>(made.seeds.size()));
    kept_ += made.begin.size() + made.seeds.size();
    spend(4 * states_.configurations(from).size() + made.begin.size() + made.seeds.size());
    return made;
  }

  states::conditions step_conditions(states::conditions on, std::uint32_t c, std::uint32_t context) {
    if (on == states::none) return on;
    const auto all = states_.list(on);  // a copy: steps add conditions
    std::vector<std::uint32_t> after;
    after.reserve(all.size());
    for (const auto one : all) after.push_back(step(one / 2, c, context) * 2 + one % 2);
    spend(16 * all.size());
    return states_.set_of(std::move(after));
  }

  /// The state of all that `seeds_` lead to without a byte.
  states::state close(std::uint32_t context) {
    ++round_;
    seen_on_.clear();
    std::vector<configuration> found;
    auto& pending = seeds_;
    const auto& here = contexts_[context];
    while (!pending.empty() && spend(8)) {
      const auto [place, on] = pending.back();
      pending.pop_back();
      if (place == states::at_match_any) {
        found.push_back({place, on});
        continue;
      }
      if (place == nfa::none || !is_new(place, on)) continue;
      const auto& i = code_[place];
      switch (i.what) {
        case nfa::op::jump: pending.push_back({i.out, on}); break;
        case nfa::op::split:
          pending.push_back({i.other, on});
          pending.push_back({i.out, on});
          break;
        case nfa::op::text_begin:
          if (here.at_begin) pending.push_back({i.out, on});
          break;
        case nfa::op::look:
        case nfa::op::look_not: {
          const auto more = states_.with(on, here.worth[i.other], i.what == nfa::op::look_not);
          spend(8 + 8 * states_.list(on).size());
          if (more != states::impossible) pending.push_back({i.out, more});
          break;
        }
        case nfa::op::byte:
        case nfa::op::text_end: found.push_back({place, on}); break;
        case nfa::op::match: found.push_back({states::at_match, on}); break;
        case nfa::op::match_any: found.push_back({states::at_match_any, on}); break;
        case nfa::op::call:  // not in a pattern
        case nfa::op::fail: break;
      }
    }
    pending.clear();
    drop_weaker_copies(found);
    const auto made = states_.state_of(found);
    spend(32 * found.size() + states_.take_work());
    return made;
  }

  /// Leaves out what another copy of the same instruction accepts as well, under the same conditions.
  void drop_weaker_copies(std::vector<configuration>& found) {
    if (found.size() < 2 || ranks_.empty()) return;
    for (std::size_t level = 0; level < nfa::rank_levels; ++level) {
      const auto rank_of = [&](const configuration& one) {
        return one.place < ranks_.size() ? ranks_[one.place][level] : nfa::copy_rank{};
      };
      const auto key = [](const nfa::copy_rank& rank, const configuration& one) {
        return std::uint64_t{rank.of} << 32 | one.on;
      };
      least_.clear();
      for (const auto& one : found)
        if (const auto rank = rank_of(one); rank.of != nfa::none) {
          const auto [place, is_new] = least_.try_emplace(key(rank, one), rank.rank);
          if (!is_new) place->second = std::min(place->second, rank.rank);
        }
      if (least_.empty()) continue;
      std::erase_if(found, [&](const configuration& one) {
        const auto rank = rank_of(one);
        return rank.of != nfa::none && rank.rank > least_.find(key(rank, one))->second;
      });
    }
  }

  /// False the second time in one closure.
  bool is_new(std::uint32_t place, states::conditions on) {
    if (on != states::none) return seen_[place] != round_ && seen_on_.insert(std::uint64_t{place} << 32 | on).second;
    if (seen_[place] == round_) return false;
    seen_[place] = round_;
    return true;
  }

  /// True if the text may end in this state.
  bool accepts(states::state of, std::uint32_t context) {
    if (of == states::never || of == states::always) return of == states::always;
    const std::uint64_t key = std::uint64_t{of} << 32 | context;
    if (const auto known = accepted_.find(key); known != accepted_.end()) return known->second;
    const auto& all = states_.configurations(of);  // no state is added here
    spend(16 + 4 * all.size());
    const bool made = std::ranges::any_of(all, [&](const configuration& one) {
      const auto holds = [&](std::uint32_t condition) {
        return accepts(condition / 2, context) == (condition % 2 == 0);
      };
      return ends(one.place, context) && std::ranges::all_of(states_.list(one.on), holds);
    });
    accepted_.emplace(key, made);
    return made;
  }

  /// True if a match can be reached from this place at the end of the text.
  bool ends(std::uint32_t place, std::uint32_t context) {
    if (place == states::at_match || place == states::at_match_any) return true;
    if (code_[place].what != nfa::op::text_end) return false;
    const auto& here = contexts_[context];
    std::vector<std::uint32_t> pending{code_[place].out};
    std::unordered_set<std::uint32_t> seen;
    while (!pending.empty() && spend(8)) {
      const auto at = pending.back();
      pending.pop_back();
      if (at == nfa::none || !seen.insert(at).second) continue;
      const auto& i = code_[at];
      switch (i.what) {
        case nfa::op::split: pending.push_back(i.other); [[fallthrough]];
        case nfa::op::jump:
        case nfa::op::text_end: pending.push_back(i.out); break;
        case nfa::op::text_begin:
          if (here.at_begin) pending.push_back(i.out);
          break;
        case nfa::op::look:
        case nfa::op::look_not:
          if (accepts(here.worth[i.other], context) == (i.what == nfa::op::look)) pending.push_back(i.out);
          break;
        case nfa::op::match:
        case nfa::op::match_any: return true;
        case nfa::op::byte:
        case nfa::op::call:
        case nfa::op::fail: break;
      }
    }
    return false;
  }

  /// The state of the result.
  std::uint32_t intern(states::state state, std::uint32_t context) {
    if (state == states::never) return dfa::dead;
    if (state == states::always) context = 0;
    const auto [place, is_new] =
        index_.try_emplace(std::uint64_t{state} << 32 | context, static_cast<std::uint32_t>(keys_.size()));
    if (is_new) {
      keys_.push_back({state, context});
      made_.next.resize(made_.next.size() + made_.classes, dfa::dead);
      made_.accepting.push_back(accepts(state, context) ? 1 : 0);
    }
    return place->second;
  }

  struct step_key {
    states::state state;
    std::uint32_t byte_class, context;
    bool operator==(const step_key&) const = default;
  };
  struct step_hash {
    std::size_t operator()(const step_key& k) const {
      std::uint64_t h = (std::uint64_t{k.state} << 32 | k.context) * 0x9e3779b97f4a7c15u;
      h = (h ^ h >> 29 ^ k.byte_class) * 0xff51afd7ed558ccdu;
      return static_cast<std::size_t>(h ^ h >> 32);
    }
  };

  budget& work_;
  bool out_of_work_ = false;
  std::vector<nfa::instruction> code_;
  std::vector<nfa::copy_ranks> ranks_;  ///< [instructions], or shorter
  std::uint32_t main_start_ = 0;
  std::vector<part> looks_;
  dfa made_;
  states states_;
  static constexpr std::uint32_t unknown = ~std::uint32_t{0};
  std::vector<std::uint32_t> after_;  ///< [contexts, classes] the context after a byte
  std::vector<context> contexts_;     ///< 0: at the beginning of the text, 1: elsewhere; the others are below these
  std::unordered_map<std::uint64_t, std::uint32_t> context_index_;
  std::vector<key> keys_;  ///< of the states of the result
  std::unordered_map<std::uint64_t, std::uint32_t> index_;
  std::unordered_map<step_key, states::state, step_hash> steps_;
  std::unordered_map<std::vector<std::uint32_t>, states::state, vector_hash> closed_;  ///< by context and seeds
  std::unordered_map<states::state, seed_table> tables_;
  std::size_t kept_ = 0;  ///< the size of `tables_`
  std::unordered_map<std::uint64_t, bool> accepted_;
  // Of one closure.
  std::vector<seed> seeds_;
  std::vector<std::uint32_t> seen_;
  std::unordered_set<std::uint64_t> seen_on_;
  std::unordered_map<std::uint64_t, std::uint32_t> least_;  ///< ranks of copies
  std::uint32_t round_ = 0;
};

}  // namespace

result<dfa> determinise(const nfa& from, std::span<const lookaround> looks, budget& work) {
  std::uint64_t size = from.size() + 256;
  for (const auto& look : looks) size += look.code.size();
  if (!work.spend(size)) return too_much_work(work);
  return construction(from, looks, work).run();
}

}  // namespace skein::grammar
