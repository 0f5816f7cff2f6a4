// Every field of /v1/completions: a base body, then one change a row, with what the parsed request must say or the
// field that the refusal must name.
#include <boost/test/unit_test.hpp>

#include "tests/protocol/request_rows.hpp"

namespace skein::protocol {
namespace {

using request = const generation_request&;

const std::string completion_base = R"({"prompt":"hi")";

BOOST_AUTO_TEST_SUITE(completion_request)

BOOST_AUTO_TEST_CASE(a_request_that_names_nothing_samples_plainly) {
  const auto r = test::parse_completion(completion_base + "}", {}, {});
  BOOST_REQUIRE(r.has_value());
  BOOST_TEST(!r->chat);
  BOOST_TEST(r->prompts.size() == 1u);
  BOOST_TEST(r->prompts[0].text == "hi");
  BOOST_TEST(!r->prompts[0].is_tokens);
  BOOST_TEST(r->sampling.temperature == 1.0f);
  BOOST_TEST(r->sampling.top_p == 1.0f);
  BOOST_TEST(r->sampling.top_k == 0);
  BOOST_TEST(r->sampling.first_penalty == 0.0f);
  BOOST_TEST(r->sampling.repeat_penalty == 0.0f);
  BOOST_TEST(r->sampling.max_tokens == 256u);
  BOOST_TEST(r->stop.empty());
  BOOST_TEST(!r->echo);
  BOOST_TEST(!r->suffix.has_value());
  BOOST_TEST(!r->sampling.logprobs);
}

BOOST_AUTO_TEST_CASE(fields_of_both_routes) {
  test::check_accepted(test::parse_completion, completion_base, test::common_accepted());
  test::check_refused(test::parse_completion, completion_base, test::common_refused());
}

BOOST_AUTO_TEST_CASE(completion_fields) {
  const std::vector<test::accepted_row> rows{
      {R"("alpha_presence":2)",
       [](request r) { return r.sampling.first_penalty == 2 && r.sampling.repeat_penalty == 0; }},
      {R"("echo":true)", [](request r) { return r.echo; }},
      {R"("suffix":"end")", [](request r) { return r.suffix == "end"; }},
      {R"("suffix":"")", [](request r) { return !r.suffix; }},
      {R"("suffix":null)", [](request r) { return !r.suffix; }},
      {R"("logprobs":0)", [](request r) { return r.sampling.logprobs && r.sampling.top_logprobs == 0; }},
      {R"("logprobs":5)", [](request r) { return r.sampling.logprobs && r.sampling.top_logprobs == 5; }},
      {R"("logprobs":null)", [](request r) { return !r.sampling.logprobs; }},
      {R"("best_of":4,"n":2)", [](request r) { return r.best_of == 4 && r.n == 2; }},
      {R"("best_of":2,"n":2,"stream":true)", [](request r) { return r.best_of == 2 && r.stream; }},
  };
  test::check_accepted(test::parse_completion, completion_base, rows);

  const std::vector<test::refused_row> wrong{
      {R"("echo":"yes")", "echo"},
      {R"("suffix":5)", "suffix"},
      {R"("logprobs":6)", "logprobs"},
      {R"("logprobs":true)", "logprobs"},
      {R"("best_of":1,"n":2)", "best_of"},
      {R"("best_of":129)", "best_of"},
      {R"("best_of":2,"stream":true)", "best_of"},
  };
  test::check_refused(test::parse_completion, completion_base, wrong);
}

BOOST_AUTO_TEST_CASE(prompts) {
  const std::vector<std::pair<std::string, std::function<bool(request)>>> right{
      {R"("")", [](request r) { return r.prompts.size() == 1 && r.prompts[0].text.empty(); }},
      {R"(["a","b"])", [](request r) { return r.prompts.size() == 2 && r.prompts[1].text == "b"; }},
      {"[1,0,65535]",
       [](request r) {
         return r.prompts.size() == 1 && r.prompts[0].is_tokens &&
                r.prompts[0].tokens == std::vector<token_id>{1, 0, 65535};
       }},
      {"[[1],[2,3]]",
       [](request r) {
         return r.prompts.size() == 2 && r.prompts[1].tokens == std::vector<token_id>{2, 3};
       }},
      {R"(["a",[7]])", [](request r) { return !r.prompts[0].is_tokens && r.prompts[1].is_tokens; }},
  };
  for (const auto& [prompt, fact] : right)
    test::check_accepted(test::parse_completion, R"({"prompt":)" + prompt, {{{"", fact}}});

  const std::vector<std::pair<std::string, std::string>> wrong{
      {"null", "prompt"},
      {"5", "prompt"},
      {"{}", "prompt"},
      {"[]", "prompt"},
      {"[[]]", "prompt[0]"},
      {"[1,-1]", "prompt[1]"},
      {"[1,\"a\"]", "prompt[1]"},
      {"[\"a\",1]", "prompt[1]"},
      {"[[1],[1.5]]", "prompt[1][0]"},
      {"[4294967296]", "prompt[0]"},
      {"[null]", "prompt[0]"},
      {"[[[1]]]", "prompt[0][0]"},
  };
  for (const auto& [prompt, field] : wrong)
    test::check_refused(test::parse_completion, R"({"prompt":)" + prompt, {{{R"("n":1)", field}}});
  test::check_refused(test::parse_completion, R"({"model":"m")", {{{R"("n":1)", "prompt"}}});
  test::check_refused(test::parse_completion, R"({"prompt":[1])", {{{R"("suffix":"x")", "suffix"}}});
}

BOOST_AUTO_TEST_CASE(prompts_times_answers_are_bounded) {
  request_limits limits;
  limits.prompts_max = 6;
  const std::string three = R"({"prompt":["a","b","c"],"n":)";
  BOOST_TEST(test::parse_completion(three + "2}", {}, limits).has_value());
  const auto above = test::parse_completion(three + "2,\"best_of\":3}", {}, limits);
  BOOST_REQUIRE(!above.has_value());
  BOOST_TEST(above.error().field == "prompt");
}

BOOST_AUTO_TEST_CASE(token_prompts_are_bounded) {
  request_limits limits;
  limits.prompt_tokens_max = 3;
  BOOST_TEST(test::parse_completion(R"({"prompt":[1,2,3]})", {}, limits).has_value());
  const auto above = test::parse_completion(R"({"prompt":[1,2,3,4]})", {}, limits);
  BOOST_REQUIRE(!above.has_value());
  BOOST_TEST(above.error().field == "prompt");
  BOOST_TEST((above.error().kind == error_kind::too_large));
}

BOOST_AUTO_TEST_CASE(eight_megabytes_of_tokens) {
  request_limits limits;
  const std::string before = R"({"prompt":[)";
  std::string body = before;
  while (body.size() + 4 < limits.body_bytes_max) body += "0,";
  body += "0]}";
  const auto r = test::parse_completion(body, {}, limits);
  BOOST_REQUIRE(r.has_value());
  BOOST_TEST(r->prompts[0].tokens.size() == (body.size() - before.size() - 1) / 2);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace skein::protocol
