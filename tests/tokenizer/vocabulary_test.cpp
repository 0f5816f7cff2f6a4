// Encoding is greedy longest matching: compared with a slow encoder that tries every length, on random small
// vocabularies whose tokens overlap as much as possible. Decoding gives the text back, whatever the bytes. Properties
// of the vocabulary (hash, sizes, names) and the errors of files and of incomplete vocabularies.
#include "tokenizer/vocabulary.hpp"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/oracle.hpp"
#include "tests/support/random_cases.hpp"
#include "tests/tokenizer/world_lines.hpp"

namespace skein::tokenizer {
namespace {

BOOST_AUTO_TEST_SUITE(vocabulary_test)

using test::world_line;

std::shared_ptr<const vocabulary> parsed(const std::string& text) {
  return vocabulary::parse(text, "test.txt").value();
}

std::vector<token_id> encoded(const vocabulary& vocab, std::string_view text) {
  std::vector<token_id> ids;
  const std::size_t count = vocab.encode(text, ids).value();
  BOOST_TEST(count == ids.size());
  return ids;
}

std::string decoded(const vocabulary& vocab, const std::vector<token_id>& ids) {
  std::string text;
  for (const token_id id : ids) text += vocab.text(id);
  return text;
}

std::vector<token_id> slowly_encoded(const std::map<std::string, token_id>& tokens, const std::string& text) {
  std::vector<token_id> ids;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = text.size() - at;
    while (!tokens.contains(text.substr(at, length))) --length;
    ids.push_back(tokens.at(text.substr(at, length)));
    at += length;
  }
  return ids;
}

BOOST_AUTO_TEST_CASE(the_longest_token_wins) {
  const auto vocab = parsed("1 'a' 1\n2 'ab' 2\n3 'abcd' 4\n4 'b' 1\n5 'c' 1\n6 'é' 2\n");
  BOOST_TEST(encoded(*vocab, "") == std::vector<token_id>{});
  BOOST_TEST(encoded(*vocab, "abcd") == std::vector<token_id>{3});
  BOOST_TEST((encoded(*vocab, "abcab") == std::vector<token_id>{2, 5, 2}));  // abc leads on to abcd, but ends too early
  BOOST_TEST((encoded(*vocab, "aabc\xc3\xa9") == std::vector<token_id>{1, 2, 5, 6}));
}

BOOST_AUTO_TEST_CASE(encode_appends) {
  std::vector<token_id> ids{7};
  BOOST_TEST(vocabulary::bytes()->encode("ab", ids).value() == 2u);
  BOOST_TEST((ids == std::vector<token_id>{7, 'a', 'b'}));
}

BOOST_AUTO_TEST_CASE(agrees_with_a_slow_encoder_on_random_vocabularies) {
  test::random_cases random;
  for (int round = 0; round < 300; ++round) {
    const std::string alphabet = round % 2 ? std::string("ab") : std::string("\x00\x7f\xff", 3);
    std::map<std::string, token_id> tokens;
    for (const char c : alphabet) tokens.emplace(std::string(1, c), static_cast<token_id>(tokens.size() + 1));
    for (int i = 0; i < 40; ++i)
      tokens.emplace(random.text(1 + random.below(12), alphabet), static_cast<token_id>(tokens.size() + 1));
    std::string lines;
    for (const auto& [text, id] : tokens) lines += world_line(id, text);
    const auto vocab = parsed(lines);
    for (int i = 0; i < 20; ++i) {
      const std::string text = random.text(random.below(60), alphabet);
      BOOST_TEST_REQUIRE(encoded(*vocab, text) == slowly_encoded(tokens, text));
    }
  }
}

BOOST_AUTO_TEST_CASE(decode_of_encode_is_the_text) {
  test::random_cases random;
  const auto vocab = parsed(test::single_byte_lines() + "300 'the ' 4\n301 '\\n\\n' 2\n302 '\\u00e9\\xe8' 4\n");
  for (int i = 0; i < 200; ++i) {
    const std::string text = random.bytes(random.below(500));
    BOOST_TEST_REQUIRE(decoded(*vocab, encoded(*vocab, text)) == text);
    BOOST_TEST_REQUIRE(decoded(*vocabulary::bytes(), encoded(*vocabulary::bytes(), text)) == text);
  }
}

BOOST_AUTO_TEST_CASE(a_byte_without_token_is_an_error_with_its_offset) {
  const auto vocab = parsed("1 'a' 1\n2 'ab' 2\n3 'xyz' 3\n");
  for (const std::string text : {"abac", "abaxy"}) {
    std::vector<token_id> ids{9};
    const auto refused = vocab->encode(text, ids);
    BOOST_TEST_REQUIRE(refused.has_error());
    BOOST_TEST((refused.error().kind == error_kind::invalid_argument));
    BOOST_TEST(refused.error().message == "no token of test.txt begins with the byte at offset 3");
    BOOST_TEST(ids == std::vector<token_id>{9});
  }
}

BOOST_AUTO_TEST_CASE(properties_of_a_world_vocabulary) {
  const auto vocab = vocabulary::parse("3 'abc' 3\n\n9 'x' 1\n", "some/folder/v.txt").value();
  BOOST_TEST(vocab->name() == "v.txt");
  BOOST_TEST(!vocab->is_bytes());
  BOOST_TEST(vocab->size() == 10u);
  BOOST_TEST(vocab->longest_token() == 3u);
  BOOST_TEST(vocab->end() == end_of_text);
  BOOST_TEST(vocab->text(3) == "abc");
  for (const token_id without : {-2147483647 - 1, -1, 0, 1, 8, 10, 2147483647}) BOOST_TEST(vocab->text(without) == "");
}

BOOST_AUTO_TEST_CASE(properties_of_the_byte_vocabulary) {
  const auto vocab = vocabulary::bytes();
  BOOST_TEST(vocab->name() == "bytes");
  BOOST_TEST(vocab->is_bytes());
  BOOST_TEST(vocab->size() == 256u);
  BOOST_TEST(vocab->longest_token() == 1u);
  BOOST_TEST(vocab->end() == no_token);
  for (token_id id = 0; id < 256; ++id) BOOST_TEST(vocab->text(id) == std::string(1, static_cast<char>(id)));
  BOOST_TEST(vocab->text(256) == "");
}

BOOST_AUTO_TEST_CASE(the_hash_is_of_ids_and_bytes_only) {
  const std::string base = parsed("1 'a' 1\n2 'bc' 2\n")->hash();
  BOOST_TEST(base.size() == 32u);
  BOOST_TEST(base.find_first_not_of("0123456789abcdef") == std::string::npos);
  BOOST_TEST(parsed("2 b\"\\x62c\" 2\r\n\r\n1 '\\141' 1")->hash() == base);  // other spelling, order and line ends
  BOOST_TEST(parsed("1 'a' 1\n3 'bc' 2\n")->hash() != base);
  BOOST_TEST(parsed("1 'a' 1\n2 'bd' 2\n")->hash() != base);
  BOOST_TEST(parsed("1 'ab' 2\n2 'c' 1\n")->hash() != base);
  // Stored states name it, so it must never change.
  BOOST_TEST(base == "dc23dce80c3ab4277e8fff602a70ec16");
}

BOOST_AUTO_TEST_CASE(files) {
  const test::temporary_folder folder;
  const auto missing = vocabulary::load(folder.path() / "none.txt");
  BOOST_TEST((missing.error().kind == error_kind::missing_file));
  BOOST_TEST(missing.error().message.find("none.txt") != std::string::npos);
  BOOST_TEST((vocabulary::load(folder.path()).error().kind == error_kind::io));
  BOOST_TEST((vocabulary::load("/dev/zero").error().kind == error_kind::bad_file));

  const auto file = folder.path() / "v.txt";
  std::ofstream(file) << "1 'a' 1\n2 'b' 7\n";
  BOOST_TEST(vocabulary::load(file).error().message.find(file.string() + " line 2: ") == 0u);
  std::ofstream(file) << test::single_byte_lines();
  BOOST_TEST(vocabulary::load(file).value()->size() == 257u);
  BOOST_TEST(vocabulary::load(file).value()->name() == "v.txt");
}

BOOST_AUTO_TEST_CASE(a_byte_order_mark_is_no_part_of_the_file) {
  const std::string lines = test::single_byte_lines();
  const std::string mark = "\xef\xbb\xbf";
  BOOST_TEST(vocabulary::parse(mark + lines, "v.txt").value()->hash() == parsed(lines)->hash());
  BOOST_TEST(vocabulary::parse(mark + mark + lines, "v.txt").has_error());
  BOOST_TEST(vocabulary::parse(mark, "v.txt").error().message == "v.txt: no tokens");
}

BOOST_AUTO_TEST_CASE(a_file_in_which_a_byte_has_no_token_is_refused) {
  const test::temporary_folder folder;
  const auto file = folder.path() / "v.txt";
  for (const int missing : {0, 10, 228, 255}) {
    std::string lines = test::world_line(300, std::string(2, static_cast<char>(missing)));
    for (int byte = 0; byte < 256; ++byte)
      if (byte != missing) lines += test::world_line(byte + 1, std::string(1, static_cast<char>(byte)));
    std::ofstream(file) << lines;
    const auto refused = vocabulary::load(file);
    BOOST_TEST_REQUIRE(refused.has_error());
    BOOST_TEST((refused.error().kind == error_kind::bad_file));
    BOOST_TEST(refused.error().message.find(": byte " + std::to_string(missing) + " has no single-byte token") !=
               std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(long_texts) {
  test::random_cases random;
  const auto vocab = parsed(test::single_byte_lines() + "300 '" + std::string(64, 'a') + "' 64\n");
  const std::string noise = random.bytes(8 << 20);
  BOOST_TEST((decoded(*vocab, encoded(*vocab, noise)) == noise));
  const std::string run(8 << 20, 'a');
  BOOST_TEST(encoded(*vocab, run).size() == run.size() / 64);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace skein::tokenizer
