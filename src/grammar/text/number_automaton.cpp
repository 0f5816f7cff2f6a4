// The automaton is the product of small machines that read the same number: one for the syntax, one for each bound
// (which compares the digits with those of the bound, and so knows whether the number is less, equal or greater), one
// for each multiple (which keeps the remainder). Its states are the tuples that are reached.
#include "grammar/text/number_automaton.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <unordered_map>

namespace skein::grammar {
namespace {

enum phase : std::uint16_t {
  begin,
  minus,
  zero,
  whole,
  point,
  fraction,
  exponent,
  exponent_sign,
  exponent_digits,
  bad
};
enum order : std::uint16_t { equal, less, greater };

constexpr std::string_view symbols = "0123456789-+.eE";
constexpr std::uint32_t steps_largest = 20'000;
/// A fraction this long at most may precede the exponent of a whole number.
constexpr std::uint16_t moved_max = 17;

phase next_phase(phase at, char c) {
  const bool digit = c >= '0' && c <= '9', e = c == 'e' || c == 'E';
  switch (at) {
    case begin:
      if (c == '-') return minus;
      [[fallthrough]];
    case minus: return c == '0' ? zero : digit ? whole : bad;
    case zero: return c == '.' ? point : e ? exponent : bad;
    case whole: return digit ? whole : c == '.' ? point : e ? exponent : bad;
    case point: return digit ? fraction : bad;
    case fraction: return digit ? fraction : e ? exponent : bad;
    case exponent:
      if (c == '+' || c == '-') return exponent_sign;
      [[fallthrough]];
    case exponent_sign:
    case exponent_digits: return digit ? exponent_digits : bad;
    case bad: break;
  }
  return bad;
}

/// Compares the size of a number with a bound that is not 0.
struct comparison {
  std::string whole_digits, fraction_digits, all_digits;
  int exponent = 0;  ///< of the bound with one digit before the point

  explicit comparison(const decimal& bound)
      : whole_digits(bound.whole()),
        fraction_digits(bound.fraction()),
        all_digits(bound.digits),
        exponent(bound.point - 1) {}

  /// Two pairs (place, order): of the plain number, and of its digits without the point.
  struct state {
    std::uint16_t place = 0, result = equal, digit = 0, digits_result = equal;
  };
  /// Forgets what makes no difference any more. `by_digits`: an exponent may follow.
  void reduce(state& s, phase at, bool by_digits) const {
    if (!by_digits) s.digit = 0, s.digits_result = less;
    if (s.digits_result != equal) s.digit = 0;
    const bool in_fraction = at == point || at == fraction;
    if (at > fraction || (at == whole && s.place > whole_digits.size())) s.result = less;
    if (at > fraction || (in_fraction && s.result != equal)) s.place = 0;
  }
  static void compare_digit(char c, const std::string& with, std::uint16_t at, std::uint16_t& result) {
    if (result != equal) return;
    const char other = at < with.size() ? with[at] : '0';
    if (c != other) result = c < other ? less : greater;
  }
  void step(state& s, phase to, char c) const {
    if (to == whole) {
      if (s.place < whole_digits.size()) compare_digit(c, whole_digits, s.place, s.result);
      s.place = std::min<std::uint16_t>(static_cast<std::uint16_t>(s.place + 1),
                                        static_cast<std::uint16_t>(whole_digits.size() + 1));
    } else if (to == point) {
      s.result = at_whole_end(s);
      s.place = 0;
    } else if (to == fraction) {
      compare_digit(c, fraction_digits, s.place, s.result);
      if (s.result == equal) s.place = advanced(s.place, fraction_digits.size());
    }
    if (to == whole || to == fraction) {
      compare_digit(c, all_digits, s.digit, s.digits_result);
      if (s.digits_result == equal) s.digit = advanced(s.digit, all_digits.size());
    }
  }
  /// The digits with which the next digit is compared; 0: with none.
  std::array<char, 2> watched(const state& s, phase to) const {
    const auto digit = [](const std::string& of, std::uint16_t at) { return at < of.size() ? of[at] : '0'; };
    std::array<char, 2> made{};
    if (to == whole && s.result == equal && s.place < whole_digits.size()) made[0] = whole_digits[s.place];
    if (to == fraction && s.result == equal) made[0] = digit(fraction_digits, s.place);
    if (s.digits_result == equal) made[1] = digit(all_digits, s.digit);
    return made;
  }
  static std::uint16_t advanced(std::uint16_t place, std::size_t size) {
    return std::min<std::uint16_t>(static_cast<std::uint16_t>(place + 1), static_cast<std::uint16_t>(size));
  }
  std::uint16_t at_whole_end(const state& s) const {
    if (s.place != whole_digits.size()) return s.place < whole_digits.size() ? less : greater;
    return s.result;
  }
  std::uint16_t plain_result(const state& s, phase at) const {
    if (at != fraction) {
      const auto here = at_whole_end(s);
      return here == equal && !fraction_digits.empty() ? static_cast<std::uint16_t>(less) : here;
    }
    return s.result == equal && s.place < fraction_digits.size() ? static_cast<std::uint16_t>(less) : s.result;
  }
  std::uint16_t exponent_result(const state& s, int value) const {
    if (value != exponent) return value < exponent ? less : greater;
    return s.digits_result == equal && s.digit < all_digits.size() ? static_cast<std::uint16_t>(less) : s.digits_result;
  }
};

/// The remainder of a number.
struct division {
  scaled by;
  static constexpr std::uint16_t never = 0xffff;

  struct state {
    std::uint16_t rest = 0, place = 0;
  };
  void step(state& s, phase to, char c) const {
    if (s.rest == never || (to != whole && to != fraction)) return;
    if (to == fraction && s.place == by.scale) {
      if (c != '0') s.rest = never;
      return;
    }
    if (to == fraction) ++s.place;
    s.rest = static_cast<std::uint16_t>((s.rest * 10u + static_cast<unsigned>(c - '0')) % by.steps);
  }
  bool divides(const state& s) const {
    if (s.rest == never) return false;
    std::uint64_t rest = s.rest;
    for (std::uint32_t i = s.place; i < by.scale; ++i) rest = rest * 10 % by.steps;
    return rest == 0;
  }
};

/// A list that is short as a rule: then copies of it allocate nothing.
template <typename T>
class short_list {
 public:
  void resize(std::size_t count) {
    size_ = count;
    if (count > few) more_.resize(count - few);
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return i < few ? first_[i] : more_[i - few]; }
  const T& operator[](std::size_t i) const { return i < few ? first_[i] : more_[i - few]; }

 private:
  static constexpr std::size_t few = 2;
  std::array<T, few> first_{};
  std::vector<T> more_;
  std::size_t size_ = 0;
};

/// How an exponent may continue so that the number is a finite double: up to 99, and down to -308 where there is no
/// bound that rounding could miss.
enum exponent_tail : std::uint16_t {
  up_to_two,    ///< digits; zeros before them do not count
  up_to_three,  ///< digits, up to 308
  two_more,
  after_three,
  after_thirty,
  one_more,
  full
};

/// The next tail; nullopt: the digit is one too many.
std::optional<exponent_tail> next_tail(exponent_tail at, char digit) {
  switch (at) {
    case up_to_two: return digit == '0' ? up_to_two : one_more;
    case up_to_three:
      return digit == '0' ? up_to_three : digit < '3' ? two_more : digit == '3' ? after_three : one_more;
    case two_more: return one_more;
    case after_three: return digit == '0' ? after_thirty : full;
    case after_thirty: return digit < '9' ? std::optional(full) : std::nullopt;
    case one_more: return full;
    case full: break;
  }
  return std::nullopt;
}

/// All that is known of the number read so far.
struct number_state {
  std::uint16_t at = begin;
  bool negative = false, nonzero = false, fraction_nonzero = false, one_digit = false, exponent_negative = false;
  std::uint16_t whole_count = 0;  ///< digits before the point that are not a leading 0; 2: two or more
  std::uint16_t moved = 0;        ///< digits after the point, if whole numbers with exponents are accepted
  std::uint16_t value = 0;        ///< of the exponent, capped
  exponent_tail tail = up_to_two;
  short_list<comparison::state> compared;
  short_list<division::state> divided;

  /// Of all but `compared` and `divided`.
  std::uint64_t small_key() const {
    const std::uint64_t flags = at | negative << 8u | nonzero << 9u | fraction_nonzero << 10u |
                                exponent_negative << 11u | static_cast<std::uint32_t>(whole_count) << 12u |
                                static_cast<std::uint32_t>(tail) << 14u;
    return flags << 32 | static_cast<std::uint64_t>(moved) << 16 | value;
  }
  void write_key(std::vector<std::uint32_t>& k) const {
    const auto small = small_key();
    k.assign({static_cast<std::uint32_t>(small >> 32), static_cast<std::uint32_t>(small)});
    for (std::size_t i = 0; i < compared.size(); ++i) {
      const auto& c = compared[i];
      k.push_back(static_cast<std::uint32_t>(c.place) << 16 | c.digit);
      k.push_back(static_cast<std::uint32_t>(c.result) << 16 | c.digits_result);
    }
    for (std::size_t i = 0; i < divided.size(); ++i)
      k.push_back(static_cast<std::uint32_t>(divided[i].rest) << 16 | divided[i].place);
  }
};

struct key_hash {
  std::size_t operator()(const std::vector<std::uint32_t>& key) const {
    std::uint64_t h = 0x9e3779b97f4a7c15u;
    for (const auto x : key) h = (h ^ x) * 0xff51afd7ed558ccdu, h ^= h >> 29;
    return static_cast<std::size_t>(h);
  }
};

class number_builder {
 public:
  number_builder(const number_rules& rules, budget& work) : rules_(rules), work_(work) {}

  result<dfa> run() {
    if (const auto ready = prepare(); !ready) return ready.error();
    for (std::size_t i = 0; i < symbols.size(); ++i)
      made_.class_of[static_cast<unsigned char>(symbols[i])] = static_cast<std::uint8_t>(i + 1);
    made_.class_of['E'] = made_.class_of['e'];
    made_.classes = static_cast<std::uint32_t>(symbols.size());
    made_.accepting.push_back(0);
    made_.next.resize(made_.classes, dfa::dead);
    number_state first;
    first.compared.resize(comparisons_.size());
    first.divided.resize(divisions_.size());
    states_.push_back({});
    made_.start = intern(std::move(first));
    for (std::uint32_t i = 1; i < states_.size(); ++i) {
      if (!work_.spend(made_.classes * 8)) return too_much_work(work_);
      if (states_.size() > work_.of().dfa_states_max)
        return too_much("states of an automaton", work_.of().dfa_states_max);
      const auto watched = watched_digits(states_[i]);
      for (std::size_t k = 0; k + 1 < symbols.size(); ++k) {
        const std::size_t row = std::size_t{i} * made_.classes;
        if (symbols[k] >= '2' && symbols[k] <= '9' && (watched >> (symbols[k] - '0') & 3) == 0) {
          made_.next[row + k + 1] = made_.next[row + k];
          continue;
        }
        auto to = stepped(states_[i], symbols[k]);
        if (to.at == bad) continue;
        const auto target = intern(std::move(to));
        made_.next[row + k + 1] = target;
      }
    }
    made_.finish();
    return std::move(made_);
  }

 private:
  struct judged {
    std::size_t comparison;  ///< index; none: the bound is 0
    bool negative;
  };
  static constexpr std::size_t none = ~std::size_t{0};

  judged add_comparison(const decimal& bound) {
    if (bound.is_zero()) return {none, false};
    comparisons_.emplace_back(bound);
    exponent_cap_ = std::max(exponent_cap_, static_cast<std::uint16_t>(std::abs(comparisons_.back().exponent) + 1));
    return {comparisons_.size() - 1, bound.negative};
  }

  result<void> add_divisions(const std::vector<decimal>& all) {
    for (const auto& divisor : all) {
      const auto by = scaled_of(divisor);
      if (!by || by->steps > steps_largest)
        return error{error_kind::unsupported, "a divisor with more than about four digits is not supported",
                     "multipleOf"};
      divisions_.push_back({*by});
    }
    return {};
  }

  result<void> prepare() {
    if (rules_.least) least_ = add_comparison(rules_.least->value);
    if (rules_.most) most_ = add_comparison(rules_.most->value);
    for (const auto& value : rules_.excluded) excluded_.push_back(add_comparison(value));
    if (auto added = add_divisions(rules_.multiples); !added) return added;
    multiples_ = divisions_.size();
    if (auto added = add_divisions(rules_.not_multiples); !added) return added;
    exponents_ = divisions_.empty() && !rules_.not_integer && !(rules_.integer && !comparisons_.empty());
    if (is_plain()) exponents_ = false;
    if (rules_.integer) exponent_cap_ = moved_max;
    return {};
  }

  /// Whole numbers are only written as such.
  [[nodiscard]] bool is_plain() const { return rules_.integer && (rules_.plain || work_.of().plain_numbers); }

  [[nodiscard]] bool has_small_exponents() const { return work_.of().plain_numbers; }
  [[nodiscard]] bool has_bounds() const { return rules_.least || rules_.most || !rules_.excluded.empty(); }

  /// Bit d + 1 is set if digit d leads to another state than those beside it. Others lead where their lower neighbour
  /// does, but for 0.
  [[nodiscard]] unsigned watched_digits(const number_state& from) const {
    constexpr unsigned all = ~0u;
    if (!divisions_.empty() || from.at >= exponent) return all;
    unsigned watched = 0;
    const auto to = next_phase(static_cast<phase>(from.at), '1');
    for (std::size_t i = 0; i < comparisons_.size(); ++i)
      for (const char digit : comparisons_[i].watched(from.compared[i], to))
        if (digit != 0) watched |= 2u << (digit - '0');
    return watched;
  }

  number_state stepped(const number_state& from, char c) const {
    number_state to = from;
    to.at = next_phase(static_cast<phase>(from.at), c);
    if (to.at == bad) return to;
    if (c == '.' && is_plain()) return to.at = bad, to;
    if (c == '-' && to.at == minus) to.negative = true;
    if (to.at == whole) to.whole_count = std::min<std::uint16_t>(to.whole_count + 1u, 2);
    if ((to.at == whole || to.at == fraction) && c != '0') to.nonzero = true;
    if (to.at == fraction) {
      if (c != '0') to.fraction_nonzero = true;
      if (exponents_ && rules_.integer) to.moved = std::min<std::uint16_t>(to.moved + 1u, moved_max + 1);
    }
    if (to.at == exponent) {
      if (!exponents_) return to.at = bad, to;
      const bool judged_by_digits = !comparisons_.empty() && to.nonzero;
      if (judged_by_digits && to.whole_count != 1) return to.at = bad, to;
      if (!to.fraction_nonzero) to.moved = 0;
    }
    if (c == '-' && to.at == exponent_sign) {
      to.exponent_negative = true;
      if (has_small_exponents() && !has_bounds()) to.tail = up_to_three;
    }
    if (to.at == exponent_digits && has_small_exponents()) {
      const auto tail = next_tail(to.tail, c);
      if (!tail) return to.at = bad, to;
      to.tail = *tail;
    }
    if (to.at == exponent_digits)
      to.value = static_cast<std::uint16_t>(std::min(to.value * 10 + (c - '0'), int{exponent_cap()}));
    for (std::size_t i = 0; i < comparisons_.size(); ++i)
      comparisons_[i].step(to.compared[i], static_cast<phase>(to.at), c);
    for (std::size_t i = 0; i < divisions_.size(); ++i) divisions_[i].step(to.divided[i], static_cast<phase>(to.at), c);
    reduce(to);
    return to;
  }

  /// Forgets what makes no difference any more, so that more states are equal: the automaton of whole numbers has a
  /// tenth of the states.
  void reduce(number_state& s) const {
    if (!rules_.least && !rules_.most && rules_.excluded.empty()) s.negative = false;
    if (comparisons_.empty()) s.whole_count = 0;
    const bool never_whole = s.fraction_nonzero && (!exponents_ || s.moved > moved_max);
    if (rules_.integer && never_whole) s.at = bad;
    // On the wrong side of 0.
    const auto ends_at_zero = [](const std::optional<number_bound>& bound) { return bound && bound->value.is_zero(); };
    if (s.nonzero && ends_at_zero(s.negative ? rules_.least : rules_.most)) s.at = bad;
    const bool by_digits = exponents_ && (s.whole_count == 1 || s.at == minus);
    if (s.at != begin)
      for (std::size_t i = 0; i < comparisons_.size(); ++i)
        comparisons_[i].reduce(s.compared[i], static_cast<phase>(s.at), by_digits);
    if (is_beyond(s, by_digits)) s.at = bad;
    if (s.at < exponent || s.at == bad) return;
    if (!s.nonzero || (comparisons_.empty() && !rules_.integer)) {
      s.moved = s.value = 0;
      s.fraction_nonzero = s.exponent_negative = false;
      return;
    }
    if (!comparisons_.empty() || !rules_.integer) return;
    if (s.exponent_negative) {
      if (s.fraction_nonzero || s.value > 0) s.at = bad;
      return;
    }
    if (s.at != exponent_digits) return;
    s.fraction_nonzero = false;
    if (s.moved <= s.value) s.moved = s.value = 0;
    // Any digit after these makes the exponent large enough.
    constexpr std::uint16_t large_soon = moved_max / 10 + 1;
    s.value = std::min(s.value, large_soon);
  }
  /// The number is on the wrong side of its bound, whatever follows.
  [[nodiscard]] bool is_beyond(const number_state& s, bool by_digits) const {
    const auto& bound = s.negative ? rules_.least : rules_.most;
    if (s.at == begin || !bound || bound->value.is_zero()) return false;
    if (bound->value.negative != s.negative) return true;
    const auto which = s.negative ? least_.comparison : most_.comparison;
    return s.at == whole && !by_digits && s.compared[which].place > comparisons_[which].whole_digits.size();
  }
  std::uint16_t exponent_cap() const { return std::max<std::uint16_t>(exponent_cap_, 1); }

  std::uint32_t intern(number_state state) {
    const auto next = static_cast<std::uint32_t>(states_.size());
    const bool is_small = comparisons_.empty() && divisions_.empty();
    if (!is_small) {
      state.write_key(key_);
      if (const auto known = index_.find(key_); known != index_.end()) return known->second;
    }
    const auto [place, is_new] = is_small ? added(small_index_, state.small_key(), next) : added(index_, key_, next);
    if (is_new) {
      made_.next.resize(made_.next.size() + made_.classes, dfa::dead);
      made_.accepting.push_back(accepts(state) ? 1 : 0);
      states_.push_back(std::move(state));
    }
    return place;
  }
  template <typename Map, typename Key>
  static std::pair<std::uint32_t, bool> added(Map& to, Key key, std::uint32_t value) {
    const auto [place, is_new] = to.try_emplace(std::move(key), value);
    return {place->second, is_new};
  }

  /// How the number compares with a bound.
  order judge(const number_state& s, const judged& with) const {
    if (with.comparison == none) {
      if (!s.nonzero) return equal;
      return s.negative ? less : greater;
    }
    if (!s.nonzero) return with.negative ? greater : less;
    if (s.negative != with.negative) return s.negative ? less : greater;
    const auto& machine = comparisons_[with.comparison];
    const auto& state = s.compared[with.comparison];
    const int value = s.exponent_negative ? -int{s.value} : int{s.value};
    const auto size = s.at == exponent_digits ? machine.exponent_result(state, value)
                                              : machine.plain_result(state, static_cast<phase>(s.at));
    if (size == equal) return equal;
    return (size == less) != s.negative ? less : greater;
  }

  bool is_whole(const number_state& s) const {
    if (!s.nonzero) return true;
    if (s.at != exponent_digits) return !s.fraction_nonzero;
    if (s.exponent_negative) return s.value == 0 && !s.fraction_nonzero;
    return s.moved <= s.value && s.moved <= moved_max;
  }

  bool accepts(const number_state& s) const {
    if (s.at != zero && s.at != whole && s.at != fraction && s.at != exponent_digits) return false;
    if (rules_.integer && !is_whole(s)) return false;
    if (rules_.not_integer && is_whole(s)) return false;
    if (rules_.least) {
      const auto is = judge(s, least_);
      if (is == less || (is == equal && rules_.least->exclusive)) return false;
    }
    if (rules_.most) {
      const auto is = judge(s, most_);
      if (is == greater || (is == equal && rules_.most->exclusive)) return false;
    }
    for (const auto& value : excluded_)
      if (judge(s, value) == equal) return false;
    for (std::size_t i = 0; i < divisions_.size(); ++i)
      if (divisions_[i].divides(s.divided[i]) != (i < multiples_)) return false;
    return true;
  }

  const number_rules& rules_;
  budget& work_;
  dfa made_;
  std::vector<comparison> comparisons_;
  std::vector<division> divisions_;
  std::size_t multiples_ = 0;
  judged least_{none, false}, most_{none, false};
  std::vector<judged> excluded_;
  bool exponents_ = true;
  std::uint16_t exponent_cap_ = 0;
  std::unordered_map<std::vector<std::uint32_t>, std::uint32_t, key_hash> index_;
  std::unordered_map<std::uint64_t, std::uint32_t> small_index_;  // without comparisons and divisions
  std::vector<number_state> states_;
  std::vector<std::uint32_t> key_;
};

}  // namespace

bool number_rules::accepts(const decimal& value) const {
  if (integer && !value.is_integer()) return false;
  if (not_integer && value.is_integer()) return false;
  if (least) {
    const auto is = compare(value, least->value);
    if (is < 0 || (is == 0 && least->exclusive)) return false;
  }
  if (most) {
    const auto is = compare(value, most->value);
    if (is > 0 || (is == 0 && most->exclusive)) return false;
  }
  if (std::ranges::find(excluded, value) != excluded.end()) return false;
  const auto is_multiple_of = [&](const decimal& divisor) {
    const auto by = scaled_of(divisor);
    return by && is_multiple(value, *by);
  };
  return std::ranges::all_of(multiples, is_multiple_of) && std::ranges::none_of(not_multiples, is_multiple_of);
}

void number_rules::raise_least(number_bound bound) {
  if (least) {
    const auto is = compare(bound.value, least->value);
    if (is < 0 || (is == 0 && !bound.exclusive)) return;
  }
  least = std::move(bound);
}

void number_rules::lower_most(number_bound bound) {
  if (most) {
    const auto is = compare(bound.value, most->value);
    if (is > 0 || (is == 0 && !bound.exclusive)) return;
  }
  most = std::move(bound);
}

result<dfa> number_automaton(const number_rules& rules, budget& work) { return number_builder(rules, work).run(); }

result<dfa> number_literals(const std::vector<decimal>& values, bool plain, budget& work) {
  nfa all;
  std::vector<nfa::fragment> parts;
  for (const auto& value : values) {
    if (plain) {
      const auto fraction = value.fraction();
      const std::string whole = value.whole().empty() ? "0" : value.whole();
      parts.push_back(all.text((value.negative ? "-" : "") + whole + (fraction.empty() ? "" : "." + fraction)));
      continue;
    }
    const auto sign = [&] {
      return value.is_zero() ? all.optional(all.text("-")) : all.text(value.negative ? "-" : "");
    };
    // Digits, then zeros after the point; they and the point may be left out if nothing else follows it.
    const auto number = [&](const std::string& before_point, const std::string& after_point) {
      const auto begin = all.concat(sign(), all.text(before_point));
      const auto dot = all.text("." + after_point);
      const auto zeros = after_point.empty() ? all.plus(all.text("0")) : all.star(all.text("0"));
      const auto tail = all.concat(dot, zeros);
      return all.concat(begin, after_point.empty() ? all.optional(tail) : tail);
    };
    parts.push_back(number(value.whole().empty() ? "0" : value.whole(), value.fraction()));
    if (value.is_zero()) continue;
    const int exponent = value.point - 1;
    auto scientific = number(value.digits.substr(0, 1), value.digits.substr(1));
    code_set letters;
    letters.add('e');
    letters.add('E');
    scientific = all.concat(scientific, all.codes(letters.normalised()));
    const auto plus_sign = exponent < 0 ? all.text("-") : all.optional(all.text("+"));
    scientific = all.concat(scientific, plus_sign);
    const auto zeros = all.star(all.text("0"));
    scientific = all.concat(scientific, zeros);
    parts.push_back(all.concat(scientific, all.text(std::to_string(std::abs(exponent)))));
  }
  if (parts.empty()) parts.push_back(all.never());
  all.accept(all.either(parts));
  return determinise(all, work);
}

}  // namespace skein::grammar
