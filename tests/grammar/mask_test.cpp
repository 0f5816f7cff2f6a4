// A mask allows exactly the tokens that the matcher accepts: for every position of some texts, under a vocabulary with
// long tokens, each token is tried.
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "grammar/automaton_mask.hpp"
#include "tests/grammar/accepts.hpp"
#include "tests/grammar/small_index.hpp"
#include "tests/support/oracle.hpp"

namespace skein::grammar {
namespace {

/// Compares the mask with single steps, before each byte of the text.
void compare_masks(const std::shared_ptr<const grammar>& of, const std::shared_ptr<const vocabulary_index>& index,
                   std::string_view text) {
  matcher m(of, index);
  std::vector<std::uint32_t> allowed(index->words());
  for (std::size_t i = 0; i <= text.size(); ++i) {
    m.fill_mask(allowed);
    for (std::uint32_t id = 0; id < index->vocabulary().size(); ++id) {
      const auto token = index->vocabulary().text(static_cast<token_id>(id));
      const bool bit = (allowed[id / 32] >> (id % 32) & 1) != 0;
      matcher copy(m);
      const bool right = token.empty() ? static_cast<token_id>(id) == index->vocabulary().end() && m.is_complete()
                                       : copy.accept(token);
      if (bit != right)
        BOOST_FAIL("token " << id << " after " << text.substr(0, i));  // an assertion for each takes longer
    }
    if (i < text.size()) BOOST_TEST_REQUIRE(m.accept(text.substr(i, 1)));
  }
}

struct masked_text {
  const char* schema;
  const char* text;
};
const masked_text masked_texts[] = {
    {"{}", "{\"a\": [1, \"x\xc3\xa9\\u00e9\", true, null, {}]}\n"},
    {R"({"type":"object","properties":{"name":{"type":"string","maxLength":4},"age":{"type":"integer"},"c":{"enum":["red","green"]}},
        "required":["name"],"additionalProperties":false})",
     "{\"age\": 12, \"name\": \"abca\", \"c\": \"red\"}"},
    {R"({"type":"array","items":{"type":"string","pattern":"^[a-c]+$"},"minItems":1,"maxItems":2})",
     "[\"abc\",\"ab\"]"},
    {R"({"type":"array","items":{"type":"string","pattern":"^[a-c]+$","maxLength":3},"contains":{"const":"ab"}})",
     "[\"abc\",\"ab\"]"},
    {R"({"anyOf":[{"type":"object","properties":{"name":{"const":"ab"}},"required":["name"]},{"type":"object","patternProperties":
        {"^a":{"type":"number","maximum":12}},"additionalProperties":false}]})",
     "{\"abc\": 0.5, \"age\": 12}"},
    // Blanks before, between and after tokens of JSON; numbers that end.
    {R"({"type":"array","items":{"type":["number","boolean","null"]},"maxItems":4})", " [ 12,\n\t0.5 ,true,  null ] "},
    {R"({"type":"integer"})", " 12e1 "},
    {R"({"type":"integer","minimum":-3,"maximum":123})", "123  "},
    // Strings of any text between two lengths, and escape sequences in them.
    {R"({"type":"string","minLength":2,"maxLength":5})", R"("a\u00e9\n\"b")"},
    {R"({"type":"string","minLength":3})", R"("\ud83d\ude00abc12")"},
    {R"({"type":"object","propertyNames":{"maxLength":6}})", R"({"abcabc": "", "a\u0062": {}})"},
    // Patterns whose automata read whole groups of characters, end, or count.
    {R"({"type":"string","pattern":"^\\S+$"})", R"("abc\u00e9age")"},
    {R"({"type":"string","pattern":"^[a-z][a-z0-9]*$"})", R"("age12abc")"},
    {R"({"type":"string","pattern":"^[a-z0-9-]+$","minLength":2,"maxLength":63})", R"("age-12")"},
    {R"({"type":"string","pattern":"^([a-z]{2})+$","minLength":3,"maxLength":9})", R"("agered")"},
    {R"({"type":"string","pattern":"^(r|abc[a-z]*)$","minLength":2,"maxLength":80})", R"("abcagered")"},
    {R"({"type":"string","pattern":"^([a-z]{2})+$","minLength":3})", R"("agered")"},
    {R"({"type":"string","pattern":"^[a-z]{3}([a-z]{20})*$","minLength":3})", R"("red")"},
    {R"({"type":"string","pattern":"^[a-z]+(-[a-z]{3}1)?$","minLength":4})", R"("age-red1")"},
    {R"({"type":"string","format":"date","minLength":1})", R"("2026-11-27")"},
    {R"({"type":"string","pattern":"^[^r]{1,4}$"})", R"("ag\u00e9e")"},
    {R"({"type":"string","pattern":"red"})", R"("agreeredab")"},
    {R"({"type":"object","patternProperties":{"^[a-z]{1,8}$":{"type":"integer"}},"additionalProperties":false})",
     R"({"agered":12,"\u0061b":1})"},
    {R"({"type":"object","propertyNames":{"pattern":"^[a-z]{0,3}$"},"additionalProperties":{"type":"null"}})",
     R"({"abc":null,"":null,"ab":null})"},
    // Names that are listed, with others beside them.
    {R"({"type":"object","properties":{"name":{"const":"red"},"agered":true},"patternProperties":{"^[ax]|^nax":{"type":"integer"}},
        "additionalProperties":false})",
     R"({"name":"red","agea":12,"agered":12,"nax":1})"},
    {R"({"type":"object","properties":{"name":{"const":"red"},"age":{"type":"integer"}},"additionalProperties":{"type":"array"}})",
     R"({"name":"red","agea":[],"\u0061ge":12})"},
    {R"({"enum":["red","green","r\u00e9","a\"b",12,"ab\\c"]})", R"("r\u00e9")"},
    // Many parallel stacks, which allow some tokens together and some alone.
    {R"({"anyOf":[{"properties":{"a":{"type":"string"}},"required":["ab"]},{"properties":{"a":{"type":"integer"}},"required":["age"]},
        {"properties":{"name":{"const":12}},"required":["red"]},{"properties":{"name":{"type":"null"}},"minProperties":2},
        {"properties":{"a":{"const":[]},"x":false}},{"properties":{"green":{"enum":["red",{}]}},"maxProperties":1},
        {"properties":{"a":true},"additionalProperties":false}],"type":"object"})",
     R"({"a": 12,"name": null, "age": {}})"},
    // Strings of several lengths, and lengths that matter only near their limits.
    {R"({"anyOf":[{"type":"string","maxLength":3},{"type":"string","minLength":6,"maxLength":8},{"type":"array","items":
        {"anyOf":[{"type":"string","minLength":2},{"const":"a"},{"type":"string","maxLength":5,"pattern":"^[a-z]"}]}}]})",
     R"(["age12ab","abcab","a"])"},
    {R"({"type":"string","pattern":"^[a-z]","maxLength":12,"minLength":2})", R"("ageé 12red1")"},
    {R"({"type":"string","pattern":"^[a-z]+(-[0-9]{2})$","maxLength":12})", R"("agered-12")"},
    // Items that must differ.
    {R"({"type":"array","uniqueItems":true,"items":{"type":"string","maxLength":4}})", R"(["ab","a","abc"])"},
    {R"({"type":"array","uniqueItems":true,"items":{"enum":["ab","red",1,12,123]}})", R"(["ab",12,1])"},
};

std::shared_ptr<const vocabulary_index> world_index() {
  static const auto made =
      vocabulary_index::build(tokenizer::vocabulary::load(test::oracle() / "rwkv_vocab_v20230424.txt").value());
  return made;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(mask_test)

BOOST_AUTO_TEST_CASE(masks_of_schemas_equal_single_steps) {
  const auto index = test::small_index();
  for (const auto& [schema, text] : masked_texts) compare_masks(test::schema(schema), index, text);
}

BOOST_AUTO_TEST_CASE(masks_with_limits_equal_single_steps) {
  options how;
  how.bounds.whitespace_max = 3;
  how.bounds.number_bytes_max = 3;
  how.bounds.depth_max = 2;
  const auto of = grammar::from_json_schema(R"({"type":["array","number"]})", how).value();
  compare_masks(of, test::small_index(), "  [ 123,\n  [0.5 ] ,  \"a\"  ] ");
}

BOOST_AUTO_TEST_CASE(masks_of_plain_texts_equal_single_steps) {
  options how;
  how.bounds = limits_to_generate();
  const auto compare = [&](const char* schema, std::string_view text) {
    compare_masks(grammar::from_json_schema(schema, how).value(), test::small_index(), text);
  };
  compare(R"({"enum":["a\"b","ab\\c","age",true]})", R"("a\"b")");
  compare(R"({"type":"object","properties":{"name":{"const":"x\u0001"},"a\"ge":{}},"additionalProperties":false})",
          R"({"name":"x\u0001","a\"ge": []})");
}

BOOST_AUTO_TEST_CASE(masks_of_other_grammars_equal_single_steps) {
  const auto index = test::small_index();
  compare_masks(grammar::from_regex("(name|age): [0-9]+").value(), index, "name: 123");
  compare_masks(grammar::from_gbnf("root ::= \"{\" (\"ab\" | root)* \"}\"").value(), index, "{ab{}ab}");
}

/// Positions between tokens, in names, strings, patterns, escape sequences and numbers.
BOOST_AUTO_TEST_CASE(masks_of_the_world_vocabulary, *boost::unit_test::precondition(skein::test::have_oracle)) {
  const auto index = world_index();
  std::vector<std::uint32_t> allowed(index->words());
  constexpr std::uint32_t stride = 17;
  std::uint32_t offset = 0;
  for (const auto& [schema, text] : masked_texts) {
    matcher m(test::schema(schema), index);
    for (const char* next = text; *next != 0; ++next) {
      m.fill_mask(allowed);
      // Others of the tokens at each position.
      std::vector<std::uint32_t> wrong;
      for (std::uint32_t id = 1 + offset++ % stride; id < index->vocabulary().size(); id += stride) {
        const auto token = index->vocabulary().text(static_cast<token_id>(id));
        const bool bit = (allowed[id / 32] >> (id % 32) & 1) != 0;
        if (bit != (!token.empty() && m.would_accept(token))) wrong.push_back(id);
      }
      BOOST_TEST_REQUIRE(wrong.empty(), "token " << (wrong.empty() ? 0 : wrong.front()) << " in " << text);
      BOOST_TEST_REQUIRE(m.accept(std::string_view(next, 1)));
    }
  }
}

/// Blocks of tokens that an automaton is sure to read are those that it reads one by one.
BOOST_AUTO_TEST_CASE(blocks_of_tokens, *boost::unit_test::precondition(skein::test::have_oracle)) {
  const auto index = world_index();
  for (const char* const pattern :
       {"^\\\\S+$", "^[A-Za-z_][A-Za-z0-9_]*$", "^\\\\s*\\\\S.*$", "^[a-z]{1,9}-[0-9]{3}$", "^[^<>&]*$",
        "^(\\u00e9|[a-y])*$", "^.{2,40}x$", "^[\\u4e00-\\u9fff]+$", "^(ab|c{3}){1,20}$"}) {
    const auto of = test::schema(R"({"type":"string","pattern":")" + std::string(pattern) + "\"}");
    const auto& automaton = *of->compiled().strings.front().automaton;
    safe_texts safe(automaton);
    for (std::uint32_t state = 1; state < automaton.states(); ++state) {
      std::vector<std::uint32_t> blocks(index->words()), single(index->words());
      add_raw_tokens_of(safe, state, *index, blocks);
      add_tokens_of(automaton, state, index->raw(), single);
      BOOST_TEST((blocks == single), pattern << " in state " << state);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::grammar
