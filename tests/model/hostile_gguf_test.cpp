// A GGUF file that lies about itself is refused with a reason: each row of the table is a file with one fault.
#include <boost/test/unit_test.hpp>

#include "model/files/checkpoint_limits.hpp"
#include "tests/model/gguf_builders.hpp"
#include "tests/model/opened.hpp"

namespace skein::test {
namespace {

constexpr std::uint64_t huge = ~std::uint64_t{0};

gguf_builder two_tensors() {
  gguf_builder file;
  file.pair("general.architecture", gguf::text("rwkv7"));
  file.tensor({"output_norm.weight", {4}, ggml_f32, std::string(16, '\0')});
  file.tensor({"output_norm.bias", {2, 2}, ggml_f16, std::string(8, '\0')});
  return file;
}

const std::string good_gguf = two_tensors().file();
// Offsets in the file.
constexpr std::size_t version_at = 4, tensors_at = 8, pairs_at = 16, key_at = 24, value_type_at = 24 + 8 + 20,
                      value_at = value_type_at + 4;
const std::size_t name_at = two_tensors().descriptions(), dimensions_at = two_tensors().dimensions_of(0),
                  extent_at = dimensions_at + 4, type_at = extent_at + 8, offset_at = type_at + 4,
                  second_at = two_tensors().dimensions_of(1), second_type_at = second_at + 4 + 16,
                  second_offset_at = second_type_at + 4;

std::string with_number(std::size_t offset, std::uint64_t value, int bytes) {
  return patched(good_gguf, offset, little_endian(value, bytes));
}

/// The file with another pair after the architecture.
std::string pair(std::string_view value, std::string_view key = "some.key") {
  return two_tensors().pair(key, value).file();
}

std::string quantised(std::uint32_t type, std::vector<std::uint64_t> shape, std::size_t bytes) {
  return gguf_builder()
      .pair("general.architecture", gguf::text("rwkv7"))
      .tensor({"output.weight", std::move(shape), type, std::string(bytes, '\0')})
      .file();
}

std::string many_tensors(std::uint32_t count) {
  gguf_builder file;
  file.pair("general.architecture", gguf::text("rwkv7")).alignment(1);
  for (std::uint32_t i = 0; i < count; ++i) file.tensor({"output.weight", {1}, ggml_f32, "1234"});
  return file.file();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hostile_gguf)

BOOST_AUTO_TEST_CASE(the_row_without_a_fault_opens) {
  const auto file = opened(good_gguf);
  BOOST_REQUIRE_MESSAGE(file, (file ? "" : file.error().message));
  BOOST_TEST(file->tensors().size() == 2u);
  BOOST_TEST(file->format() == "gguf");
}

BOOST_AUTO_TEST_CASE(faulty_headers_are_refused) {
  check_refused({
      {"only the magic number", "GGUF", "ends inside the GGUF header"},
      {"no counts", good_gguf.substr(0, 23), "ends inside the GGUF header"},
      {"another magic number", patched(good_gguf, 0, "GGUE"), "neither .pth nor .safetensors nor GGUF nor rwkv.cpp"},
      {"version 0", with_number(version_at, 0, 4), "version 0 is not supported"},
      {"version 1", with_number(version_at, 1, 4), "version 1 is not supported; accepted: 2, 3"},
      {"version 4", with_number(version_at, 4, 4), "version 4 is not supported"},
      {"version 2^32 - 1", with_number(version_at, huge, 4), "is not supported"},
      {"big-endian", with_number(version_at, 3u << 24, 4), "big-endian"},
      {"2^64 - 1 tensors", with_number(tensors_at, huge, 8), "more than 16384"},
      {"one tensor more than possible", with_number(tensors_at, model::max_tensors + 1, 8), "more than 16384"},
      {"more tensors than there are", with_number(tensors_at, 3, 8), ""},
      {"all tensors that are possible", with_number(tensors_at, model::max_tensors, 8), ""},
      {"no tensors", with_number(tensors_at, 0, 8), "no tensors"},
      {"2^64 - 1 pairs", with_number(pairs_at, huge, 8), "more than 4096"},
      {"more pairs than there are", with_number(pairs_at, 2, 8), "a tensor name is empty"},
      {"no pairs, so that a pair is read as a tensor", with_number(pairs_at, 0, 8), "overflows"},
  });
}

BOOST_AUTO_TEST_CASE(faulty_pairs_are_refused) {
  const std::string bomb = gguf::array(9, 1u << 20, "");
  check_refused({
      {"key of 2^64 - 1 bytes", with_number(key_at, huge, 8), "extends beyond the file"},
      {"key of 2^63 bytes", with_number(key_at, std::uint64_t{1} << 63, 8), "extends beyond the file"},
      {"key one byte longer than the file", with_number(key_at, good_gguf.size() - key_at - 7, 8),
       "extends beyond the file"},
      {"empty key", pair(gguf::number(1), ""), "key is empty or too long"},
      {"long key", pair(gguf::number(1), std::string(model::max_tensor_name_bytes + 1, 'k')),
       "key is empty or too long"},
      {"key not UTF-8", pair(gguf::number(1), "a\xff"), "key 'a\\xff' is not UTF-8"},
      {"key twice", pair(gguf::text("rwkv6"), "general.architecture"), "'general.architecture' appears twice"},
      {"unknown type", with_number(value_type_at, 13, 4), "unknown type 13"},
      {"type 2^32 - 1", with_number(value_type_at, huge, 4), "unknown type 4294967295"},
      {"text of 2^64 - 1 bytes", with_number(value_at, huge, 8), "extends beyond the file"},
      {"text up to the end of the address space", with_number(value_at, huge - value_at, 8), "extends beyond the file"},
      {"array of 2^64 - 1 numbers", pair(gguf::array(4, huge, "")), "extends beyond the file"},
      {"array whose bytes wrap to 0", pair(gguf::array(10, std::uint64_t{1} << 61, "")), "extends beyond the file"},
      {"array of 2^64 - 1 texts", pair(gguf::array(8, huge, "")), ""},
      {"array of empty texts without end", pair(gguf::array(8, 1u << 30, std::string(1 << 16, '\0'))), ""},
      {"array of arrays", pair(bomb), "array of arrays"},
      {"array of an unknown type", pair(gguf::array(99, 1, "1234")), "unknown type 99"},
      {"architecture that is a number", two_tensors().file().replace(value_type_at, 4, little_endian(10, 4)), ""},
      {"alignment 0", pair(gguf::number(0), "general.alignment"), "not a power of two"},
      {"alignment 24", pair(gguf::number(24), "general.alignment"), "not a power of two"},
      {"alignment 2^31", pair(gguf::number(1u << 31), "general.alignment"), "not a power of two"},
      {"alignment that is a text", pair(gguf::text("32"), "general.alignment"), "not a power of two"},
      {"negative alignment", pair(little_endian(5, 4) + little_endian(huge, 4), "general.alignment"),
       "not a power of two"},
      {"alignment beyond the file", pair(gguf::number(1u << 20), "general.alignment"), "extend beyond the file"},
  });
}

BOOST_AUTO_TEST_CASE(faulty_tensors_are_refused) {
  const std::string long_name(model::max_tensor_name_bytes + 1, 'n');
  const auto named = [](std::string name) { return two_tensors().tensor({std::move(name), {1}, 0, "1234"}).file(); };
  check_refused({
      {"name of 2^64 - 1 bytes", with_number(name_at, huge, 8), "extends beyond the file"},
      {"empty name", named(""), "name is empty or too long"},
      {"long name", named(long_name), "name is empty or too long"},
      {"name not UTF-8", named("\xc0\xaf"), "is not UTF-8"},
      {"name with terminal codes", named("\x1b[2J"), "'\\x1b[2J' is unknown"},
      {"name twice", named("output_norm.bias"), "appears twice"},
      {"unknown name", named("rope_freqs.weight"), "'rope_freqs.weight' is unknown in architecture rwkv7"},
      {"layer number too large", named("blk.99999999999.attn_norm.weight"), "is unknown"},
      {"no dimensions", with_number(dimensions_at, 0, 4), "has 0 dimensions"},
      {"nine dimensions", with_number(dimensions_at, 9, 4), "has 9 dimensions; accepted: 1 to 8"},
      {"2^32 - 1 dimensions", with_number(dimensions_at, huge, 4), "dimensions; accepted"},
      {"dimension 0", with_number(extent_at, 0, 8), "a dimension is 0"},
      {"dimension 2^64 - 1", with_number(extent_at, huge, 8), "overflows"},
      {"dimension 2^62", with_number(extent_at, std::uint64_t{1} << 62, 8), "overflows"},
      {"dimension 2^60", with_number(extent_at, std::uint64_t{1} << 60, 8), "extend beyond the file"},
      {"product wraps to 4",
       patched(with_number(second_at + 4, 2, 8), second_at + 12, little_endian((huge >> 1) + 3, 8)), "overflows"},
      {"product wraps to 0",
       patched(with_number(second_at + 4, 1u << 31, 8), second_at + 12, little_endian(std::uint64_t{1} << 33, 8)),
       "overflows"},
      {"type unknown", with_number(type_at, 77, 4), "type number 77 is not supported"},
      {"type 2^32 - 1", with_number(type_at, huge, 4), "type number 4294967295 is not supported"},
      {"type known, not supported", with_number(type_at, 20, 4), "type IQ4_NL is not supported; accepted: F32"},
      {"integers", with_number(type_at, 26, 4), "type I32 is not supported"},
      {"row shorter than a block", with_number(type_at, ggml_q8_0, 4), "a row of 4 values is not divisible by the 32"},
      {"row of one and a half blocks", quantised(ggml_q4_0, {2, 48}, 54), "a row of 48 values"},
      {"row of 32 in blocks of 256", quantised(ggml_q4_k, {8, 32}, 144), "not divisible by the 256"},
      {"half a block of data", quantised(ggml_q4_0, {1, 32}, 9), "extend beyond the file"},
      {"half a block of Q6_K", quantised(ggml_q6_k, {256}, 105), "extend beyond the file"},
      {"offset beyond the file", with_number(second_offset_at, 64, 8), "gap"},
      {"offset 2^63", with_number(second_offset_at, std::uint64_t{1} << 63, 8), "gap"},
      {"offset that wraps to 0", with_number(second_offset_at, huge - 31, 8), "gap"},
      {"offset not aligned", with_number(second_offset_at, 33, 8), "not a multiple of the alignment 32"},
      {"all on one place", with_number(second_offset_at, 0, 8), "overlaps another"},
      {"overlap", patched(with_number(extent_at, 9, 8), extent_at, little_endian(9, 8)), "overlaps another"},
      {"gap at the start", with_number(offset_at, 64, 8), "gap"},
      {"last tensor too large", with_number(second_at + 4, 3, 8), "extend beyond the file"},
      {"more tensors than possible", many_tensors(model::max_tensors + 1), "more than 16384"},
      {"ten thousand times the same name", many_tensors(10000), "'head.weight' appears twice"},
  });
}

BOOST_AUTO_TEST_CASE(every_cut_is_refused) {
  const gguf_model_form form{.matrix = ggml_q8_0, .head_size = 4};
  auto model = gguf_model_of(gguf_plan_of(random_rwkv7({1, 32, 8, 4, 32, 3, 1, 1, 1, 1}), form), form, 1, 32, 32);
  add_vocabulary(model, {"a", R"(\x00)"}, 2);
  for (const std::string& file : {good_gguf, model.file()}) {
    BOOST_REQUIRE(opened(file));
    for (std::size_t length = 1; length < file.size(); ++length)
      BOOST_TEST_CONTEXT("cut to " << length << " of " << file.size() << " bytes")
    check_refused({{"cut", file.substr(0, length), ""}});
  }
}

BOOST_AUTO_TEST_CASE(bytes_after_the_last_tensor_are_ignored) {
  BOOST_TEST(!!opened(good_gguf + std::string(100, 'x')));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::test
