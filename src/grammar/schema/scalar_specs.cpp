// Strings and numbers of a node.
#include <algorithm>
#include <mutex>

#include "base/utf8.hpp"
#include "grammar/schema/node_builder.hpp"

namespace skein::grammar {
namespace {

constexpr std::uint32_t table_lengths_max = 4'096;

/// The states that one code point leads to from a state, by way of the bytes of UTF-8.
std::vector<std::uint32_t> one_code_point(const dfa& of, std::uint32_t from) {
  struct step {
    std::uint32_t state;
    unsigned char low, high;  ///< of the next byte
    unsigned char more;       ///< bytes after it
  };
  std::vector<step> pending{{from, 0x00, 0x7f, 0}, {from, 0xc2, 0xdf, 1}, {from, 0xe0, 0xef, 2}, {from, 0xf0, 0xf4, 3}};
  std::vector<std::uint32_t> reached;
  std::vector<std::uint64_t> seen;
  while (!pending.empty()) {
    const auto here = pending.back();
    pending.pop_back();
    std::array<bool, 256> tried{};
    for (unsigned byte = here.low; byte <= here.high; ++byte) {
      const bool special = byte == 0xe0 || byte == 0xed || byte == 0xf0 || byte == 0xf4;
      if (!special && std::exchange(tried[of.class_of[byte]], true)) continue;
      const auto to = of.step(here.state, static_cast<unsigned char>(byte));
      if (to == dfa::dead) continue;
      if (here.more == 0) {
        reached.push_back(to);
        continue;
      }
      const unsigned char low = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
      const unsigned char high = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
      const std::uint64_t key =
          std::uint64_t{to} << 24 | std::uint64_t{low} << 16 | std::uint64_t{high} << 8 | here.more;
      if (std::ranges::find(seen, key) != seen.end()) continue;
      seen.push_back(key);
      pending.push_back({to, low, high, static_cast<unsigned char>(here.more - 1)});
    }
  }
  std::ranges::sort(reached);
  reached.erase(std::unique(reached.begin(), reached.end()), reached.end());
  return reached;
}

/// Whether an accepting state can be reached from a state.
std::vector<bool> live_states(const dfa& of, const std::vector<std::vector<std::uint32_t>>& next) {
  std::vector<std::vector<std::uint32_t>> before(of.states());
  std::vector<std::uint32_t> pending;
  std::vector<bool> live(of.states());
  for (std::uint32_t s = 1; s < of.states(); ++s) {
    for (const auto to : next[s]) before[to].push_back(s);
    if (of.accepting[s] != 0) live[s] = true, pending.push_back(s);
  }
  while (!pending.empty()) {
    const auto s = pending.back();
    pending.pop_back();
    for (const auto from : before[s])
      if (!live[from]) live[from] = true, pending.push_back(from);
  }
  return live;
}

/// Whether all states that can be reached from the start have a bit.
bool all_reached(const dfa& of, const std::vector<std::vector<std::uint32_t>>& next, const std::vector<bool>& bits) {
  std::vector<bool> seen(of.states());
  std::vector<std::uint32_t> pending{of.start};
  while (!pending.empty()) {
    const auto s = pending.back();
    pending.pop_back();
    if (seen[s]) continue;
    if (!bits[s]) return false;
    seen[s] = true;
    pending.insert(pending.end(), next[s].begin(), next[s].end());
  }
  return true;
}

/// The table for texts of at least `least` and at most `most` code points. Null if counting is enough: a text of the
/// automaton may end (without a limit: continue) after every code point.
result<std::shared_ptr<const program::length_table>> lengths_of(const dfa& of, std::uint32_t least, std::uint32_t most,
                                                                budget& work) {
  const bool limited = most != program::none;
  const std::uint64_t needed = limited ? most : least;
  std::vector<std::vector<std::uint32_t>> next(of.states());
  for (std::uint32_t s = 1; s < of.states(); ++s) {
    if (!work.spend(200)) return too_much_work(work);
    next[s] = one_code_point(of, s);
  }
  std::vector<std::vector<bool>> possible;
  if (limited) {
    possible.emplace_back(of.states());
    for (std::uint32_t s = 1; s < of.states(); ++s) possible[0][s] = of.accepting[s] != 0;
  } else {
    possible.push_back(live_states(of, next));
  }
  const auto last_needed = std::min<std::uint64_t>(needed, table_lengths_max);
  while (possible.size() <= last_needed) {
    if (!work.spend(of.states() * 4)) return too_much_work(work);
    std::vector<bool> now(of.states());
    for (std::uint32_t s = 1; s < of.states(); ++s)
      now[s] = std::ranges::any_of(next[s], [&](auto to) { return possible.back()[to]; });
    if (now == possible.back()) break;
    possible.push_back(std::move(now));
  }
  // The numbers settled at once.
  if (possible.size() == 1 && all_reached(of, next, possible[0])) return std::shared_ptr<const program::length_table>();
  if (possible.size() > last_needed && needed > table_lengths_max)
    return error{error_kind::unsupported, "a pattern with a limit of length above 4096 is not supported",
                 limited ? "maxLength" : "minLength"};
  auto made = std::make_shared<program::length_table>();
  made->last = static_cast<std::uint32_t>(possible.size() - 1);
  made->limited = limited;
  made->sums.resize(of.states() * (possible.size() + 1));
  for (std::uint32_t s = 0; s < of.states(); ++s)
    for (std::size_t k = 0; k < possible.size(); ++k)
      made->sums[s * (possible.size() + 1) + k + 1] = made->sums[s * (possible.size() + 1) + k] + possible[k][s];
  return std::shared_ptr<const program::length_table>(std::move(made));
}

std::string key_of(const decimal& d) { return (d.negative ? "-" : "") + d.digits + "e" + std::to_string(d.point); }

std::string key_of(const number_rules& r) {
  std::string key = r.integer ? "i" : r.not_integer ? "f" : "n";
  if (r.least) key += (r.least->exclusive ? ">" : "]") + key_of(r.least->value);
  if (r.most) key += (r.most->exclusive ? "<" : "[") + key_of(r.most->value);
  for (const auto& m : r.multiples) key += "*" + key_of(m);
  for (const auto& m : r.not_multiples) key += "/" + key_of(m);
  for (const auto& e : r.excluded) key += "!" + key_of(e);
  return key;
}

/// Rules without bounds other than 0 are the same in most schemas; the process keeps their automata.
bool is_common(const number_rules& r) {
  return r.multiples.empty() && r.not_multiples.empty() && r.excluded.empty() &&
         (!r.least || r.least->value.is_zero()) && (!r.most || r.most->value.is_zero());
}

}  // namespace

bool program::length_table::possible(std::uint32_t state, std::uint64_t least, std::uint64_t most) const {
  const auto row = std::size_t{state} * (last + 2);
  if (!limited) {
    const auto at = std::min<std::uint64_t>(least, last);
    return sums[row + at + 1] != sums[row + at];
  }
  if (most >= last && sums[row + last + 1] != sums[row + last]) return true;  // `last` stands for all that follow
  if (least > last) return false;
  const auto end = std::min<std::uint64_t>(most, last);
  return least <= end && sums[row + end + 1] != sums[row + least];
}

result<bool> node_builder::accepts(const string_rules& rules, std::string_view text) {
  const auto length = utf8_length(text);
  if (length < rules.least || length > rules.most) return false;
  if (std::ranges::find(rules.excluded, text) != rules.excluded.end()) return false;
  if (rules.included && std::ranges::find(*rules.included, text) == rules.included->end()) return false;
  for (const auto& pattern : rules.patterns) {
    const auto& language = with_.languages()[pattern.language];
    const bool fits = language.automaton->match(text) != 0 && length >= language.least && length <= language.most;
    if (fits == pattern.negated) return false;
  }
  return true;
}

/// The intersection of all patterns, without the excluded texts; null for any text. `lengths_apart`: a length limit of
/// a pattern is moved into the rules.
result<std::shared_ptr<const dfa>> node_builder::string_automaton(string_rules& rules, bool lengths_apart) {
  std::shared_ptr<const dfa> made;
  std::ranges::sort(rules.patterns);
  rules.patterns.erase(std::unique(rules.patterns.begin(), rules.patterns.end()), rules.patterns.end());
  const auto intersect = [&](std::shared_ptr<const dfa> with) -> result<void> {
    if (!made) {
      made = std::move(with);
      return {};
    }
    auto both = combine(*made, *with, combination::both, work_);
    if (!both) return both.error();
    made = std::make_shared<const dfa>(std::move(*both));
    return {};
  };
  for (const auto& pattern : rules.patterns) {
    const auto& language = with_.languages()[pattern.language];
    auto automaton = language.automaton;
    if (lengths_apart && !pattern.negated) {
      rules.least = std::max<std::uint64_t>(rules.least, language.least);
      if (language.most != pattern_language::no_limit) rules.most = std::min<std::uint64_t>(rules.most, language.most);
    } else {
      const auto whole = with_.languages().whole(pattern.language);
      if (!whole) return whole.error();
      automaton = *whole;
    }
    if (pattern.negated) {
      auto other = complement(*automaton, work_);
      if (!other) return other.error();
      automaton = std::make_shared<const dfa>(std::move(*other));
    }
    if (const auto done = intersect(std::move(automaton)); !done) return done.error();
  }
  if (!rules.excluded.empty()) {
    const auto listed = literals(rules.excluded, work_);
    if (!listed) return listed.error();
    auto other = complement(*listed, work_);
    if (!other) return other.error();
    if (const auto done = intersect(std::make_shared<const dfa>(std::move(*other))); !done) return done.error();
  }
  return made;
}

result<void> node_builder::add_string(program::node& to, const string_rules& rules,
                                      std::vector<std::string>& literals) {
  if (rules.included) {
    for (const auto text : *rules.included) {
      if (!work_.spend(10 + text.size() * (1 + rules.patterns.size()))) return too_much_work(work_);
      const auto fits = accepts(rules, text);
      if (!fits) return fits.error();
      if (*fits) literals.emplace_back(text);
    }
    return {};
  }
  auto own = rules;
  std::string key = std::to_string(own.least) + "," + std::to_string(own.most);
  for (const auto& pattern : own.patterns) key += (pattern.negated ? "!" : "=") + std::to_string(pattern.language);
  for (const auto text : own.excluded) key.append("-").append(std::to_string(text.size())).append(":").append(text);
  const auto [place, is_new] = string_index_.try_emplace(std::move(key), program::none);
  if (is_new) {
    program::string_spec made;
    auto automaton = string_automaton(own, true);
    if (!automaton) return automaton.error();
    made.automaton = std::move(*automaton);
    if (made.automaton && made.automaton->is_empty()) return {};
    if (own.least > own.most) return {};
    made.least = static_cast<std::uint32_t>(std::min<std::uint64_t>(own.least, 0x7fffffff));
    made.most = own.most >= 0x7fffffff ? program::none : static_cast<std::uint32_t>(own.most);
    const bool limited = made.least > 0 || made.most != program::none;
    if (made.automaton && limited) {
      auto lengths = lengths_of(*made.automaton, made.least, made.most, work_);
      if (!lengths) return lengths.error();
      made.lengths = std::move(*lengths);
      if (made.lengths && !made.lengths->possible(made.automaton->start, made.least, made.most)) return {};
    }
    place->second = static_cast<std::uint32_t>(made_.strings.size());
    made_.strings.push_back(std::move(made));
  }
  if (place->second != program::none && std::ranges::find(to.strings, place->second) == to.strings.end())
    to.strings.push_back(place->second);
  return {};
}

result<void> node_builder::add_strings(program::node& to, const std::vector<alternative>& all) {
  std::vector<std::string> literals;
  for (const auto& each : all)
    if ((each.types & string_type) != 0)
      if (const auto added = add_string(to, each.strings, literals); !added) return added;
  if (literals.empty()) return {};
  if (literals.size() > work_.of().names_max) return too_much("values in one enum", work_.of().names_max);
  program::string_spec made;
  made.literal = true;
  std::ranges::sort(literals);
  literals.erase(std::unique(literals.begin(), literals.end()), literals.end());
  made.literals = std::move(literals);
  to.strings.push_back(static_cast<std::uint32_t>(made_.strings.size()));
  made_.strings.push_back(std::move(made));
  return {};
}

result<std::shared_ptr<const dfa>> node_builder::number(const number_rules& rules) {
  number_rules own = rules;
  const decimal one = *parse_decimal("1", 1);
  std::erase_if(own.multiples, [&](const decimal& m) {
    const auto by = scaled_of(m);
    if (m == one) own.integer = true;
    return own.integer && by && is_multiple(one, *by);  // every whole number is a multiple of it
  });
  std::ranges::sort(own.multiples, [](const auto& a, const auto& b) { return compare(a, b) < 0; });
  own.multiples.erase(std::unique(own.multiples.begin(), own.multiples.end()), own.multiples.end());
  const auto key = key_of(own);
  if (const auto found = numbers_.find(key); found != numbers_.end()) return found->second;
  const auto build = [&](budget& with) -> result<std::shared_ptr<const dfa>> {
    auto made = number_automaton(own, with);
    if (!made) return made.error();
    return std::make_shared<const dfa>(std::move(*made));
  };
  if (!is_common(own)) {
    auto made = build(work_);
    if (!made) return made;
    return numbers_[key] = *made;
  }
  static std::mutex guard;
  static std::map<std::string, std::shared_ptr<const dfa>> common;
  const std::lock_guard lock(guard);
  auto& place = common[key + (work_.of().plain_numbers ? 'p' : 'f')];
  if (!place) {
    budget separate(limits{.plain_numbers = work_.of().plain_numbers});
    auto made = build(separate);
    if (!made) return made;
    place = *made;
  }
  return numbers_[key] = place;
}

result<void> node_builder::add_numbers(program::node& to, const std::vector<alternative>& all) {
  std::vector<decimal> listed;
  const auto add = [&](std::shared_ptr<const dfa> made) -> result<void> {
    if (made->is_empty() || made == to.number) return {};
    if (!to.number) {
      to.number = std::move(made);
      return {};
    }
    auto both = combine(*to.number, *made, combination::either, work_);
    if (!both) return both.error();
    to.number = std::make_shared<const dfa>(std::move(*both));
    return {};
  };
  for (const auto& each : all) {
    if ((each.types & number_type) == 0) continue;
    if (each.numbers_included) {
      for (const auto& value : *each.numbers_included)
        if (each.numbers.accepts(value)) listed.push_back(value);
      continue;
    }
    auto made = number(each.numbers);
    if (!made) return made.error();
    if (const auto added = add(std::move(*made)); !added) return added;
  }
  if (listed.empty()) return {};
  auto made = number_literals(listed, work_);
  if (!made) return made.error();
  return add(std::make_shared<const dfa>(std::move(*made)));
}

}  // namespace skein::grammar
