// uniqueItems: equal items are refused however they are written, masks agree with single steps, and rows that follow
// random logits write different items and come to an end, also where few values exist.
#include <boost/test/unit_test.hpp>
#include <random>
#include <set>

#include "grammar/answer_rule.hpp"
#include "grammar/schema/json_tree.hpp"
#include "sampling/sampler.hpp"
#include "tests/grammar/accepts.hpp"
#include "tests/grammar/small_index.hpp"

namespace skein::grammar {
namespace {

using test::accepts;
using test::is_prefix;
using test::schema;
using test::schema_to_generate;

const std::string unique = R"({"type":"array","uniqueItems":true)";

/// What a row writes from random logits; empty if it does not end.
std::string generated(const std::string& text, std::uint32_t seed) {
  const auto of = schema_to_generate(text);
  sampling::sampling_params params;
  params.rule = constrain(answer_rule::make(of, test::small_index(), {}).value(), "schema").value();
  params.seed = seed;
  sampling::sampler sampler(test::small_index()->vocabulary().size());
  sampler.start(params);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> logits(test::small_index()->vocabulary().size());
  std::string out;
  for (int i = 0; i < 3000; ++i) {
    for (float& x : logits) x = normal(random);
    out += test::small_index()->vocabulary().text(sampler.sample(logits).token);
    BOOST_REQUIRE_MESSAGE(!sampler.is_stuck(), out << " of " << text);
    if (sampler.is_complete()) return out;
  }
  return {};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(unique_items_test)

BOOST_AUTO_TEST_CASE(equal_values_are_refused_in_every_spelling) {
  const auto any = schema(unique + "}");
  for (const char* text :
       {"[]", "[1]", "[1,2,-1,10,0.1,\"1\",true,null,false,[],{},[1],[\"1\"],[[1]],{\"a\":1}]", "[\"\",\"a\",\"aa\"]",
        "[0,false,\"\",null]", "[1,10,100,1e3,0.1,0.01]", "[[1,2],[2,1],[12],[1,[2]],[[1],2]]",
        "[{\"a\":1,\"b\":2},{\"a\":2,\"b\":1},{\"a\":1},{\"b\":1},{\"ab\":1}]", "[{\"a\":\"b\"},{\"b\":\"a\"}]",
        "[[1,1],{\"a\":1,\"b\":1}]", "[{\"a\":[0]},{\"a\":[[0]]},{\"a\":{\"a\":0}}]", "[1e-2,-1e-2,1e2]"})
    BOOST_TEST(accepts(any, text), text);
  for (const char* text : {"[1,1]",
                           "[1,1.0]",
                           "[1,2,10e-1]",
                           "[100,1e2]",
                           "[0.50,5E-1]",
                           "[0,-0]",
                           "[0,0.00e7]",
                           "[1200,12e+2]",
                           "[\"a\",\"a\"]",
                           "[\"a\",\"\\u0061\"]",
                           "[\"\xc3\xa9\",\"\\u00e9\"]",
                           "[\"\",1,\"\"]",
                           "[null,1,null]",
                           "[true,true]",
                           "[[1],[1.0]]",
                           "[[],[ ]]",
                           "[{},{ }]",
                           "[{\"a\":1,\"b\":[2]},{\"b\":[2.0],\"\\u0061\":1}]",
                           "[[[\"x\"]],[[\"x\"]]]",
                           "[[\"a\",{\"a\":[]}],[\"a\",{\"a\":[]}]]"})
    BOOST_TEST(!accepts(any, text), text);
  BOOST_TEST(accepts(schema(R"({"type":"array","items":)" + unique + "}}"), "[[1,2],[1,2]]"));
  BOOST_TEST(!accepts(schema(R"({"type":"array","items":)" + unique + "}}"), "[[1,2],[1,1]]"));
}

BOOST_AUTO_TEST_CASE(no_text_begins_that_cannot_end) {
  const auto listed = schema_to_generate(unique + R"(,"items":{"enum":["a","ab","b",1,10,true]}})");
  BOOST_TEST(is_prefix(listed, R"(["ab","a",)"));
  BOOST_TEST(!is_prefix(listed, R"(["ab","a","a)"));
  BOOST_TEST(is_prefix(listed, R"(["a","a)"));
  BOOST_TEST(!is_prefix(listed, R"(["a","a")"));
  BOOST_TEST(is_prefix(listed, "[1,1"));  // 10 is left
  BOOST_TEST(!is_prefix(listed, "[10,1,1"));
  BOOST_TEST(!is_prefix(listed, "[true,t"));
  BOOST_TEST(is_prefix(listed, R"([true,"a","b","ab",1,10])"));
  BOOST_TEST(!is_prefix(listed, R"([true,"a","b","ab",1,10,)"));
  const auto flags = schema_to_generate(unique + R"(,"items":{"type":"boolean"}})");
  BOOST_TEST(accepts(flags, "[false,true]"));
  BOOST_TEST(!is_prefix(flags, "[false,true,"));
  const auto digits = schema_to_generate(unique + R"(,"items":{"type":"integer","minimum":1,"maximum":3}})");
  BOOST_TEST(!is_prefix(digits, "[1,2,3,"));
  const auto tuple =
      schema_to_generate(unique + R"(,"prefixItems":[{"const":1},{"const":2}],"items":{"enum":[1,2,3]}})");
  BOOST_TEST(accepts(tuple, "[1,2,3]"));
  BOOST_TEST(!is_prefix(tuple, "[1,2,1"));
}

BOOST_AUTO_TEST_CASE(many_items) {
  const auto any = schema(unique + R"(,"items":{"type":["string","integer"]}})");
  std::string text = "[";
  for (int i = 0; i < 3000; ++i)
    text.append(i == 0 ? "" : ",").append(i % 2 == 0 ? std::to_string(i) : '"' + std::to_string(i) + '"');
  matcher m(any, test::bytes_index());
  for (const char c : text) BOOST_REQUIRE(m.accept({&c, 1}));  // frames are removed on the way
  BOOST_TEST(m.would_accept(",1]"));
  BOOST_TEST(!m.would_accept(",2998]"));
  BOOST_TEST(!m.would_accept(R"(,"1"])"));
  BOOST_TEST(m.would_accept(R"(,"2"])"));
}

BOOST_AUTO_TEST_CASE(masks_equal_single_steps) {
  const auto index = test::small_index();
  std::vector<std::uint32_t> allowed(index->words());
  for (const auto& [of, text] : std::initializer_list<std::pair<std::string, std::string>>{
           {R"(,"items":{"enum":["red","green","age"]}})", R"(["age","red","green"])"},
           {R"(,"items":{"type":"string","maxLength":3}})", R"(["abc","ab","123"])"},
           {R"(,"items":{"type":"string"}})", R"(["abc","ab","age" , "a"])"},
           {R"(,"items":{"type":"integer","minimum":0,"maximum":20}})", "[12,1,2,10]"},
           {R"(,"items":{"type":"object"}})", R"([{"age":1},{"age":12},{"a":{"ab":12}}])"}}) {
    matcher m(schema(unique + of), index);
    for (std::size_t i = 0; i <= text.size(); ++i) {
      m.fill_mask(allowed);
      for (std::uint32_t id = 1; id < index->vocabulary().size(); ++id) {
        matcher copy(m);
        const bool bit = (allowed[id / 32] >> (id % 32) & 1) != 0;
        const auto token = index->vocabulary().text(static_cast<token_id>(id));
        BOOST_TEST(bit == copy.accept(token), "after " << text.substr(0, i) << ": " << token);
      }
      if (i < text.size()) BOOST_REQUIRE(m.accept({&text[i], 1}));
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_come_to_an_end) {
  std::size_t ended = 0;
  for (const char* rest :
       {R"(,"items":{"enum":["red","green","age","a","ab"]},"minItems":5})",
        R"(,"items":{"type":"boolean"},"minItems":2})",
        R"(,"items":{"type":"integer","minimum":1,"maximum":12},"minItems":12})",
        R"(,"items":{"enum":[1,12,123,"12",null]},"minItems":4})",
        R"(,"items":{"type":"string","maxLength":1},"minItems":6,"maxItems":9})",
        R"(,"items":{"type":"array","items":{"type":"integer"},"maxItems":2},"minItems":3,"maxItems":5})"})
    for (std::uint32_t seed = 0; seed < 30; ++seed) {
      const auto text = generated(unique + rest, seed);
      if (text.empty()) continue;
      ++ended;
      BOOST_TEST(accepts(schema(unique + rest), text), text);
      const auto tree = parse_json_tree(text, limits{}).value();
      std::set<std::string> different;
      for (const auto item : tree[0].children)
        if (tree.is(item, json_kind::string)) different.insert(tree[item].text);
      std::size_t strings = 0;
      for (const auto item : tree[0].children) strings += tree.is(item, json_kind::string);
      BOOST_TEST(different.size() == strings, text);
    }
  BOOST_TEST(ended > 150u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::grammar
