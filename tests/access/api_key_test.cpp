// Files of keys: what is read, what is refused and in which words, and that a secret stands in neither.
#include "access/api_key.hpp"

#include <boost/test/unit_test.hpp>
#include <set>
#include <string>

namespace {

using namespace skein;
using namespace skein::access;

const std::string hash = to_hex(hash_of("the secret of a key"));

BOOST_AUTO_TEST_CASE(a_line_has_a_name_a_hash_and_settings) {
  const std::string text = "# keys of this server\n\n  alice " + hash +
                           "\n"
                           "bob.b-1\t" +
                           to_hex(hash_of("another")) +
                           " concurrent=8 tokens-per-minute=60000 models=one,two tenant=team admin\r\n";
  const auto keys = parse_keys(text, "file");
  BOOST_REQUIRE_MESSAGE(keys, keys.error().message);
  BOOST_REQUIRE_EQUAL(keys->size(), 2u);
  const api_key &alice = keys->at(0), &bob = keys->at(1);
  BOOST_TEST(alice.name == "alice");
  BOOST_TEST(alice.tenant == "alice");
  BOOST_TEST(!alice.admin);
  BOOST_TEST(alice.concurrent_max == 0u);
  BOOST_TEST(alice.models.empty());
  BOOST_TEST(same(alice.hash, hash_of("the secret of a key")));
  BOOST_TEST(bob.tenant == "team");
  BOOST_TEST(bob.admin);
  BOOST_TEST(bob.concurrent_max == 8u);
  BOOST_TEST(bob.tokens_per_minute == 60000u);
  BOOST_TEST((bob.models == std::vector<std::string>{"one", "two"}));
  // What is written is read as the same.
  const auto again = parse_keys(to_line(alice) + "\n" + to_line(bob), "file");
  BOOST_REQUIRE(again);
  BOOST_TEST(to_line(again->at(0)) == to_line(alice));
  BOOST_TEST(to_line(again->at(1)) == to_line(bob));
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_said_with_its_line) {
  const auto refuses = [](const std::string& line, const std::string& piece) {
    const auto keys = parse_keys("# first\n" + line + "\n", "api-keys");
    BOOST_TEST_CONTEXT(line) {
      BOOST_REQUIRE(!keys);
      BOOST_TEST((keys.error().kind == error_kind::bad_config));
      BOOST_TEST(keys.error().message.starts_with("api-keys:2: "));
      BOOST_TEST_CONTEXT(keys.error().message) BOOST_TEST(keys.error().message.find(piece) != std::string::npos);
      BOOST_TEST(keys.error().message.find("sk-skein") == std::string::npos);
    }
  };
  refuses("alice", "64 hexadecimal digits");
  refuses("alice sk-skein-abc", "64 hexadecimal digits");
  refuses("alice " + hash.substr(1), "64 hexadecimal digits");
  refuses("alice g" + hash.substr(1), "64 hexadecimal digits");
  refuses("al/ice " + hash, "name: may contain only letters");
  refuses(std::string(65, 'a') + ' ' + hash, "name: must have 1 to 64 characters");
  refuses("alice " + hash + " concurrent=0", "concurrent: must be a number from 1");
  refuses("alice " + hash + " concurrent=4294967296", "concurrent: must be a number from 1");
  refuses("alice " + hash + " concurrent=-1", "concurrent");
  refuses("alice " + hash + " tokens-per-minute=1e3", "tokens-per-minute: must be a number");
  refuses("alice " + hash + " tokens-per-minute=1000000000001", "tokens-per-minute: must be a number");
  refuses("alice " + hash + " models=", "models: must be names");
  refuses("alice " + hash + " models=a,,b", "models: must be names");
  refuses("alice " + hash + " models=a,", "models: must be names");
  refuses("alice " + hash + " tenant=", "tenant: must have 1 to 64 characters");
  refuses("alice " + hash + " admin=no", "unknown setting \"admin=no\"");
  refuses("alice " + hash + " concurent=1", "unknown setting \"concurent=1\"");

  const auto two = [](const std::string& a, const std::string& b) { return parse_keys(a + '\n' + b, "f").error(); };
  BOOST_TEST(two("a " + hash, "a " + to_hex(hash_of("x"))).message == "f:2: name: there are two keys named a");
  BOOST_TEST(two("a " + hash, "b " + hash).message == "f:2: hash: b has the same secret as another key");
}

BOOST_AUTO_TEST_CASE(random_bytes_are_an_error_or_keys) {
  std::uint64_t state = 1;
  for (int i = 0; i < 2000; ++i) {
    std::string text = "a " + hash + " concurrent=3 tenant=x models=a,b admin\n";
    for (int change = 0; change < 4; ++change) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      text[(state >> 33) % text.size()] = static_cast<char>(state >> 24);
    }
    const auto keys = parse_keys(text, "f");
    if (!keys) BOOST_TEST((keys.error().kind == error_kind::bad_config));
  }
}

BOOST_AUTO_TEST_CASE(new_secrets_differ_and_are_long) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const auto secret = new_secret();
    BOOST_REQUIRE(secret);
    BOOST_TEST(secret->starts_with("sk-skein-"));
    BOOST_TEST(secret->size() == 9u + 43u);
    seen.insert(*secret);
  }
  BOOST_TEST(seen.size() == 100u);
}

}  // namespace
