// The 8-bit floats of fp8 weights: every code against the definition of the type, and the nearest code of every bf16
// number, of ties between neighbours and of what is beyond the largest.
#include "kernels/weights/e4m3.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "base/tensor.hpp"

using namespace skein;
using namespace skein::kernels;

namespace {

/// By the definition: sign, four bits of exponent with bias 7, three of mantissa.
double value_of(unsigned code) {
  const unsigned exponent = code >> 3 & 15, mantissa = code & 7;
  const double size =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, static_cast<int>(exponent) - 10);
  return (code & 128) != 0 ? -size : size;
}

/// The nearest of all codes, of two the even one; with the sign of the value.
unsigned nearest(double value) {
  unsigned best = 0;
  for (unsigned code = 1; code < 0x7f; ++code) {
    const double off = std::abs(std::abs(value) - value_of(code)), least = std::abs(std::abs(value) - value_of(best));
    if (off < least || (off == least && code % 2 == 0)) best = code;
  }
  return best | (std::signbit(value) ? 128 : 0);
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_code_has_its_value_and_comes_back) {
  for (unsigned code = 0; code < 256; ++code) {
    const float value = e4m3_to_f32(static_cast<std::uint8_t>(code));
    BOOST_TEST(is_nan_of_e4m3(static_cast<std::uint8_t>(code)) == ((code & 127) == 127));
    BOOST_TEST(f32_to_e4m3(value) == ((code & 127) == 127 ? 127u : code));
    if ((code & 127) == 127) {
      BOOST_TEST(std::isnan(value));
    } else {
      BOOST_TEST(static_cast<double>(value) == value_of(code));
      BOOST_TEST(std::signbit(value) == (code >= 128));
    }
  }
  BOOST_TEST(e4m3_to_f32(0x7e) == e4m3_max);
}

BOOST_AUTO_TEST_CASE(the_nearest_code_is_taken) {
  std::size_t wrong = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = bf16_to_f32(static_cast<std::uint16_t>(bits));
    if (std::isfinite(value)) wrong += f32_to_e4m3(value) != nearest(value);
  }
  BOOST_TEST(wrong == 0u);
}

BOOST_AUTO_TEST_CASE(ties_go_to_the_even_code) {
  for (unsigned code = 0; code < 0x7e; ++code)
    for (const float sign : {1.0f, -1.0f}) {
      const auto middle = static_cast<float>((value_of(code) + value_of(code + 1)) / 2);  // exact
      const unsigned sign_bit = sign < 0 ? 128 : 0;
      BOOST_TEST(f32_to_e4m3(sign * middle) == (code + code % 2) + sign_bit);
      BOOST_TEST(f32_to_e4m3(sign * std::nextafter(middle, 0.0f)) == code + sign_bit);
      BOOST_TEST(f32_to_e4m3(sign * std::nextafter(middle, 1000.0f)) == code + 1 + sign_bit);
    }
}

BOOST_AUTO_TEST_CASE(what_is_too_large_becomes_the_largest) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float value : {448.0f, 449.0f, 464.0f, 479.0f, 480.0f, 1e30f, infinity}) {
    BOOST_TEST(f32_to_e4m3(value) == 0x7e);
    BOOST_TEST(f32_to_e4m3(-value) == 0xfe);
  }
  BOOST_TEST(f32_to_e4m3(std::numeric_limits<float>::quiet_NaN()) == 0x7f);
  BOOST_TEST(f32_to_e4m3(1e-40f) == 0);
}
