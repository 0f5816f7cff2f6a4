// The decoder of ggml's quantised blocks gives the values of the formats' descriptions, for random bytes.
#include <boost/test/unit_test.hpp>

#include "model/files/ggml_tensors.hpp"
#include "tests/model/gguf_builders.hpp"

namespace skein::test {

BOOST_AUTO_TEST_SUITE(ggml_block_decoding)

BOOST_AUTO_TEST_CASE(every_value_of_random_blocks_is_the_described_one) {
  for (const auto& block : ggml_blocks()) {
    BOOST_TEST_CONTEXT(block.name) {
      const auto* const type = model::find_ggml_type(block.type);
      BOOST_REQUIRE(type);
      BOOST_TEST(type->name == block.name);
      BOOST_TEST(type->values == block.values);
      BOOST_TEST(type->bytes == block.bytes);
      constexpr std::size_t blocks = 500;
      const std::string bytes = random_blocks(block, blocks, 1);
      std::vector<float> got(blocks * block.values);
      model::decode_blocks(*type, std::as_bytes(std::span(bytes)), got);
      BOOST_TEST(got == block_values(block, bytes), boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(types_are_named) {
  BOOST_TEST(model::find_ggml_type("Q4_K") == model::find_ggml_type(12u));
  BOOST_TEST(!model::find_ggml_type(20u));
  BOOST_TEST(model::ggml_type_name(20) == "IQ4_NL");
  BOOST_TEST(model::ggml_type_name(12) == "Q4_K");
  BOOST_TEST(model::ggml_type_name(1234) == "number 1234");
  BOOST_TEST(model::ggml_types_accepted().starts_with("F32, F16, Q4_0, "));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::test
