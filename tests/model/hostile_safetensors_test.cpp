// A safetensors file that lies about itself is refused with a reason: each row of the table is a file with one fault.
#include <boost/test/unit_test.hpp>

#include "model/files/checkpoint_limits.hpp"
#include "tests/model/checkpoint_builders.hpp"
#include "tests/model/opened.hpp"

namespace skein::test {
namespace {

/// One tensor "a" of four fp32, with a key of its entry replaced.
std::string one(std::string_view type, std::string_view shape, std::string_view offsets, std::size_t data_bytes = 16) {
  return safetensors_file("{\"a\":{\"dtype\":" + std::string(type) + ",\"shape\":" + std::string(shape) +
                              ",\"data_offsets\":" + std::string(offsets) + "}}",
                          std::string(data_bytes, '\0'));
}

std::string raw(std::string_view header, std::size_t data_bytes = 16) {
  return safetensors_file(header, std::string(data_bytes, '\0'));
}

std::string tensor_json(std::string_view name, int begin, int end) {
  return "\"" + std::string(name) + "\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(end - begin) +
         "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
}

std::string many(std::size_t count, bool same_name) {
  std::string header = "{";
  for (std::size_t i = 0; i < count; ++i)
    header += (i == 0 ? "" : ",") +
              tensor_json(same_name ? "same" : std::to_string(i), static_cast<int>(i), static_cast<int>(i) + 1);
  return raw(header + "}", count);
}

const std::string good_safetensors = one("\"F32\"", "[2,2]", "[0,16]");

}  // namespace

BOOST_AUTO_TEST_SUITE(hostile_safetensors)

BOOST_AUTO_TEST_CASE(the_row_without_a_fault_opens) {
  const auto file = opened(good_safetensors);
  BOOST_REQUIRE(file);
  BOOST_TEST(file->tensors().size() == 1u);
  BOOST_TEST(file->format() == "safetensors");
}

BOOST_AUTO_TEST_CASE(faulty_headers_are_refused) {
  check_refused({
      {"not fetched by Git LFS", "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 3\n", "git lfs pull"},
      {"shorter than the length", "abc", "neither .pth nor .safetensors nor GGUF nor rwkv.cpp"},
      {"no format known", "<!DOCTYPE html>\n", "neither .pth nor .safetensors nor GGUF nor rwkv.cpp"},
      {"length 2^63", patched(good_safetensors, 0, little_endian(std::uint64_t{1} << 63, 8)), "too long"},
      {"length 2^64 - 1", patched(good_safetensors, 0, little_endian(~std::uint64_t{0}, 8)), "too long"},
      {"length above the ceiling", patched(good_safetensors, 0, little_endian(model::max_header_bytes + 1, 8)),
       "too long"},
      {"length beyond the file", patched(good_safetensors, 0, little_endian(good_safetensors.size(), 8)),
       "ends inside its header"},
      {"length cuts the header", patched(good_safetensors, 0, little_endian(20, 8)), "expected '\"'"},
      {"length 0", patched(good_safetensors, 0, little_endian(0, 8)), "expected '{'"},
      {"header not UTF-8", raw("{\"\xff\xfe\":1}"), "not UTF-8"},
      {"overlong UTF-8", raw("{\"\xc0\xaf\":1}"), "not UTF-8"},
      {"a list", raw("{[]}"), "expected '\"'"},
      {"deep nesting", raw("{\"a\":" + std::string(1u << 20, '[')), "expected '{'"},
      {"deep nesting in metadata", raw("{\"__metadata__\":" + std::string(1u << 20, '{')), "expected '\"'"},
      {"deep nesting in shape", one("\"F32\"", std::string(1u << 20, '['), "[0,16]"), "non-negative integer"},
      {"metadata that is no text", raw("{\"__metadata__\":{\"a\":1}}"), "expected '\"'"},
      {"no end", raw("{" + tensor_json("a", 0, 16)), "expected '}'"},
      {"a comma too many", raw("{" + tensor_json("a", 0, 16) + ",}"), "expected '\"'"},
      {"two values", raw("{" + tensor_json("a", 0, 16) + "}{}"), "after the end of the header"},
      {"control character", raw("{\"a\nb\":{}}"), "control character"},
      {"unknown escape", raw("{\"\\x41\":{}}"), "unknown escape"},
      {"half a surrogate pair", raw("{\"\\ud800x\":{}}"), "surrogate"},
      {"surrogates in wrong order", raw("{\"\\udc00\\ud800\":{}}"), "surrogate"},
      {"bad hexadecimal digits", raw("{\"\\u12g4\":{}}"), "hexadecimal"},
      {"string without end", raw("{\"abc"), "ends inside a string"},
      {"no tensors", raw("{}", 0), "no tensors"},
      {"only metadata", raw("{\"__metadata__\":{\"format\":\"pt\"}}", 0), "no tensors"},
  });
}

BOOST_AUTO_TEST_CASE(faulty_tensors_are_refused) {
  const std::string long_name(model::max_tensor_name_bytes + 1, 'n');
  check_refused({
      {"type unknown", one("\"F8_E4M3\"", "[2,2]", "[0,16]"), "unknown element type 'F8_E4M3'"},
      {"type that is no text", one("7", "[2,2]", "[0,16]"), "expected '\"'"},
      {"type with terminal codes", one("\"\\u001b[2J\"", "[2,2]", "[0,16]"), "'\\x1b[2J'"},
      {"dimension 0", one("\"F32\"", "[0,4]", "[0,0]", 0), "a dimension is 0"},
      {"negative dimension", one("\"F32\"", "[-2,-2]", "[0,16]"), "non-negative integer"},
      {"fractional dimension", one("\"F32\"", "[2.5,2]", "[0,16]"), "expected ']'"},
      {"dimension in exponent form", one("\"F32\"", "[2e0,2]", "[0,16]"), "expected ']'"},
      {"dimension with leading zero", one("\"F32\"", "[02,2]", "[0,16]"), "leading zero"},
      {"dimension of 2^64", one("\"F32\"", "[18446744073709551616]", "[0,16]"), "exceeds 64 bits"},
      {"product wraps to 16 bytes", one("\"F32\"", "[4611686018427387905,4]", "[0,16]"), "overflows"},
      {"product wraps to 0", one("\"F32\"", "[4294967296,4294967296]", "[0,0]", 0), "overflows"},
      {"nine dimensions", one("\"F32\"", "[1,1,1,1,1,1,1,2,2]", "[0,16]"), "more than 8 numbers"},
      {"shape too large", one("\"F32\"", "[2,3]", "[0,16]"), "need 24 bytes, data_offsets give 16"},
      {"shape too small", one("\"F32\"", "[2]", "[0,16]"), "need 8 bytes, data_offsets give 16"},
      {"length no multiple of the type", one("\"F32\"", "[2,2]", "[0,15]", 15), "data_offsets give 15"},
      {"offsets reversed", one("\"F32\"", "[2,2]", "[16,0]"), "end before they begin"},
      {"offsets beyond the file", one("\"F32\"", "[2,2]", "[16,32]"), "beyond the file"},
      {"offsets of 2^64 - 1", one("\"U8\"", "[16]", "[18446744073709551599,18446744073709551615]"), "beyond the file"},
      {"one offset", one("\"F32\"", "[2,2]", "[16]"), "is not a pair"},
      {"three offsets", one("\"F32\"", "[2,2]", "[0,8,16]"), "more than 2 numbers"},
      {"no offsets", raw("{\"a\":{\"dtype\":\"F32\",\"shape\":[4]}}"), "has no dtype"},
      {"key twice", raw("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}"), "appears twice"},
      {"unknown key", raw("{\"a\":{\"device\":\"cpu\"}}"), "unknown key 'device'"},
      {"tensor that is no object", raw("{\"a\":[1]}"), "expected '{'"},
      {"name twice", raw("{" + tensor_json("a", 0, 8) + "," + tensor_json("a", 8, 16) + "}"), "'a' appears twice"},
      {"name twice, once escaped", raw("{" + tensor_json("a", 0, 8) + "," + tensor_json("\\u0061", 8, 16) + "}"),
       "'a' appears twice"},
      {"empty name", raw("{" + tensor_json("", 0, 16) + "}"), "name is empty"},
      {"long name", raw("{" + tensor_json(long_name, 0, 16) + "}"), "too long"},
      {"overlap", raw("{" + tensor_json("a", 0, 9) + "," + tensor_json("b", 8, 16) + "}"), "'b' overlaps"},
      {"all on one place", raw("{" + tensor_json("a", 0, 16) + "," + tensor_json("b", 0, 16) + "}"), "overlaps"},
      {"gap", raw("{" + tensor_json("a", 0, 8) + "," + tensor_json("b", 9, 16) + "}"), "gap"},
      {"gap at the start", raw("{" + tensor_json("a", 8, 16) + "}"), "gap"},
      {"bytes behind the last tensor", raw("{" + tensor_json("a", 0, 8) + "}"), "cover 8 of 16"},
      {"ten thousand times the same name", many(10000, true), "'same' appears twice"},
      {"more tensors than possible", many(model::max_tensors + 1, false), "more than 16384 tensors"},
  });
}

BOOST_AUTO_TEST_CASE(an_escaped_name_is_read_as_json_means_it) {
  const auto file = opened(raw("{" + tensor_json("\\u0061\\t\\u00e4\\u20ac\\ud83d\\ude00", 0, 16) + "}"));
  BOOST_REQUIRE(file);
  BOOST_TEST((file->find("a\t\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80") != nullptr));
}

BOOST_AUTO_TEST_CASE(a_tensor_may_start_at_any_byte) {
  const auto file = opened(
      safetensors_file("{" + tensor_json("a", 0, 1) + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
                       std::string("\x07\x00\x00\x80\x3f", 5)));
  BOOST_REQUIRE(file);
  float value = 0;
  copy_to_f32(*file->find("b"), {&value, 1});
  BOOST_TEST(value == 1.0f);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::test
