// Rows that follow a rule generate only texts of its grammar, after the lead that the prompt asks for: whatever the
// logits are, and with a mask that allows exactly the tokens that can be recorded.
#include "grammar/answer_rule.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>

#include "sampling/sampler.hpp"
#include "tests/grammar/accepts.hpp"
#include "tests/grammar/small_index.hpp"

namespace skein::grammar {
namespace {

using test::small_index;

std::shared_ptr<const answer_rule> rule_of(std::shared_ptr<const grammar> of, answer_lead lead = {}) {
  return answer_rule::make(std::move(of), small_index(), std::move(lead)).value();
}

std::vector<float> random_logits(std::mt19937& random) {
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(small_index()->vocabulary().size());
  for (float& x : logits) x = normal(random);
  return logits;
}

struct generated_answer {
  std::string text;
  bool complete = false;
};

/// What a row generates from random logits, with a budget.
generated_answer generate(const std::shared_ptr<const answer_rule>& rule, sampling::sampling_params params,
                          std::uint32_t seed, int tokens_max = 400) {
  params.rule = constrain(rule, "grammar").value();
  params.seed = seed;
  sampling::sampler sampler(small_index()->vocabulary().size());
  sampler.start(params);
  std::mt19937 random(seed);
  generated_answer out;
  for (int i = 0; i < tokens_max && !out.complete; ++i) {
    const auto sampled = sampler.sample(random_logits(random));
    BOOST_REQUIRE(!sampler.is_stuck());
    out.text += small_index()->vocabulary().text(sampled.token);
    out.complete = sampler.is_complete();
  }
  return out;
}

constexpr const char* short_person =
    R"({"type":"object","properties":{"name":{"type":"string","maxLength":6},"age":{"enum":[1,22,333]}},
        "required":["name","age"],"additionalProperties":false})";

bool has_bit(std::span<const std::uint32_t> mask, std::uint32_t id) { return (mask[id / 32] >> (id % 32) & 1) != 0; }

}  // namespace

BOOST_AUTO_TEST_SUITE(answer_rules)

BOOST_AUTO_TEST_CASE(rows_generate_texts_of_the_grammar) {
  const auto schema = test::schema(short_person);
  const auto pattern = grammar::from_regex("[ab]{2,4}(12)*c").value();
  sampling::sampling_params greedy, lively;
  greedy.top_k = 1;
  lively.temperature = 2;
  for (const auto& params : {greedy, lively})
    for (const auto& of : {schema, pattern})
      for (std::uint32_t seed = 0; seed < 40; ++seed) {
        const auto out = generate(rule_of(of), params, seed);
        if (out.complete) BOOST_TEST(test::accepts(of, out.text), out.text);
        matcher begun(of, small_index());
        BOOST_TEST(begun.accept(out.text), out.text);
      }
}

BOOST_AUTO_TEST_CASE(leads_stand_before_the_text) {
  const auto of = grammar::from_regex("[ab]{2}c").value();
  sampling::sampling_params lively;
  lively.temperature = 5;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    auto text = generate(rule_of(of, answer_lead::after_tag('>', true)), lively, seed).text;
    BOOST_REQUIRE(text.starts_with('>'));
    text.erase(0, std::min(text.find_first_not_of('\n', 1), text.size()));
    BOOST_TEST(test::accepts(of, text), text);

    text = generate(rule_of(of, answer_lead::after_tag(' ', false)), lively, seed).text;
    if (text.starts_with(' ')) text.erase(0, 1);
    text.erase(0, text.find_first_not_of('\n'));
    BOOST_TEST(test::accepts(of, text), text);

    const auto thinking = generate(rule_of(of, answer_lead::after_thoughts('>')), lively, seed, 3000);
    const auto end = thinking.text.find("</think>");
    if (!thinking.complete) continue;
    BOOST_REQUIRE(end != std::string::npos);
    text = thinking.text.substr(end + 8);
    text.erase(0, text.find_first_not_of('\n'));
    BOOST_TEST(test::accepts(of, text), text);
  }
}

BOOST_AUTO_TEST_CASE(newlines_after_a_tag_may_be_of_the_text) {
  const auto of = grammar::from_regex("\\n?[ab]{2}").value();
  constexpr auto none = answer_lead::newlines::none;
  sampling::sampling_params lively;
  lively.temperature = 5;
  int with_newline = 0;
  const auto check_text = [&](const std::string& text) {
    BOOST_TEST(test::accepts(of, text), text);
    with_newline += text.starts_with('\n') ? 1 : 0;
  };
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    auto text = generate(rule_of(of, answer_lead::after_tag('>', true, none)), lively, seed).text;
    BOOST_REQUIRE(text.starts_with('>'));
    check_text(text.substr(1));
    text = generate(rule_of(of, answer_lead::after_tag(' ', false, none)), lively, seed).text;
    check_text(text.substr(text.starts_with(' ') ? 1 : 0));
    const auto thinking = generate(rule_of(of, answer_lead::after_thoughts('>', none)), lively, seed, 3000);
    if (thinking.complete) check_text(thinking.text.substr(thinking.text.find("</think>") + 8));
  }
  BOOST_TEST(with_newline > 10);
}

BOOST_AUTO_TEST_CASE(masks_allow_what_can_be_recorded) {
  const auto& words = small_index()->vocabulary();
  auto marked = answer_lead::after_tag('>', true);
  marked.allow_text_before({"<ab>", "12:"});
  answer_lead only_marked;
  only_marked.allow_text_before({"ab12"});
  auto thinking = answer_lead::after_thoughts('>');
  thinking.allow_text_before({"{\""});
  constexpr auto without = answer_lead::newlines::none;
  for (const auto& lead : {answer_lead(), answer_lead::after_tag('>', true), answer_lead::after_tag(' ', false),
                           answer_lead::after_thoughts('>'), answer_lead::after_tag('>', true, without),
                           answer_lead::after_tag(' ', false, without), answer_lead::after_thoughts('>', without),
                           marked, only_marked, thinking}) {
    const auto rule = rule_of(grammar::from_regex("\\{?(ab|12|\\n)*\"c").value(), lead);
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
      auto row = constrain(rule, "grammar").value()->begin();
      std::mt19937 random(seed);
      std::vector<std::uint32_t> mask(small_index()->words());
      std::string text;
      for (int i = 0; i < 30 && !row->complete(); ++i) {
        BOOST_REQUIRE(row->allow(mask));
        std::vector<token_id> allowed;
        for (std::uint32_t id = 1; id < words.size(); ++id) {
          auto next = row->fork();
          next->record(static_cast<token_id>(id));
          std::vector<std::uint32_t> after(small_index()->words());
          const bool goes_on = next->complete() || next->allow(after);
          if (words.text(static_cast<token_id>(id)).empty()) continue;
          BOOST_REQUIRE_MESSAGE(goes_on == has_bit(mask, id),
                                "'" << words.text(static_cast<token_id>(id)) << "' after '" << text << "'");
          if (goes_on) allowed.push_back(static_cast<token_id>(id));
        }
        if (allowed.empty()) break;
        const token_id token = allowed[random() % allowed.size()];
        row->record(token);
        text += words.text(token);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(free_text_may_end_before_a_mark) {
  auto lead = answer_lead::after_tag('>', true);
  lead.allow_text_before({"<call>"});
  const auto row = constrain(rule_of(grammar::from_regex("ab").value(), lead), "tools").value()->begin();
  const auto end = static_cast<std::uint32_t>(small_index()->vocabulary().end());
  std::vector<std::uint32_t> mask(small_index()->words());
  const auto record = [&](std::string_view text) {
    std::vector<token_id> tokens;
    BOOST_REQUIRE(small_index()->vocabulary().encode(text, tokens));
    for (const auto token : tokens) row->record(token);
    BOOST_REQUIRE(row->allow(mask));
  };
  record("");
  BOOST_TEST(!has_bit(mask, end));
  record("> hello <ca");
  BOOST_TEST(has_bit(mask, end));
  record("<call>");
  BOOST_TEST(!has_bit(mask, end));
  record("a");
  BOOST_TEST(!row->complete());
  row->record(static_cast<token_id>('b' + 1));
  BOOST_TEST(row->complete());
}

BOOST_AUTO_TEST_CASE(a_row_continues_an_earlier_run) {
  const auto rule = rule_of(test::schema(short_person));
  std::vector<token_id> before;
  BOOST_REQUIRE(small_index()->vocabulary().encode("{\"name\": \"ab", before));
  const auto row = constrain(rule, "grammar", before).value()->begin();
  std::vector<std::uint32_t> mask(small_index()->words());
  BOOST_TEST(row->allow(mask));
  std::vector<token_id> wrong;
  BOOST_REQUIRE(small_index()->vocabulary().encode("{\"nom", wrong));
  const auto refused = constrain(rule, "response_format", wrong);
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().field == "response_format");
}

BOOST_AUTO_TEST_CASE(scores_are_of_the_allowed_tokens) {
  sampling::sampling_params params;
  params.rule = constrain(rule_of(grammar::from_regex("[ab]").value()), "regex").value();
  params.top_k = 1;
  params.logprobs = true;
  params.top_logprobs = 5;
  sampling::sampler sampler(small_index()->vocabulary().size());
  sampler.start(params);
  std::vector<float> logits(small_index()->vocabulary().size(), 4.0f);
  logits['a' + 1] = 1.0f;
  logits['b' + 1] = 1.0f + std::log(3.0f);
  const auto sampled = sampler.sample(logits);
  BOOST_TEST(sampled.token == 'b' + 1);
  BOOST_TEST(std::exp(sampled.logprobs.logprob) == 0.75f, boost::test_tools::tolerance(1e-5f));
  BOOST_REQUIRE(sampled.logprobs.count == 2u);
  BOOST_TEST(sampled.logprobs.top[0].token == 'b' + 1);
  BOOST_TEST(sampled.logprobs.top[1].token == 'a' + 1);
  BOOST_TEST(sampler.is_complete());
}

BOOST_AUTO_TEST_CASE(a_dead_end_ends_the_row) {
  // The rule needs 256 levels and more, which no text may have.
  const auto endless = grammar::from_gbnf("root ::= \"a\" root \"b\"");
  BOOST_REQUIRE(endless);
  sampling::sampling_params params;
  params.rule = constrain(rule_of(*endless), "grammar").value();
  sampling::sampler sampler(small_index()->vocabulary().size());
  sampler.start(params);
  const std::vector<float> logits(small_index()->vocabulary().size());
  int tokens = 0;
  while (!sampler.is_stuck() && tokens < 1000) {
    (void)sampler.sample(logits);
    ++tokens;
  }
  BOOST_TEST(sampler.is_stuck());
  BOOST_TEST(tokens < 300);
}

BOOST_AUTO_TEST_CASE(generated_numbers_and_spaces_come_to_an_end) {
  options how;
  how.bounds = limits_to_generate();
  const auto accepts = [&](const char* schema, std::string_view text) {
    return test::accepts(grammar::from_json_schema(schema, how).value(), text);
  };
  constexpr auto integer = R"({"type":"integer"})", number = R"({"type":"number"})";
  BOOST_TEST(accepts(integer, "-120"));
  BOOST_TEST(!accepts(integer, "7.0"));
  BOOST_TEST(!accepts(integer, "1e2"));
  BOOST_TEST(accepts(integer, std::string(24, '1')));
  BOOST_TEST(!accepts(integer, std::string(25, '1')));
  BOOST_TEST(accepts(number, "-1.2345678901234567e-308"));
  for (const char* text : {"1e99", "4.5E+07", "0e5", "9e-308", "1e-300", "1e-29", "1e-0099", "-1.5e-40"})
    BOOST_TEST(accepts(number, text), text);
  for (const char* text : {"1e100", "4.5e-100031606060606", "1e-309", "1e-400", "1e-310", "0e100", "1e+1000"})
    BOOST_TEST(!accepts(number, text), text);
  constexpr auto positive = R"({"type":"number","exclusiveMinimum":0})";
  BOOST_TEST(accepts(positive, "0.000000000000000001e-99"));
  BOOST_TEST(!accepts(positive, "1e-100"));  // with other digits, a double could round it to 0
  BOOST_TEST(accepts(R"({"type":"number","minimum":1,"maximum":1e40})", "1e39"));
  BOOST_TEST(!accepts(R"({"type":"number","minimum":1})", "1e100"));
  BOOST_TEST(!accepts(number, "0." + std::string(30, '3')));
  BOOST_TEST(!accepts(number, "[1]"));
  BOOST_TEST(accepts(R"({"const":7})", "7"));
  BOOST_TEST(!accepts(R"({"const":7})", "7.0"));
  BOOST_TEST(accepts(R"({"enum":[0.5,-10,0]})", "0.5"));
  BOOST_TEST(accepts(R"({"enum":[0.5,-10,0]})", "-10"));
  BOOST_TEST(accepts(R"({"enum":[0.5,-10,0]})", "0"));
  BOOST_TEST(accepts(R"({"minimum":1e30,"type":"integer"})", "1" + std::string(30, '0')));  // the bound needs more
  BOOST_TEST(accepts("true", "[" + std::string(32, ' ') + "]"));
  BOOST_TEST(!accepts("true", "[" + std::string(33, ' ') + "]"));
}

BOOST_AUTO_TEST_CASE(generated_names_and_constants_have_one_form) {
  options how;
  how.bounds = limits_to_generate();
  const auto accepts = [&](const char* schema, std::string_view text) {
    return test::accepts(grammar::from_json_schema(schema, how).value(), text);
  };
  constexpr auto constant = R"({"const":"a/b\"c"})";
  BOOST_TEST(accepts(constant, R"("a/b\"c")"));
  BOOST_TEST(!accepts(constant, R"("a\/b\"c")"));
  BOOST_TEST(!accepts(constant, R"("\u0061/b\"c")"));
  constexpr auto closed = R"({"type":"object","properties":{"ab":{}},"additionalProperties":false})";
  BOOST_TEST(accepts(closed, R"({"ab":"\u0061"})"));  // texts that are not listed have any form
  BOOST_TEST(!accepts(closed, R"({"a\u0062":1})"));
}

BOOST_AUTO_TEST_CASE(a_vocabulary_without_the_first_byte_is_refused) {
  const auto few = vocabulary_index::build(tokenizer::vocabulary::parse("1 'a' 1\n2 'b' 1\n", "few").value());
  const auto refused = answer_rule::make(grammar::from_regex("x+").value(), few, {});
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().kind == error_kind::invalid_argument));
  BOOST_TEST(refused.error().message == "no token in the model's vocabulary can start a text that the grammar accepts");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::grammar
