// Shows that sha256 computes FIPS 180-4: the standard's examples, and lengths around the edges of its 64-byte blocks
// (digests of n times 'a' computed with coreutils sha256sum).
#include "base/sha256.hpp"

#include <boost/test/unit_test.hpp>
#include <string>
#include <string_view>

namespace {

std::string digest_of(std::string_view text) {
  return skein::to_hex(skein::sha256({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sha256)

BOOST_AUTO_TEST_CASE(examples_of_the_standard) {
  BOOST_TEST(digest_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  BOOST_TEST(digest_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  BOOST_TEST(digest_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
             "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  BOOST_TEST(digest_of(std::string(1'000'000, 'a')) ==
             "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

BOOST_AUTO_TEST_CASE(lengths_around_a_block) {
  BOOST_TEST(digest_of(std::string(55, 'a')) == "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  BOOST_TEST(digest_of(std::string(56, 'a')) == "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  BOOST_TEST(digest_of(std::string(63, 'a')) == "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34");
  BOOST_TEST(digest_of(std::string(64, 'a')) == "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
  BOOST_TEST(digest_of(std::string(65, 'a')) == "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0");
  BOOST_TEST(digest_of(std::string(119, 'a')) == "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb");
  BOOST_TEST(digest_of(std::string(120, 'a')) == "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c");
}

// RFC 4231, cases 1, 2, 4 and 6; the last key is longer than a block.
BOOST_AUTO_TEST_CASE(keyed_digests_of_the_standard) {
  const auto keyed = [](const std::string& key, std::string_view text) {
    const auto bytes = [](std::string_view t) {
      return std::span(reinterpret_cast<const std::uint8_t*>(t.data()), t.size());
    };
    return skein::to_hex(skein::hmac_sha256(bytes(key), bytes(text)));
  };
  BOOST_TEST(keyed(std::string(20, '\x0b'), "Hi There") ==
             "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  BOOST_TEST(keyed("Jefe", "what do ya want for nothing?") ==
             "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  std::string counting;
  for (char c = 1; c <= 25; ++c) counting.push_back(c);
  BOOST_TEST(keyed(counting, std::string(50, '\xcd')) ==
             "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  BOOST_TEST(keyed(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First") ==
             "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

BOOST_AUTO_TEST_SUITE_END()
