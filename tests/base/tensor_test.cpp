// Number formats and strided copies: all 65536 patterns of both 16-bit formats go to fp32 and back, rounding goes to
// the nearest and to even between two, and views of any shape are read in row-major order from unaligned bytes.
#include "base/tensor.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace skein;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// The half with these bits, from its definition.
double half_value(std::uint16_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

bool is_nan_pattern(std::uint16_t bits, std::uint16_t exponent_mask) {
  return (bits & exponent_mask) == exponent_mask && (bits & 0x7fff & ~exponent_mask) != 0;
}

// Bytes of some values with an odd number of bytes before them.
template <typename T>
std::vector<std::byte> unaligned_bytes(const std::vector<T>& values) {
  std::vector<std::byte> bytes(1 + values.size() * sizeof(T));
  std::memcpy(bytes.data() + 1, values.data(), values.size() * sizeof(T));
  return bytes;
}

std::vector<float> copied(const tensor_view& view) {
  std::vector<float> out(static_cast<std::size_t>(view.elements()));
  copy_to_f32(view, out);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tensors)

BOOST_AUTO_TEST_CASE(every_half_goes_to_fp32_and_back) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float value = f16_to_f32(bits);
    if (is_nan_pattern(bits, 0x7c00)) {
      BOOST_REQUIRE(std::isnan(value));
      BOOST_REQUIRE(is_nan_pattern(f32_to_f16(value), 0x7c00));
      continue;
    }
    if ((bits & 0x7c00) != 0x7c00) BOOST_REQUIRE(value == half_value(bits));
    BOOST_REQUIRE_EQUAL(f32_to_f16(value), bits);
  }
  BOOST_TEST(f16_to_f32(0x7c00) == infinity);
  BOOST_TEST(f16_to_f32(0xfc00) == -infinity);
}

BOOST_AUTO_TEST_CASE(every_bfloat_goes_to_fp32_and_back) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float value = bf16_to_f32(bits);
    const std::uint32_t wide = i << 16;
    BOOST_REQUIRE(std::memcmp(&value, &wide, 4) == 0);
    if (is_nan_pattern(bits, 0x7f80))
      BOOST_REQUIRE(is_nan_pattern(f32_to_bf16(value), 0x7f80));
    else
      BOOST_REQUIRE_EQUAL(f32_to_bf16(value), bits);
  }
}

// Between each two neighbours: exactly half way goes to the even one, a hair beside it to the nearer one.
BOOST_AUTO_TEST_CASE(halves_round_to_nearest_even) {
  for (std::uint32_t i = 0; i < 0x7bff; ++i) {
    const auto low = static_cast<std::uint16_t>(i);
    const auto high = static_cast<std::uint16_t>(i + 1);
    const float middle = static_cast<float>((half_value(low) + half_value(high)) / 2);
    BOOST_REQUIRE_EQUAL(f32_to_f16(middle), i % 2 == 0 ? low : high);
    BOOST_REQUIRE_EQUAL(f32_to_f16(std::nextafter(middle, 0.0f)), low);
    BOOST_REQUIRE_EQUAL(f32_to_f16(std::nextafter(middle, infinity)), high);
    BOOST_REQUIRE_EQUAL(f32_to_f16(-middle), (i % 2 == 0 ? low : high) | 0x8000);
  }
}

BOOST_AUTO_TEST_CASE(bfloats_round_to_nearest_even) {
  for (std::uint32_t i = 0; i < 0x7f7f; ++i) {
    const auto low = static_cast<std::uint16_t>(i);
    const auto high = static_cast<std::uint16_t>(i + 1);
    const std::uint32_t middle_bits = (i << 16) | 0x8000u;
    float middle;
    std::memcpy(&middle, &middle_bits, 4);
    BOOST_REQUIRE_EQUAL(f32_to_bf16(middle), i % 2 == 0 ? low : high);
    BOOST_REQUIRE_EQUAL(f32_to_bf16(std::nextafter(middle, 0.0f)), low);
    BOOST_REQUIRE_EQUAL(f32_to_bf16(std::nextafter(middle, infinity)), high);
    BOOST_REQUIRE_EQUAL(f32_to_bf16(-middle), (i % 2 == 0 ? low : high) | 0x8000);
  }
}

BOOST_AUTO_TEST_CASE(ends_of_the_range) {
  BOOST_TEST(f32_to_f16(65504.0f) == 0x7bff);
  BOOST_TEST(f32_to_f16(65519.99f) == 0x7bff);
  BOOST_TEST(f32_to_f16(65520.0f) == 0x7c00);
  BOOST_TEST(f32_to_f16(-1e30f) == 0xfc00);
  BOOST_TEST(f32_to_f16(0x1p-25f) == 0x0000);
  BOOST_TEST(f32_to_f16(0x1.000002p-25f) == 0x0001);
  BOOST_TEST(f32_to_f16(-0.0f) == 0x8000);
  BOOST_TEST(f32_to_bf16(std::numeric_limits<float>::max()) == 0x7f80);
  BOOST_TEST(f32_to_bf16(-infinity) == 0xff80);
  BOOST_TEST(f32_to_bf16(-0.0f) == 0x8000);
}

BOOST_AUTO_TEST_CASE(row_major_views_of_each_floating_type) {
  const std::vector<float> expected{1.5f, -2, 0, 65504, 0.25f, -0.125f};
  std::vector<std::uint16_t> halves, bfloats;
  for (const float x : expected) halves.push_back(f32_to_f16(x));
  for (const float x : expected) bfloats.push_back(f32_to_bf16(x));
  auto rounded = expected;
  rounded[3] = 65536;  // 65504 has more bits than a bfloat
  const auto check_type = [](const std::vector<std::byte>& bytes, dtype type, const std::vector<float>& values) {
    BOOST_TEST(copied({bytes.data() + 1, type, {2, 3}, {3, 1}}) == values, boost::test_tools::per_element());
  };
  check_type(unaligned_bytes(expected), dtype::f32, expected);
  check_type(unaligned_bytes(std::vector<double>(expected.begin(), expected.end())), dtype::f64, expected);
  check_type(unaligned_bytes(halves), dtype::f16, expected);
  check_type(unaligned_bytes(bfloats), dtype::bf16, rounded);
}

BOOST_AUTO_TEST_CASE(strides_are_followed) {
  std::vector<float> numbers(24);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const auto bytes = unaligned_bytes(numbers);
  const std::byte* data = bytes.data() + 1;
  const auto check_view = [](const tensor_view& view, const std::vector<float>& values) {
    BOOST_TEST(copied(view) == values, boost::test_tools::per_element());
  };
  check_view({data, dtype::f32, {3, 2}, {1, 3}}, {0, 3, 1, 4, 2, 5});          // transposed
  check_view({data + 4, dtype::f32, {2, 3}, {12, 4}}, {1, 5, 9, 13, 17, 21});  // a column of each row
  check_view({data, dtype::f32, {2, 3}, {0, 1}}, {0, 1, 2, 0, 1, 2});          // one row for all
  check_view({data + 5 * 4, dtype::f32, {3}, {-2}}, {5, 3, 1});                // backwards
  check_view({data, dtype::f32, {2, 1, 2, 2}, {1, 99, 4, 2}}, {0, 2, 4, 6, 1, 3, 5, 7});
  check_view({data + 7 * 4, dtype::f32, {}, {}}, {7});  // a scalar
  check_view({data, dtype::f32, {2, 0, 3}, {1, 1, 1}}, {});
}

BOOST_AUTO_TEST_CASE(row_major_is_recognised) {
  const auto view = [](std::vector<std::int64_t> shape, std::vector<std::int64_t> stride) {
    return tensor_view{nullptr, dtype::f32, std::move(shape), std::move(stride)};
  };
  BOOST_TEST(view({2, 3}, {3, 1}).row_major());
  BOOST_TEST(view({2, 1, 3}, {3, 77, 1}).row_major());  // the stride of one element is never walked
  BOOST_TEST(view({}, {}).row_major());
  BOOST_TEST(!view({2, 3}, {1, 2}).row_major());
  BOOST_TEST(!view({2, 3}, {4, 1}).row_major());
  BOOST_TEST(view({4, 5, 6}, {30, 6, 1}).elements() == 120);
}

BOOST_AUTO_TEST_SUITE_END()
