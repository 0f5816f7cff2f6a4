// Automata of numbers agree with exact arithmetic on all short texts and on random bounds.
#include "grammar/text/number_automaton.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

#include "tests/support/random_cases.hpp"

namespace skein::grammar {
namespace {

decimal number(std::string_view text) { return parse_decimal(text, 400).value(); }

/// All JSON numbers of at most `length` characters of a small alphabet.
std::vector<std::string> short_numbers(std::size_t length) {
  std::vector<std::string> all{""}, numbers;
  for (std::size_t begin = 0, n = 0; n < length; ++n) {
    const auto end = all.size();
    for (; begin < end; ++begin)
      for (const char c : std::string_view("0159-.")) all.push_back(all[begin] + c);
  }
  for (const auto& text : all)
    if (parse_decimal(text, 400)) numbers.push_back(text);
  return numbers;
}

void compare_all(const number_rules& rules, const std::vector<std::string>& texts, const std::string& name) {
  budget work{limits{}};
  const auto made = number_automaton(rules, work).value();
  for (const auto& text : texts)
    BOOST_TEST((made.match(text) != 0) == rules.accepts(number(text)), name << ": " << text);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(number_test)

BOOST_AUTO_TEST_CASE(decimals) {
  BOOST_TEST((compare(number("1.50"), number("15e-1")) == 0));
  BOOST_TEST((compare(number("-2"), number("1")) < 0));
  BOOST_TEST((compare(number("-0"), number("0")) == 0));
  BOOST_TEST(
      (compare(number("972783798187987123879878123.18878137"), number("972783798187987123879878123.188781371")) < 0));
  for (const char* text : {"", "-", "01", "1.", ".5", "1e", "1e+", "+1", "1x", "--1", "1e999"})
    BOOST_TEST(!parse_decimal(text, 400).has_value(), text);
}

BOOST_AUTO_TEST_CASE(bounds_agree_with_arithmetic) {
  const auto texts = short_numbers(5);
  test::random_cases random;
  const char* const bounds[] = {"0",    "1",   "5",  "9",    "10",  "15",  "99",   "0.5",
                                "0.05", "1.5", "-1", "-0.5", "-10", "-55", "500.1"};
  for (int i = 0; i < 60; ++i) {
    number_rules rules;
    const auto bound = [&] {
      return number_bound{number(bounds[random.below(std::size(bounds))]), random.below(2) == 0};
    };
    if (random.below(3) > 0) rules.raise_least(bound());
    if (random.below(3) > 0) rules.lower_most(bound());
    if (random.below(2) == 0) rules.integer = true;
    if (random.below(4) == 0) rules.excluded.push_back(number(bounds[random.below(std::size(bounds))]));
    compare_all(rules, texts, "rules " + std::to_string(i));
  }
}

BOOST_AUTO_TEST_CASE(multiples_agree_with_arithmetic) {
  const auto texts = short_numbers(5);
  for (const char* divisor : {"1", "2", "5", "0.5", "0.05", "7", "1.5", "100", "0.1"}) {
    number_rules rules;
    rules.multiples.push_back(number(divisor));
    compare_all(rules, texts, divisor);
    rules = {};
    rules.not_multiples.push_back(number(divisor));
    compare_all(rules, texts, std::string("not ") + divisor);
  }
}

BOOST_AUTO_TEST_CASE(exponents_are_judged_exactly_or_refused) {
  const char* const texts[] = {"1e3",  "1E+21", "1.5e-05", "9e0",  "5e1",   "0e5",
                               "-1e2", "1.5e1", "0.0e9",   "1e-2", "2.50e2"};
  for (const char* least : {"0", "1", "0.015", "10", "-100"})
    for (const char* most : {"0", "10", "1000", "250", "15"}) {
      number_rules rules;
      rules.raise_least({number(least), false});
      rules.lower_most({number(most), true});
      budget work{limits{}};
      const auto made = number_automaton(rules, work).value();
      for (const char* text : texts)
        BOOST_TEST((made.match(text) != 0) == rules.accepts(number(text)), least << " " << most << " " << text);
    }
}

/// What cannot matter any more is forgotten, so that automata stay small.
BOOST_AUTO_TEST_CASE(bounds_need_few_states) {
  for (const auto& [least, most, states] :
       {std::tuple{"1", "65535", 60u}, {"0.5", "99.5", 160u}, {"-90", "90", 160u}}) {
    number_rules rules;
    rules.integer = std::string_view(most) == "65535";
    rules.raise_least({number(least), false});
    rules.lower_most({number(most), false});
    budget work{limits{}};
    BOOST_TEST(number_automaton(rules, work).value().states() < states);
  }
}

/// An exponent makes a number with a fraction whole if it is large enough, for fractions of up to 17 digits.
BOOST_AUTO_TEST_CASE(whole_numbers_with_exponents) {
  number_rules rules;
  rules.integer = true;
  budget work{limits{}};
  const auto made = number_automaton(rules, work).value();
  for (std::size_t digits = 1; digits <= 17; ++digits)
    for (int exponent = 0; exponent <= 30; ++exponent)
      for (const char* const form : {"e", "E+", "e0", "e00"}) {
        const auto text = "-3." + std::string(digits, '7') + form + std::to_string(exponent);
        BOOST_TEST((made.match(text) != 0) == rules.accepts(number(text)), text);
      }
  for (const char* const text : {"0.0e-7", "0e9", "5.00e-0", "-0.000", "1e999"})
    BOOST_TEST(made.match(text) != 0u, text);
  for (const char* const text : {"0.5", "12.5e-0", "1.5e", "1.55e1"}) BOOST_TEST(made.match(text) == 0u, text);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::grammar
