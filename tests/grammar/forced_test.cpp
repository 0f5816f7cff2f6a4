// A token is forced only if every text of the grammar continues with its bytes, and no longer token may be next: then
// all tokens of the mask are beginnings of it.
#include <bit>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "grammar/answer_rule.hpp"
#include "sampling/sampler.hpp"
#include "tests/grammar/accepts.hpp"
#include "tests/grammar/small_index.hpp"
#include "tests/support/oracle.hpp"

namespace skein::grammar {
namespace {

using test::schema_to_generate;
using shared_grammar = std::shared_ptr<const grammar>;
using shared_index = std::shared_ptr<const vocabulary_index>;

/// The text of the forced token after a text; "-": none.
std::string forced_after(const shared_grammar& of, std::string_view text,
                         const shared_index& index = test::small_index()) {
  matcher m(of, index);
  BOOST_TEST_REQUIRE(m.accept(text), text);
  const token_id token = m.forced();
  return token == no_token ? "-" : std::string(index->vocabulary().text(token));
}

/// Checks each position of a text. Returns the number of those that have a forced token.
std::size_t check_forced(const shared_grammar& of, const shared_index& index, std::string_view text) {
  const auto& words = index->vocabulary();
  std::vector<std::uint32_t> allowed(index->words());
  std::size_t forced = 0;
  matcher m(of, index);
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (const token_id token = m.forced(); token != no_token) {
      ++forced;
      BOOST_TEST(!m.is_complete());
      BOOST_TEST(m.would_accept(words.text(token)));
      m.fill_mask(allowed);
      for (std::uint32_t id = 0; id < words.size(); ++id) {
        if ((allowed[id / 32] >> (id % 32) & 1) == 0) continue;
        const auto other = words.text(static_cast<token_id>(id));
        if (other.empty() || !words.text(token).starts_with(other))
          BOOST_FAIL("'" << words.text(token) << "' is forced and '" << other << "' allowed after "
                         << text.substr(0, i));
      }
    }
    if (i < text.size()) BOOST_TEST_REQUIRE(m.accept(text.substr(i, 1)), text.substr(0, i + 1));
  }
  return forced;
}

struct forced_text {
  const char* schema;
  const char* text;
};
const forced_text forced_texts[] = {
    {R"({"type":"object","properties":{"name":{"type":"string","maxLength":4},"age":{"enum":["red","green"]}},
        "required":["name","age"],"additionalProperties":false})",
     R"({"name": "abca", "age": "red"})"},
    {R"({"type":"object","properties":{"a\"b":{"const":true}},"required":["a\"b"],"additionalProperties":false})",
     R"({"a\"b":true})"},
    {R"({"enum":["red","green","r\u00e9d",12,null]})",
     "\"r\xc3\xa9"
     "d\""},
    {R"({"const":"a\\b\u0001cd"})", R"("a\\b\u0001cd")"},
    {R"({"type":"array","prefixItems":[{"const":"green"},{"type":"boolean"},{"const":12}],"items":false,"minItems":3})",
     R"(["green",false,12])"},
    {R"({"type":"string","pattern":"^name: [0-9]+ red$"})", R"("name: 12 red")"},
    {R"({"type":"array","uniqueItems":true,"items":{"enum":["abc","red"]}})", R"(["abc","red"])"},
    {R"({"anyOf":[{"type":"object","properties":{"name":{"const":"ab"}},"required":["name"],"additionalProperties":false},
        {"type":"object","properties":{"name":{"const":"age"}},"required":["name"],"additionalProperties":false}]})",
     R"({"name":"age"})"},
    {R"({"type":"object","properties":{"name":{"const":"red"}},"additionalProperties":{"type":"array"}})",
     R"({"name":"red","b":[]})"},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(forced_tokens)

BOOST_AUTO_TEST_CASE(names_and_constants_are_forced) {
  const auto of =
      schema_to_generate(R"({"type":"object","properties":{"name":{"enum":["green","grey"]},"age":{"type":"integer"}},
                               "required":["name"],"additionalProperties":false})");
  BOOST_TEST(forced_after(of, "") == "-");  // blanks may come first
  BOOST_TEST(forced_after(of, "{") == "-");
  BOOST_TEST(forced_after(of, "{\"") == "-");  // two names
  BOOST_TEST(forced_after(of, "{\"n") == "a");
  BOOST_TEST(forced_after(of, "{\"nam") == "e");
  BOOST_TEST(forced_after(of, "{\"name") == "-");  // a token that begins so may have more than is certain
  BOOST_TEST(forced_after(of, "{\"name\"") == "-");
  BOOST_TEST(forced_after(of, "{\"name\": \"") == "-");  // "green" is a token, and possible
  BOOST_TEST(forced_after(of, "{\"name\": \"gre") == "-");
  BOOST_TEST(forced_after(of, "{\"name\": \"gree") == "n");
  BOOST_TEST(forced_after(of, "{\"name\": \"green\", \"") == "age");
  BOOST_TEST(forced_after(of, "{\"name\": \"green\", \"age\": 1") == "-");
  BOOST_TEST(forced_after(of, "{\"name\": \"green\"}") == "-");
}

BOOST_AUTO_TEST_CASE(texts_that_may_be_written_otherwise_are_not_forced) {
  constexpr auto constant = R"({"const":"nb"})";
  BOOST_TEST(forced_after(schema_to_generate(constant), "\"") == "n");
  BOOST_TEST(forced_after(schema_to_generate(R"({"const":"x\u00e9a"})"), "\"x") ==
             "\xc3\xa9"
             "a");
  BOOST_TEST(forced_after(test::schema(constant), "\"") == "-");  // n may also be an escape sequence
  BOOST_TEST(forced_after(schema_to_generate(R"({"type":"string"})"), "\"n") == "-");
  BOOST_TEST(forced_after(schema_to_generate(R"({"type":"object","required":["name"]})"), "{\"nam") ==
             "-");  // other names
}

BOOST_AUTO_TEST_CASE(other_grammars_force_tokens) {
  const auto choice = grammar::from_choices(std::vector<std::string>{"red", "redred", "age"}).value();
  BOOST_TEST(forced_after(choice, "") == "-");
  BOOST_TEST(forced_after(choice, "a") == "g");
  BOOST_TEST(forced_after(choice, "r") == "e");
  BOOST_TEST(forced_after(choice, "red") == "-");  // may end here
  BOOST_TEST(forced_after(choice, "redr") == "e");
  BOOST_TEST(forced_after(grammar::from_choices(std::vector<std::string>{"name"}).value(), "") == "name");
  BOOST_TEST(forced_after(grammar::from_regex("nam[ex]").value(), "") == "-");  // "name" is possible
  BOOST_TEST(forced_after(grammar::from_regex("nam[xy]").value(), "") == "n");
  const auto rules = grammar::from_gbnf("root ::= \"{\" item \"}\"\nitem ::= \"name\" | \"na\" [0-9]").value();
  BOOST_TEST(forced_after(rules, "") == "{");
  BOOST_TEST(forced_after(rules, "{") == "-");
  BOOST_TEST(forced_after(rules, "{nam") == "e");
  BOOST_TEST(forced_after(rules, "{na7") == "}");
}

BOOST_AUTO_TEST_CASE(every_token_of_the_mask_begins_the_forced_one) {
  std::size_t forced = 0;
  for (const auto& [schema, text] : forced_texts) {
    forced += check_forced(schema_to_generate(schema), test::small_index(), text);
    (void)check_forced(test::schema(schema), test::small_index(), text);
    (void)check_forced(schema_to_generate(schema), test::bytes_index(), text);
  }
  BOOST_TEST(forced > 40u);
}

BOOST_AUTO_TEST_CASE(tokens_of_the_world_vocabulary, *boost::unit_test::precondition(skein::test::have_oracle)) {
  const auto index =
      vocabulary_index::build(tokenizer::vocabulary::load(test::oracle() / "rwkv_vocab_v20230424.txt").value());
  for (const auto& [schema, text] : forced_texts) (void)check_forced(schema_to_generate(schema), index, text);
  const auto call =
      schema_to_generate(R"({"type":"object","properties":{"name":{"const":"get_current_weather"},"arguments":
      {"type":"object","properties":{"location":{"type":"string"}},"required":["location"],"additionalProperties":false}},
      "required":["name","arguments"],"additionalProperties":false})");
  constexpr std::string_view text = R"({"name": "get_current_weather", "arguments": {"location": ")";
  // Generated as the tokenizer encodes it, many of the tokens are forced.
  std::vector<token_id> tokens;
  BOOST_REQUIRE(index->vocabulary().encode(text, tokens));
  matcher m(call, index);
  std::size_t forced = 0;
  for (const token_id token : tokens) {
    const token_id only = m.forced();
    forced += only != no_token;
    if (only != no_token) BOOST_TEST(only == token);
    BOOST_REQUIRE(m.accept(index->vocabulary().text(token)));
  }
  BOOST_TEST(2 * forced >= tokens.size() - 4, forced << " of " << tokens.size());
}

BOOST_AUTO_TEST_CASE(a_rule_allows_only_the_forced_token) {
  const auto index = test::small_index();
  const auto of = schema_to_generate(R"({"type":"object","properties":{"name":{"const":"abgreen"}},"required":["name"],
                               "additionalProperties":false})");
  auto lead = answer_lead::after_tag('>', true);
  const auto row = constrain(answer_rule::make(of, index, lead).value(), "tools").value()->begin();
  std::vector<std::uint32_t> mask(index->words());
  std::vector<token_id> prefix, forced;
  BOOST_REQUIRE(index->vocabulary().encode("> {\"name\": \"", prefix));
  BOOST_TEST(row->forced() == no_token);
  for (const token_id token : prefix) row->record(token);
  for (token_id next = row->forced(); next != no_token; next = row->forced()) {
    BOOST_REQUIRE(row->allow(mask));
    std::size_t bits = 0;
    for (const auto word : mask) bits += static_cast<std::size_t>(std::popcount(word));
    BOOST_TEST(bits == 1u);
    BOOST_TEST((mask[static_cast<std::size_t>(next) / 32] >> (next % 32) & 1) == 1u);
    BOOST_TEST(row->fork()->forced() == next);
    row->record(next);
    forced.push_back(next);
  }
  std::string text;
  for (const token_id token : forced) text += index->vocabulary().text(token);
  BOOST_TEST(text == "abgreen");
  BOOST_TEST(forced.size() == 2u);
}

/// The forced tokens of a row come from its sampler without sampling, and count.
BOOST_AUTO_TEST_CASE(a_sampler_takes_forced_tokens) {
  const auto index = test::small_index();
  sampling::sampling_params params;
  params.rule =
      constrain(
          answer_rule::make(grammar::from_choices(std::vector<std::string>{"namered"}).value(), index, {}).value(),
          "choice")
          .value();
  sampling::sampler row(index->vocabulary().size());
  row.start(params);
  std::string text;
  for (token_id next = row.forced(); next != no_token; next = row.forced()) {
    text += index->vocabulary().text(next);
    row.record(next);
  }
  BOOST_TEST(text == "namered");
  BOOST_TEST(row.is_complete());
  BOOST_TEST(row.generated() == 2u);
  // A model with fewer tokens than the vocabulary cannot have them.
  sampling::sampler small(8);
  small.start(params);
  BOOST_TEST(small.forced() == no_token);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::grammar
