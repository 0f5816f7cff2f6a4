#include "grammar/schema/member_names.hpp"

namespace skein::grammar {
namespace {

constexpr std::uint64_t name_length_max = 1'000;

}  // namespace

result<bool> member_names::allowed(const std::vector<atom>& rules, std::string_view name) {
  for (const auto& each : rules) {
    const auto alternatives = with_.expand(with_.simplified({each}));
    if (!alternatives) return alternatives.error();
    bool fits = false;
    for (const auto& one : *alternatives) {
      if ((one.types & string_type) == 0) continue;
      const auto accepted = scalars_.accepts(one.strings, name);
      if (!accepted) return accepted;
      fits = fits || *accepted;
    }
    if (!fits) return false;
  }
  return true;
}

result<std::shared_ptr<const dfa>> member_names::automaton(const std::vector<atom>& rules) {
  std::shared_ptr<const dfa> all;
  for (const auto& each : rules) {
    const auto alternatives = with_.expand(with_.simplified({each}));
    if (!alternatives) return alternatives.error();
    auto none_yet = literals({}, work_);
    if (!none_yet) return none_yet.error();
    dfa either = std::move(*none_yet);
    for (const auto& one : *alternatives) {
      if ((one.types & string_type) == 0) continue;
      auto strings = one.strings;
      auto made = scalars_.string_automaton(strings, false);
      if (!made) return made.error();
      if (!*made) *made = std::make_shared<const dfa>(any_text());
      const auto intersect = [&](const result<dfa>& with) -> result<void> {
        if (!with) return with.error();
        auto both = combine(**made, *with, combination::both, work_);
        if (!both) return both.error();
        *made = std::make_shared<const dfa>(std::move(*both));
        return {};
      };
      if (strings.included)
        if (const auto done = intersect(literals(*strings.included, work_)); !done) return done.error();
      if (strings.least > 0 || strings.most != ~std::uint64_t{0}) {
        if (strings.least > name_length_max || (strings.most > name_length_max && strings.most != ~std::uint64_t{0}))
          return error{error_kind::unsupported, "a length of names above 1000 is not supported", "propertyNames"};
        nfa code;
        bool fits = true;
        const auto any = code.codes(any_set());
        code.accept(
            code.repeat(any, static_cast<std::uint32_t>(strings.least),
                        strings.most == ~std::uint64_t{0} ? nfa::none : static_cast<std::uint32_t>(strings.most),
                        work_.of().instructions_max, fits));
        if (const auto done = intersect(determinise(code, work_)); !done) return done.error();
      }
      auto both = combine(either, **made, combination::either, work_);
      if (!both) return both.error();
      either = std::move(*both);
    }
    if (!all) {
      all = std::make_shared<const dfa>(std::move(either));
    } else {
      auto both = combine(*all, either, combination::both, work_);
      if (!both) return both.error();
      all = std::make_shared<const dfa>(std::move(*both));
    }
  }
  return all;
}

}  // namespace skein::grammar
