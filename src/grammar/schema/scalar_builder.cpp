#include "grammar/schema/scalar_builder.hpp"

#include <algorithm>
#include <mutex>

#include "base/utf8.hpp"
#include "grammar/schema/length_table.hpp"

namespace skein::grammar {
namespace {

std::string key_of(const decimal& d) { return (d.negative ? "-" : "") + d.digits + "e" + std::to_string(d.point); }

std::string key_of(const number_rules& r) {
  std::string key = r.integer ? "i" : "n";
  if (r.not_integer) key += 'f';
  if (r.plain) key += 'p';
  if (r.least) key += (r.least->exclusive ? ">" : "]") + key_of(r.least->value);
  if (r.most) key += (r.most->exclusive ? "<" : "[") + key_of(r.most->value);
  for (const auto& m : r.multiples) key += "*" + key_of(m);
  for (const auto& m : r.not_multiples) key += "/" + key_of(m);
  for (const auto& e : r.excluded) key += "!" + key_of(e);
  return key;
}

result<std::shared_ptr<const dfa>> shared_number(result<dfa> made, budget& work) {
  if (!made) return made.error();
  if (!work.spend(made->next.size())) return too_much_work(work);
  made->add_needs();
  return std::make_shared<const dfa>(std::move(*made));
}

/// Rules without bounds other than 0 are the same in most schemas; the process keeps their automata.
bool is_common(const number_rules& r) {
  return r.multiples.empty() && r.not_multiples.empty() && r.excluded.empty() &&
         (!r.least || r.least->value.is_zero()) && (!r.most || r.most->value.is_zero());
}

}  // namespace

result<bool> scalar_builder::accepts(const string_rules& rules, std::string_view text) {
  if (rules.included && std::ranges::find(*rules.included, text) == rules.included->end()) return false;
  return accepts_listed(rules, text);
}

/// The same for a text that is included.
bool scalar_builder::accepts_listed(const string_rules& rules, std::string_view text) const {
  const auto length = utf8_length(text);
  if (length < rules.least || length > rules.most) return false;
  if (std::ranges::find(rules.excluded, text) != rules.excluded.end()) return false;
  for (const auto& pattern : rules.patterns) {
    const auto& language = languages_[pattern.language];
    const bool fits = language.automaton->match(text) != 0 && length >= language.least && length <= language.most;
    if (fits == pattern.negated) return false;
  }
  return true;
}

result<std::shared_ptr<const dfa>> scalar_builder::string_automaton(string_rules& rules, bool lengths_apart) {
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
    const auto& language = languages_[pattern.language];
    auto automaton = language.automaton;
    if (lengths_apart && !pattern.negated) {
      rules.least = std::max<std::uint64_t>(rules.least, language.least);
      if (language.most != pattern_language::no_limit) rules.most = std::min<std::uint64_t>(rules.most, language.most);
    } else {
      const auto whole = languages_.whole(pattern.language);
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

result<void> scalar_builder::add_string(program::node& to, const string_rules& rules,
                                        std::vector<std::string>& literals) {
  if (rules.included) {
    for (const auto text : *rules.included) {
      if (!work_.spend(10 + text.size() * (1 + rules.patterns.size()))) return too_much_work(work_);
      if (accepts_listed(rules, text)) literals.emplace_back(text);
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
      auto lengths = lengths_of(*made.automaton, made.most, work_);
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

result<void> scalar_builder::add_strings(program::node& to, const std::vector<alternative>& all) {
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

result<std::shared_ptr<const dfa>> scalar_builder::number(const number_rules& rules) {
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
    return shared_number(std::move(made), with);
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

result<void> scalar_builder::add_numbers(program::node& to, const std::vector<alternative>& all) {
  std::vector<decimal> listed;
  to.number_bytes_max = work_.of().number_bytes_max;
  const auto add = [&](std::shared_ptr<const dfa> made) -> result<void> {
    if (made->is_empty() || made == to.number) return {};
    // The shortest number of each alternative fits.
    to.number_bytes_max = std::max<std::uint32_t>(to.number_bytes_max, made->needs[made->start]);
    if (!to.number) {
      to.number = std::move(made);
      return {};
    }
    auto both = shared_number(combine(*to.number, *made, combination::either, work_), work_);
    if (!both) return both.error();
    to.number = std::move(*both);
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
  const bool plain = std::ranges::any_of(all, [](const auto& each) { return each.numbers.plain; });
  auto made = shared_number(number_literals(listed, plain || work_.of().plain_numbers, work_), work_);
  if (!made) return made.error();
  if (const auto added = add(std::move(*made)); !added) return added;
  // So does each constant.
  for (const auto& value : listed) {
    const auto whole = std::max<std::size_t>(value.whole().size(), 1), fraction = value.fraction().size();
    const auto bytes = (value.negative ? 1 : 0) + whole + (fraction > 0 ? 1 + fraction : 0);
    to.number_bytes_max = std::max(to.number_bytes_max, static_cast<std::uint32_t>(bytes));
  }
  return {};
}

}  // namespace skein::grammar
