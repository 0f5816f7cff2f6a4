// Elements of a checkpoint become weights: every type into every format, on every Highway target, as the scalar
// conversions of base/tensor have it, bit for bit; wherever the elements lie, and nothing behind the last one.
#include "kernels/cpu/matrix_format.hpp"

#include <algorithm>
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "tests/kernels/every_target.hpp"
#include "tests/kernels/random_rwkv7.hpp"

using namespace skein;
using namespace skein::kernels::cpu;

namespace {

/// Ordinary numbers and every kind of edge: signed zeros, subnormals of both formats, ties, infinities, NaN.
std::vector<float> floats_of_all_kinds() {
  std::vector<float> values;
  for (std::uint32_t high = 0; high < 0x10000; high += 7)
    for (const std::uint32_t low : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x3000u, 0x7fffu, 0x8000u, 0x8001u})
      values.push_back(std::bit_cast<float>(high << 16 | low));
  for (std::uint32_t exponent = 100; exponent < 115; ++exponent)  // where halves become subnormal and zero
    for (std::uint32_t mantissa = 0; mantissa < 0x800000; mantissa += 0xfff)
      values.push_back(std::bit_cast<float>(exponent << 23 | mantissa));
  return values;
}

std::vector<std::uint16_t> rounded(const std::vector<float>& values, matrix_format format) {
  std::vector<std::uint16_t> bits(values.size());
  const element_line line{reinterpret_cast<const std::byte*>(values.data()), dtype::f32, sizeof(float), values.size()};
  copy_elements(line, format, reinterpret_cast<std::byte*>(bits.data()));
  return bits;
}

}  // namespace

BOOST_AUTO_TEST_CASE(rounding_equals_the_scalar_functions) {
  const std::vector<float> values = floats_of_all_kinds();
  test::for_every_target([&] {
    const auto bf16 = rounded(values, matrix_format::bf16), f16 = rounded(values, matrix_format::f16);
    for (std::size_t i = 0; i < values.size(); ++i) {
      BOOST_REQUIRE_EQUAL(bf16[i], f32_to_bf16(values[i]));
      BOOST_REQUIRE_EQUAL(f16[i], f32_to_f16(values[i]));
    }
  });
}

BOOST_AUTO_TEST_CASE(values_beyond_the_range_of_a_format_are_told) {
  const auto fits = [](float value, matrix_format format, std::size_t at, std::size_t count) {
    std::vector<float> values(count, 1.0f);
    values[at] = value;
    std::vector<std::byte> out(count * element_bytes(format));
    return copy_elements({reinterpret_cast<const std::byte*>(values.data()), dtype::f32, sizeof(float), count}, format,
                         out.data());
  };
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float of_bf16 = std::bit_cast<float>(0x7f7f8000u);  // the least that is rounded to infinity
  test::for_every_target([&] {
    for (const auto& [at, count] : {std::pair<std::size_t, std::size_t>{0, 1}, {2, 3}, {299, 300}, {255, 700}})
      for (const float sign : {1.0f, -1.0f}) {
        BOOST_TEST(fits(sign * 65519.99f, matrix_format::f16, at, count));
        BOOST_TEST(!fits(sign * 65520.0f, matrix_format::f16, at, count));
        BOOST_TEST(fits(sign * std::nextafter(of_bf16, 0.0f), matrix_format::bf16, at, count));
        BOOST_TEST(!fits(sign * of_bf16, matrix_format::bf16, at, count));
        for (const auto format : {matrix_format::f32, matrix_format::bf16, matrix_format::f16})
          BOOST_TEST((fits(sign * infinity, format, at, count) && fits(nan, format, at, count)));  // not made here
      }
  });
}

BOOST_AUTO_TEST_CASE(any_type_goes_into_any_format_from_any_place) {
  constexpr std::byte guard{0xa5};
  for (const dtype type : {dtype::f32, dtype::bf16, dtype::f16, dtype::f64})
    for (const dtype kept : {dtype::f32, dtype::bf16, dtype::f16})
      for (const std::size_t count : {0u, 1u, 5u, 16u, 31u, 256u, 259u, 700u})
        for (const std::size_t step : {1u, 3u})
          BOOST_TEST_CONTEXT(to_string(type) << " to " << to_string(kept) << ", " << count << " by " << step) {
            std::vector<float> values(count * step);
            test::random_numbers random(count);
            for (float& value : values) value = random.value();
            std::vector<std::byte> source = test::encode(values, type);
            source.insert(source.begin(), std::byte{});  // one byte off any alignment
            const std::size_t bytes = dtype_bytes(type), kept_bytes = dtype_bytes(kept);
            std::vector<std::byte> out(count * kept_bytes + 8, guard);
            copy_elements({source.data() + 1, type, static_cast<std::ptrdiff_t>(step * bytes), count},
                          *format_for(kept), out.data());

            std::vector<float> exact(values.size()), picked;
            copy_to_f32({source.data() + 1, type, {static_cast<std::int64_t>(values.size())}, {1}}, exact);
            for (std::size_t i = 0; i < count; ++i) picked.push_back(exact[i * step]);
            const std::vector<std::byte> expected = test::encode(picked, kept);
            BOOST_TEST(std::equal(expected.begin(), expected.end(), out.begin()));
            for (std::size_t i = expected.size(); i < out.size(); ++i) BOOST_TEST((out[i] == guard));
          }
}
