// Thoughts with a limit: whatever the logits are, "</think>" follows after that number of tokens at the latest, and
// what comes then is free or follows the constraint of the answer.
#include "grammar/thought_limit.hpp"

#include <boost/test/unit_test.hpp>
#include <random>

#include "grammar/answer_rule.hpp"
#include "sampling/sampler.hpp"
#include "tests/grammar/accepts.hpp"
#include "tests/grammar/small_index.hpp"

namespace skein::grammar {
namespace {

using test::small_index;
using shared_constraint = std::shared_ptr<const sampling::constraint>;

std::shared_ptr<const tokenizer::vocabulary> words() {
  const auto index = small_index();
  return {index, &index->vocabulary()};
}

shared_constraint limited(std::uint32_t tokens_max, shared_constraint then = nullptr,
                          const std::vector<token_id>& after = {}) {
  return limit_thoughts(words(), tokens_max, "max_reasoning_tokens", std::move(then), after).value();
}

/// A row with random logits.
struct random_row {
  explicit random_row(shared_constraint rule, std::uint32_t seed = 1) : sampler(words()->size()), random(seed) {
    params.rule = std::move(rule);
    params.temperature = 2;
    params.seed = seed;
    sampler.start(params);
  }

  /// Samples until the text has `end`, or the constraint is complete.
  void run(std::string_view end, int tokens_max = 400) {
    std::normal_distribution<float> normal(0, 3);
    std::vector<float> logits(words()->size());
    for (int i = 0; i < tokens_max && !sampler.is_complete() && text.find(end) == std::string::npos; ++i) {
      for (float& x : logits) x = normal(random);
      tokens.push_back(sampler.sample(logits).token);
      BOOST_REQUIRE(!sampler.is_stuck());
      text += words()->text(tokens.back());
    }
  }

  sampling::sampling_params params;
  sampling::sampler sampler;
  std::mt19937 random;
  std::vector<token_id> tokens;
  std::string text;
};

std::vector<token_id> encoded(std::string_view text) {
  std::vector<token_id> tokens;
  (void)words()->encode(text, tokens).value();
  return tokens;
}

/// The tokens that a rule allows next.
std::vector<token_id> allowed_by(sampling::token_rule& rule) {
  std::vector<std::uint32_t> mask(small_index()->words());
  BOOST_REQUIRE(rule.allow(mask));
  std::vector<token_id> tokens;
  for (std::uint32_t id = 0; id < words()->size(); ++id)
    if ((mask[id / 32] >> (id % 32) & 1) != 0) tokens.push_back(static_cast<token_id>(id));
  return tokens;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(thought_limits)

BOOST_AUTO_TEST_CASE(thoughts_end_after_the_limit) {
  const std::size_t tag_tokens = encoded("</think>").size();
  for (const std::uint32_t most : {1u, 2u, 7u, 50u})
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
      random_row r(limited(most), seed);
      r.run("</think>");
      BOOST_TEST(r.text.ends_with("</think>"));
      BOOST_TEST(r.tokens.size() <= most + tag_tokens + 8);  // and the rest of the opening tag
      const std::size_t before = r.tokens.size();
      r.run("never", 60);
      BOOST_TEST(r.tokens.size() == before + 60);  // the answer is free
    }
}

BOOST_AUTO_TEST_CASE(the_rest_of_a_tag_is_written) {
  for (std::size_t written = 1; written < 8; ++written) {
    auto rule = limited(1)->begin();
    const std::string begun = "a" + std::string("</think>").substr(0, written);
    for (const char c : begun) rule->record(encoded(std::string(1, c)).front());
    const auto next = allowed_by(*rule);
    BOOST_REQUIRE(next.size() == 1u);
    BOOST_TEST(std::string("</think>").substr(written).starts_with(words()->text(next.front())));
  }
  auto over = limited(1)->begin();
  for (const token_id token : encoded("ab</think>")) over->record(token);
  BOOST_TEST(allowed_by(*over).size() == words()->size());
}

BOOST_AUTO_TEST_CASE(the_opening_tag_does_not_count) {
  auto rule = limited(1)->begin();
  for (const char* text : {">", "\n", "\n"}) rule->record(encoded(text).front());
  BOOST_TEST(allowed_by(*rule).size() == words()->size());
  rule->record(encoded("a").front());
  BOOST_TEST(allowed_by(*rule) == std::vector<token_id>{encoded("</think>").front()});
}

BOOST_AUTO_TEST_CASE(the_tag_is_forced) {
  const auto of = grammar::from_regex("name[0-9]").value();
  const auto answer = answer_rule::make(of, small_index(), answer_lead::after_thoughts('>')).value();
  const auto rule = limited(1, constrain(answer, "grammar").value())->begin();
  BOOST_TEST(rule->forced() == no_token);
  for (const token_id token : encoded(">a")) rule->record(token);
  std::string text;
  for (token_id next = rule->forced(); next != no_token; next = rule->forced()) {
    BOOST_TEST(allowed_by(*rule) == std::vector<token_id>{next});
    text += words()->text(next);
    rule->record(next);
  }
  BOOST_TEST(text == "</think>");
  rule->record(encoded("n").front());  // the answer has begun
  BOOST_TEST(words()->text(rule->forced()) == "a");
}

BOOST_AUTO_TEST_CASE(a_constraint_applies_to_the_answer) {
  const auto of = grammar::from_regex("[ab]{2}c").value();
  const auto rule = answer_rule::make(of, small_index(), answer_lead::after_thoughts('>')).value();
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    random_row r(limited(5, constrain(rule, "grammar").value()), seed);
    r.run("never");
    BOOST_TEST(r.sampler.is_complete());
    const auto end = r.text.find("</think>");
    BOOST_REQUIRE(end != std::string::npos);
    auto answer = r.text.substr(end + 8);
    answer.erase(0, answer.find_first_not_of('\n'));
    BOOST_TEST(test::accepts(of, answer), answer);
  }
}

BOOST_AUTO_TEST_CASE(an_answer_that_is_continued_has_the_rest_of_the_limit) {
  random_row whole(limited(20));
  whole.run("</think>");
  for (std::size_t cut = 0; cut < whole.tokens.size(); ++cut) {
    const std::vector<token_id> before(whole.tokens.begin(), whole.tokens.begin() + static_cast<std::ptrdiff_t>(cut));
    auto fresh = limited(20)->begin();
    for (const token_id token : before) fresh->record(token);
    auto resumed = limited(20, nullptr, before)->begin();
    BOOST_TEST(allowed_by(*resumed) == allowed_by(*fresh));
    BOOST_TEST(allowed_by(*resumed->fork()) == allowed_by(*fresh));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::grammar
