// The JSON writer: golden strings, and whatever bytes and numbers go in, simdjson reads the output back as the same
// values (bytes that are not UTF-8 come back as U+FFFD).
#include <boost/test/unit_test.hpp>
#include <limits>
#include <random>

#include "base/utf8.hpp"
#include "protocol/json/json.hpp"
#include "protocol/json/json_writer.hpp"

namespace skein::protocol {
namespace {

std::string quoted(std::string_view text) {
  std::string json;
  json_writer(json).value(text);
  return json;
}

std::string read_back(std::string_view text) {
  const auto document = json_document::parse("[" + quoted(text) + "]", {});
  BOOST_REQUIRE(document.has_value());
  return std::string(*(*document->root().elements().begin()).text());
}

template <typename Number>
std::string written(Number number) {
  std::string json;
  json_writer(json).value(number);
  return json;
}

BOOST_AUTO_TEST_SUITE(json_writer_output)

BOOST_AUTO_TEST_CASE(structure) {
  std::string json;
  json_writer out(json);
  out.begin_object().key("a").value(1).key("b").begin_array().value("x").value(true).null().begin_object().end_object();
  out.begin_array().end_array().value(-2.5).end_array().key("c").begin_object().key("d").value(7u).end_object();
  out.key("e").value(false).end_object();
  BOOST_TEST(json == R"({"a":1,"b":["x",true,null,{},[],-2.5],"c":{"d":7},"e":false})");
}

BOOST_AUTO_TEST_CASE(escapes) {
  BOOST_TEST(quoted("a\"b\\c/\b\f\n\r\t\x01\x1f\x7f") == "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
  BOOST_TEST(quoted(std::string_view("\0", 1)) == R"("\u0000")");
  BOOST_TEST(quoted("é 你 😀") == "\"é 你 😀\"");
}

BOOST_AUTO_TEST_CASE(numbers) {
  BOOST_TEST(written(0.1f) == "0.1");
  BOOST_TEST(written(0.1) == "0.1");
  BOOST_TEST(written(1.0f) == "1");
  BOOST_TEST(written(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  BOOST_TEST(written(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  BOOST_TEST(written(std::numeric_limits<float>::infinity()) == "null");
  BOOST_TEST(written(std::numeric_limits<double>::quiet_NaN()) == "null");
  std::mt19937_64 random(7);
  for (int i = 0; i < 10000; ++i) {
    const auto number = std::bit_cast<double>(random());
    if (!std::isfinite(number)) continue;
    const auto document = json_document::parse("[" + written(number) + "]", {});
    BOOST_REQUIRE(document.has_value());
    BOOST_REQUIRE(*(*document->root().elements().begin()).number() == number);
  }
}

BOOST_AUTO_TEST_CASE(invalid_utf8_becomes_replacement_characters) {
  // one per maximal part, as the Unicode standard recommends
  const std::vector<std::pair<std::string, std::string>> rows{
      {"\xff", "\uFFFD"},
      {"a\x80z", "a\uFFFDz"},
      {"\xe4\xbd", "\uFFFD"},
      {"\xe4\xbdX", "\uFFFDX"},
      {"\xf0\x9f\x98", "\uFFFD"},
      {"\xc0\x80", "\uFFFD\uFFFD"},
      {"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"},
      {"\xf4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
      {"\xe0\x9f\xbf", "\uFFFD\uFFFD\uFFFD"},
      {"\xf0\x9f\x98\x80\xf0", "😀\uFFFD"},
  };
  for (const auto& [bytes, expected] : rows) BOOST_TEST(read_back(bytes) == expected);
}

BOOST_AUTO_TEST_CASE(the_bytes_of_a_text_are_those_that_are_written) {
  BOOST_TEST(json_bytes("") == 0u);
  BOOST_TEST(json_bytes("plain") == 5u);
  BOOST_TEST(json_bytes("\x01\"\n") == 10u);
  BOOST_TEST(json_bytes("\xe4\xbd\xa0") == 3u);
  BOOST_TEST(json_bytes("\xff") == 3u);
}

BOOST_AUTO_TEST_CASE(random_bytes_are_always_readable) {
  std::mt19937 random(11);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(random() % 12, '\0');
    for (auto& byte : bytes) byte = static_cast<char>(random() % 3 ? random() : random() % 128);
    const auto text = read_back(bytes);
    BOOST_REQUIRE(is_utf8(text));
    if (is_utf8(bytes)) BOOST_REQUIRE(text == bytes);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace skein::protocol
