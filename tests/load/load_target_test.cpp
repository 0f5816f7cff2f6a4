// Where requests go and what they hold.
#include "load/load_target.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>

using namespace skein::load;

BOOST_AUTO_TEST_CASE(urls) {
  const auto plain = parse_url("http://127.0.0.1:8000");
  BOOST_REQUIRE(plain.has_value());
  BOOST_TEST(plain->host == "127.0.0.1");
  BOOST_TEST(plain->port == "8000");
  BOOST_TEST(path_of(*plain) == "/v1/completions");

  auto deep = parse_url("http://[::1]:99/a/b//");
  BOOST_REQUIRE(deep.has_value());
  BOOST_TEST(deep->host == "::1");
  BOOST_TEST(deep->port == "99");
  deep->chat = true;
  BOOST_TEST(path_of(*deep) == "/a/b/v1/chat/completions");
  BOOST_TEST(parse_url("http://host")->port == "80");

  for (const char* wrong : {"", "https://host", "host:1", "http://", "http://:80", "http://h:", "http://h:0",
                            "http://h:65536", "http://h:8x", "http://[::1", "http://h h", "http://h/a b"})
    BOOST_TEST(!parse_url(wrong).has_value(), wrong);
}

BOOST_AUTO_TEST_CASE(bodies) {
  load_target target;
  const std::string tokens = body_of(target, {0, 50, 7}, 1);
  BOOST_TEST(std::ranges::count(tokens.substr(0, tokens.find(']')), ',') == 49);
  BOOST_TEST(tokens.find(R"("max_tokens":7,"ignore_eos":true)") != std::string::npos);
  BOOST_TEST(tokens.find(R"("include_usage":true)") != std::string::npos);
  BOOST_TEST(tokens.find("model") == std::string::npos);
  BOOST_TEST(tokens == body_of(target, {0, 50, 7}, 1));
  BOOST_TEST(tokens != body_of(target, {0, 50, 7}, 2));

  target.vocab = 2;
  BOOST_TEST(body_of(target, {0, 3, 7}, 1).find(R"("prompt":[1,1,1])") != std::string::npos);

  target.chat = true;
  target.model = "m";
  const std::string words = body_of(target, {0, 50, 7}, 1);
  BOOST_TEST(words.find(R"({"model":"m","messages":[{"role":"user","content":")") == 0u);
  const std::size_t text = words.find("content\":\"") + 10;
  BOOST_TEST(std::ranges::count(words.substr(text, words.find('"', text) - text), ' ') == 49);
}
