// Shows that a state keeps the types of its arrays: sizes by version and type, and conversions in which only fp32 to
// fp16 changes a number.
#include "model/state_value.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace skein::model {
namespace {

constexpr state_layout with_heads{.layers = 2, .embd = 8, .heads = 2, .head_size = 4};
constexpr state_layout version_4{.layers = 2, .embd = 8, .channels = 8};

/// Random bits of every kind: NaNs, infinities and subnormal numbers among them.
state_value random_bits(const state_format& format, unsigned seed) {
  std::mt19937 random(seed);
  state_value state{format, std::vector<std::byte>(format.bytes())};
  for (std::byte& b : state.bytes) b = static_cast<std::byte>(random());
  return state;
}

}  // namespace

BOOST_AUTO_TEST_CASE(fp16_states_take_half_the_bytes) {
  BOOST_TEST(state_format(with_heads).bytes() == with_heads.floats() * 4);
  BOOST_TEST(state_format(with_heads, dtype::f16).bytes() == with_heads.floats() * 2);
  BOOST_TEST((state_format(with_heads) != state_format(with_heads, dtype::f16)));
}

BOOST_AUTO_TEST_CASE(the_memory_of_version_4_stays_in_fp32) {
  const state_format format(version_4, dtype::f16);
  BOOST_TEST((format.shifts == dtype::f16));
  BOOST_TEST((format.memory == dtype::f32));
  BOOST_TEST(format.bytes() == 2u * (2 * 8 * 2 + 3 * 8 * 4));
  for (const auto& array : version_4.arrays())
    BOOST_TEST((format.type_of(array) == (array.name.ends_with("x_prev") ? dtype::f16 : dtype::f32)), array.name);

  std::vector<float> floats(version_4.floats(), 0.3f);
  floats[version_4.wkv(1) + 2 * 8] = -1e38f;  // an exponent, as in the initial state
  const auto back = floats_of(state_of(format, floats));
  for (std::uint32_t layer = 0; layer < 2; ++layer) {
    BOOST_TEST(back[version_4.att_x_prev(layer)] != 0.3f);  // rounded
    BOOST_TEST(std::abs(back[version_4.ffn_x_prev(layer)] - 0.3f) < 1e-3f);
    BOOST_TEST(back[version_4.wkv(layer)] == 0.3f);
  }
  BOOST_TEST(back[version_4.wkv(1) + 2 * 8] == -1e38f);
}

BOOST_AUTO_TEST_CASE(equal_formats_are_copied_bit_for_bit) {
  for (const auto& layout : {with_heads, version_4})
    for (const dtype type : {dtype::f32, dtype::f16}) {
      const state_value state = random_bits({layout, type}, 5);
      BOOST_TEST((converted(state, state.format) == state));
    }
}

BOOST_AUTO_TEST_CASE(fp16_goes_through_fp32_and_back_without_a_change) {
  for (const auto& layout : {with_heads, version_4}) {
    const state_format narrow(layout, dtype::f16);
    std::mt19937 random(3);
    std::uniform_real_distribution<float> value(-9.0f, 9.0f);
    std::vector<float> floats(layout.floats());
    for (float& f : floats) f = value(random);
    const state_value state = state_of(narrow, floats);
    BOOST_TEST((converted(converted(state, layout), narrow) == state));
  }
}

BOOST_AUTO_TEST_CASE(fp32_to_fp16_rounds_and_stays_finite) {
  std::vector<float> floats(with_heads.floats(), 0.5f);
  floats[0] = 1e9f, floats[1] = -std::numeric_limits<float>::infinity(), floats[2] = 1.0004f, floats[3] = -0.0f;
  const auto got = floats_of(state_of({with_heads, dtype::f16}, floats));
  BOOST_TEST(got[0] == 65504.0f);
  BOOST_TEST(got[1] == -65504.0f);
  BOOST_TEST(got[2] == 1.0f);
  BOOST_TEST(std::signbit(got[3]));
  BOOST_TEST(got.back() == 0.5f);
}

}  // namespace skein::model
