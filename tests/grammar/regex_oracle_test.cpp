// Regular expressions against those of Node.js: regex_cases.json has random patterns with lookarounds, word boundaries
// and Unicode properties (make_regex_cases.mjs), and property_sums.json what each property contains
// (make_property_sums.mjs).
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>

#include "base/utf8.hpp"
#include "grammar/schema/json_tree.hpp"
#include "grammar/text/regex.hpp"
#include "grammar/text/unicode_properties.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/thorough.hpp"

namespace skein::grammar {
namespace {

json_tree read_cases(const std::string& name) {
  limits of;
  of.source_bytes_max = std::size_t{64} << 20;
  return parse_json_tree(test::content_of(std::filesystem::path(SKEIN_SOURCE_DIR) / "tests" / "grammar" / name), of)
      .value();
}

bool accepts(const pattern_language& of, std::string_view text) {
  const auto count = utf8_length(text);
  return of.automaton.match(text) != 0 && count >= of.least && count <= of.most;
}

/// False if the pattern is above a limit.
bool check(const json_tree& cases, const json_tree::value& row) {
  const auto& pattern = cases[row.children[0]].text;
  const limits of;
  budget work(of);
  const auto search = compile_search(pattern, work);
  const auto unlimited = compile_search_automaton(pattern, work);
  const auto whole = compile_whole(pattern, work);
  if (!search || !unlimited || !whole) {
    const auto& why = search ? unlimited ? whole.error() : unlimited.error() : search.error();
    BOOST_TEST((why.kind == error_kind::too_large), pattern << ": " << why.message);
    return false;
  }
  for (std::size_t kind = 1; kind <= 3; ++kind) {
    for (const auto each : cases[row.children[kind]].children) {
      const auto& text = cases[each].text;
      BOOST_TEST((whole->match(text) != 0) == (kind == 1), pattern << " as a whole: " << text);
      BOOST_TEST(accepts(*search, text) == (kind <= 2), pattern << " in: " << text);
      BOOST_TEST((unlimited->match(text) != 0) == (kind <= 2), pattern << " in: " << text);
    }
  }
  return true;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(regex_oracle_test)

BOOST_AUTO_TEST_CASE(random_patterns) {
  const auto cases = read_cases("regex_cases.json");
  BOOST_TEST(cases[0].children.size() >= 400u);
  const std::size_t step = test::is_nightly() ? 1 : 4;
  std::size_t checked = 0, tried = 0;
  for (std::size_t i = 0; i < cases[0].children.size(); i += step, ++tried)
    checked += check(cases, cases[cases[0].children[i]]) ? 1 : 0;
  BOOST_TEST(checked * 100 >= tried * 99);
}

BOOST_AUTO_TEST_CASE(properties) {
  const auto sums = read_cases("property_sums.json");
  BOOST_TEST(sums[0].children.size() >= 200u);
  for (const auto row : sums[0].children) {
    const auto& name = sums[sums[row].children[0]].text;
    const auto set = unicode_property(name);
    BOOST_TEST_REQUIRE(set.has_value(), name);
    std::uint32_t count = 0, sum = 0;
    for (const auto& [first, last] : set->ranges())
      for (auto code = first; code <= last; ++code, ++count) sum = sum * 31 + static_cast<std::uint32_t>(code);
    BOOST_TEST(std::to_string(count) == sums[sums[row].children[1]].text, name);
    BOOST_TEST(std::to_string(sum) == sums[sums[row].children[2]].text, name);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::grammar
