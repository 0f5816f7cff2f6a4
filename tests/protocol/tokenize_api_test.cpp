// Bodies and answers of /tokenize, /detokenize and /v1/models.
#include <boost/test/unit_test.hpp>

#include "protocol/server/models_response.hpp"
#include "protocol/server/tokenize_api.hpp"

namespace skein::protocol {
namespace {

BOOST_AUTO_TEST_SUITE(tokenize_api)

BOOST_AUTO_TEST_CASE(tokenize_bodies) {
  const auto plain = parse_tokenize(R"({"content":"a b"})", {});
  BOOST_REQUIRE(plain.has_value());
  BOOST_TEST(plain->content == "a b");
  BOOST_TEST(!plain->add_special);
  BOOST_TEST(!plain->with_pieces);
  const auto full = parse_tokenize(R"({"content":"","add_special":true,"with_pieces":true,"parse_special":true})", {});
  BOOST_REQUIRE(full.has_value());
  BOOST_TEST(full->add_special);
  BOOST_TEST(full->with_pieces);
  BOOST_TEST(parse_tokenize("{}", {}).error().field == "content");
  BOOST_TEST(parse_tokenize(R"({"content":["a"]})", {}).error().field == "content");
  BOOST_TEST(parse_tokenize(R"({"content":"a","with_pieces":1})", {}).error().field == "with_pieces");
  BOOST_TEST(!parse_tokenize("[]", {}).has_value());
}

BOOST_AUTO_TEST_CASE(a_conversation_as_the_template_has_it) {
  const std::string said = R"({"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}])";
  BOOST_TEST(template_answer(said + "}", {}, {}).value() ==
             R"({"prompt":"System: Be brief.\n\nUser: Hi\n\nAssistant: <think>\n</think"})");
  BOOST_TEST(template_answer(said + R"(,"chat_template_kwargs":{"enable_thinking":true}})", {}, {})
                 .value()
                 .ends_with("Assistant: <think\"}"));
  BOOST_TEST(template_answer("{}", {}, {}).error().field == "messages");
  request_limits limits;
  limits.response_bytes_max = 40;
  BOOST_TEST(template_answer(said + "}", {}, limits).error().field == "messages");
}

BOOST_AUTO_TEST_CASE(detokenize_bodies) {
  BOOST_TEST(parse_detokenize(R"({"tokens":[1,0,65535]})", {}).value() == (std::vector<token_id>{1, 0, 65535}));
  BOOST_TEST(parse_detokenize(R"({"tokens":[]})", {}).value().empty());
  BOOST_TEST(parse_detokenize("{}", {}).error().field == "tokens");
  BOOST_TEST(parse_detokenize(R"({"tokens":"1"})", {}).error().field == "tokens");
  BOOST_TEST(parse_detokenize(R"({"tokens":[1,-1]})", {}).error().field == "tokens[1]");
  BOOST_TEST(parse_detokenize(R"({"tokens":[1,"2"]})", {}).error().field == "tokens[1]");
}

BOOST_AUTO_TEST_CASE(answers) {
  const std::vector<token_id> tokens{1, 2};
  const auto bytes_of = [](token_id token) { return token == 1 ? "é" : "\xe4\xbd"; };
  BOOST_TEST(tokenize_answer(tokens, {}).value() == R"({"tokens":[1,2]})");
  BOOST_TEST(tokenize_answer({}, {}).value() == R"({"tokens":[]})");
  BOOST_TEST(tokenize_answer(tokens, bytes_of, {}).value() ==
             R"({"tokens":[{"id":1,"piece":"é"},{"id":2,"piece":[228,189]}]})");
  const auto lines = [](token_id) { return "a\n"; };
  BOOST_TEST(detokenize_answer(tokens, lines, {}).value() == R"({"content":"a\na\n"})");
}

BOOST_AUTO_TEST_CASE(answers_have_a_longest) {
  const std::vector<token_id> tokens{1, 2};
  const auto bytes_of = [](token_id) { return "\n"; };
  const auto expect_longest = [](std::size_t longest, const std::string& field, const auto& answer) {
    request_limits limits;
    limits.response_bytes_max = longest;
    BOOST_TEST(answer(limits).value().size() == longest);
    limits.response_bytes_max = longest - 1;
    const auto refused = answer(limits);
    BOOST_REQUIRE(!refused);
    BOOST_CHECK(refused.error().kind == error_kind::invalid_argument);
    BOOST_TEST(refused.error().field == field);
    BOOST_TEST(refused.error().message ==
               "the answer would exceed limits.response_bytes_max (" + std::to_string(longest - 1) + " bytes)");
  };
  expect_longest(16, "content", [&](const request_limits& l) { return tokenize_answer(tokens, l); });
  expect_longest(56, "with_pieces", [&](const request_limits& l) { return tokenize_answer(tokens, bytes_of, l); });
  expect_longest(18, "tokens", [&](const request_limits& l) { return detokenize_answer(tokens, bytes_of, l); });
}

BOOST_AUTO_TEST_CASE(models) {
  const model_card card{"demo", 7, "7", "cpu", "bf16", "abc", 2, 64, 256, 1000, 4096};
  const std::string json =
      R"({"id":"demo","object":"model","created":7,"owned_by":"skein","root":"demo","parent":null,"status":"loaded",)"
      R"("rwkv":{"version":"7","device":"cpu","weight_type":"bf16","strategy":"cpu bf16","identity":"abc","layers":2,"embd":64,"vocab":256,"parameters":1000,"state_bytes":4096}})";
  BOOST_TEST(model_body(card) == json);
  model_card state = card;
  state.id = "demo poet";
  state.parent = "demo";
  BOOST_TEST(model_body(state).starts_with(
      R"({"id":"demo poet","object":"model","created":7,"owned_by":"skein","root":"demo","parent":"demo",)"));
  const std::vector<std::string> ids{"a", "b"};
  BOOST_TEST(models_list({{card, card}}, "demo", ids) ==
             R"({"object":"list","data":[)" + json + "," + json + R"(],"loaded":"demo","available":["a","b"]})");
  BOOST_TEST(models_list({}, {}, {}) == R"({"object":"list","data":[],"loaded":null,"available":[]})");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace skein::protocol
