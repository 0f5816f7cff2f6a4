// A mask allows exactly the tokens that the matcher accepts: for every position of some texts, under a vocabulary with
// long tokens, each token is tried.
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

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
      BOOST_TEST_REQUIRE(bit == right, "token " << id << " after " << text.substr(0, i));
    }
    if (i < text.size()) BOOST_TEST_REQUIRE(m.accept(text.substr(i, 1)));
  }
}

struct row {
  const char* schema;
  const char* text;
};
const row rows[] = {
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
};

}  // namespace

BOOST_AUTO_TEST_SUITE(mask_test)

BOOST_AUTO_TEST_CASE(masks_of_schemas_equal_single_steps) {
  const auto index = test::small_index();
  for (const auto& [schema, text] : rows) compare_masks(test::schema(schema), index, text);
}

BOOST_AUTO_TEST_CASE(masks_of_other_grammars_equal_single_steps) {
  const auto index = test::small_index();
  compare_masks(grammar::from_regex("(name|age): [0-9]+").value(), index, "name: 123");
  compare_masks(grammar::from_gbnf("root ::= \"{\" (\"ab\" | root)* \"}\"").value(), index, "{ab{}ab}");
}

BOOST_AUTO_TEST_CASE(masks_of_the_world_vocabulary, *boost::unit_test::precondition(skein::test::have_oracle)) {
  const auto index =
      vocabulary_index::build(tokenizer::vocabulary::load(test::oracle() / "rwkv_vocab_v20230424.txt").value());
  matcher m(test::schema(rows[1].schema), index);
  BOOST_TEST_REQUIRE(m.accept("{\"name\": \"ab"));
  std::vector<std::uint32_t> allowed(index->words());
  m.fill_mask(allowed);
  for (std::uint32_t id = 1; id < index->vocabulary().size(); id += 7) {
    matcher copy(m);
    const bool bit = (allowed[id / 32] >> (id % 32) & 1) != 0;
    BOOST_TEST(bit == copy.accept(index->vocabulary().text(static_cast<token_id>(id))), id);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::grammar
