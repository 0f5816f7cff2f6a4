// Bodies and answers of /tokenize, /detokenize and /v1/models.
#include <boost/test/unit_test.hpp>

#include "protocol/models_response.hpp"
#include "protocol/tokenize_api.hpp"

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
  BOOST_TEST(tokenize_answer(tokens) == R"({"tokens":[1,2]})");
  BOOST_TEST(tokenize_answer(std::span<const token_id>()) == R"({"tokens":[]})");
  const std::vector<token_piece> pieces{{1, "é"}, {2, "\xe4\xbd"}};
  BOOST_TEST(tokenize_answer(pieces) == R"({"tokens":[{"id":1,"piece":"é"},{"id":2,"piece":[228,189]}]})");
  BOOST_TEST(detokenize_answer("a\nb") == R"({"content":"a\nb"})");
}

BOOST_AUTO_TEST_CASE(models) {
  const model_card card{"demo", 7, "7", "cpu", "bf16", "abc", 2, 64, 256, 1000, 4096};
  const std::string json =
      R"({"id":"demo","object":"model","created":7,"owned_by":"skein","rwkv":{"version":"7","device":"cpu",)"
      R"("weight_type":"bf16","identity":"abc","layers":2,"embd":64,"vocab":256,"parameters":1000,"state_bytes":4096}})";
  BOOST_TEST(model_body(card) == json);
  BOOST_TEST(models_list({{card, card}}) == R"({"object":"list","data":[)" + json + "," + json + "]}");
  BOOST_TEST(models_list({}) == R"({"object":"list","data":[]})");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace skein::protocol
