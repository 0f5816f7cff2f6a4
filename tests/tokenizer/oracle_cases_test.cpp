// The real World vocabulary: all 300 stored cases encode to the stored ids and decode to the stored bytes, single
// tokens have the ids that the documentation of the models quotes, and copies of the file with other line ends are the
// same vocabulary.
#include <simdjson.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "tests/support/oracle.hpp"
#include "tests/support/random_cases.hpp"
#include "tokenizer/vocabulary.hpp"

namespace skein::tokenizer {
namespace {

BOOST_AUTO_TEST_SUITE(oracle_cases_test)

std::filesystem::path world_file() { return test::oracle() / "rwkv_vocab_v20230424.txt"; }

const vocabulary& world() {
  static const auto loaded = vocabulary::load(world_file()).value();
  return *loaded;
}

std::string decoded(const std::vector<token_id>& ids) {
  std::string text;
  for (const token_id id : ids) text += world().text(id);
  return text;
}

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

BOOST_AUTO_TEST_CASE(stored_cases, *boost::unit_test::precondition(skein::test::have_oracle)) {
  simdjson::dom::parser parser;
  const simdjson::dom::array cases = parser.load((test::oracle() / "tokenizer_cases.json").string());
  BOOST_TEST(cases.size() == 300u);
  for (const simdjson::dom::element c : cases) {
    BOOST_TEST_INFO(std::string_view(c["name"]));
    const std::string bytes = from_hex(c["hex"]);
    std::vector<token_id> expected;
    for (const std::int64_t id : c["ids"].get_array()) expected.push_back(static_cast<token_id>(id));
    std::vector<token_id> ids;
    BOOST_TEST_REQUIRE(world().encode(bytes, ids).value() == expected.size());
    BOOST_TEST(ids == expected);
    BOOST_TEST(decoded(ids) == bytes);
  }
}

BOOST_AUTO_TEST_CASE(facts_about_the_world_vocabulary, *boost::unit_test::precondition(skein::test::have_oracle)) {
  BOOST_TEST(world().name() == "rwkv_vocab_v20230424.txt");
  BOOST_TEST(world().size() == 65530u);
  BOOST_TEST(world().longest_token() == 128u);
  BOOST_TEST(world().text(0) == "");
  BOOST_TEST(world().text(261) == "\n\n");
  BOOST_TEST(world().text(24281) == "User");
  BOOST_TEST(world().text(65529) == std::string(128, ' '));
  BOOST_TEST(world().text(65530) == "");
  for (int byte = 0; byte < 256; ++byte) BOOST_TEST(world().text(byte + 1) == std::string(1, static_cast<char>(byte)));
}

BOOST_AUTO_TEST_CASE(every_token_encodes_to_itself, *boost::unit_test::precondition(skein::test::have_oracle)) {
  for (token_id id = 1; id < static_cast<token_id>(world().size()); ++id) {
    std::vector<token_id> ids;
    BOOST_TEST_REQUIRE(world().encode(world().text(id), ids).has_value());
    BOOST_TEST_REQUIRE(ids == std::vector<token_id>{id});
  }
}

BOOST_AUTO_TEST_CASE(random_bytes_come_back, *boost::unit_test::precondition(skein::test::have_oracle)) {
  test::random_cases random;
  for (int i = 0; i < 200; ++i) {
    const std::string bytes = random.bytes(random.below(2000));
    std::vector<token_id> ids;
    BOOST_TEST_REQUIRE(world().encode(bytes, ids).has_value());
    BOOST_TEST_REQUIRE(decoded(ids) == bytes);
  }
}

BOOST_AUTO_TEST_CASE(other_line_ends, *boost::unit_test::precondition(skein::test::have_oracle)) {
  const std::string text = test::content_of(world_file());
  std::string crlf;
  for (const char c : text) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  BOOST_TEST(vocabulary::parse(crlf, "crlf").value()->hash() == world().hash());
  BOOST_TEST(vocabulary::parse(text.substr(0, text.find_last_not_of("\r\n") + 1), "cut").value()->hash() ==
             world().hash());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace skein::tokenizer
