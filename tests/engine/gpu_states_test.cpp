// Shows that states leave a GPU and come back in the types of its slots: fp16 states bit for bit, in half the bytes,
// and that states of other types are converted once on the way in.
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <limits>
#include <random>

#include "kernels/gpu/tick/tick_runner.hpp"
#include "tests/engine/engine_fixture.hpp"
#include "tests/kernels/random_weights.hpp"

namespace {

using namespace skein;
using namespace skein::engine;
using namespace skein::test;
using kernels::gpu::element;

constexpr engine_sizes sizes{.slots = 4, .max_tick_tokens = 80, .max_tick_rows = 4};

std::unique_ptr<skein::engine::engine> make_engine(dtype states) {
  return make_gpu_fp16(sizes, states == dtype::f16 ? element::f16 : element::f32);
}

model::state_value random_bits(const model::state_format& format, unsigned seed) {
  std::mt19937 random(seed);
  model::state_value state{format, std::vector<std::byte>(format.bytes())};
  for (std::byte& b : state.bytes) b = static_cast<std::byte>(random());
  return state;
}

parked_sequence parked_after(skein::engine::engine& e, std::span<const token_id> tokens) {
  e.start(0, seeded(1, 100));
  static_cast<void>(prefill(e, 0, tokens, true));
  parked_sequence parked;
  e.park(0, parked);
  BOOST_REQUIRE(e.finish().has_value());
  return parked;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gpu_states)

BOOST_AUTO_TEST_CASE(fp16_states_travel_in_half_the_bytes) {
  const auto narrow = make_engine(dtype::f16), wide = make_engine(dtype::f32);
  BOOST_TEST(narrow->info().state.bytes() * 2 == wide->info().state.bytes());
  BOOST_TEST(narrow->info().state.bytes() == narrow->info().state.floats() * 2);
  const auto half = parked_after(*narrow, six_tokens), whole = parked_after(*wide, six_tokens);
  BOOST_TEST(half.state.bytes.size() == narrow->info().state.bytes());
  BOOST_TEST(half.state.bytes.size() * 2 == whole.state.bytes.size());
  BOOST_TEST((half.state.format == narrow->info().state));
  BOOST_TEST(half.state.bytes.capacity() < whole.state.bytes.size());
}

// Any bits: NaNs with payloads, infinities, subnormal numbers and both zeros, through staging, slot and back, twice.
BOOST_AUTO_TEST_CASE(every_bit_comes_back) {
  for (const dtype type : {dtype::f16, dtype::f32}) {
    const auto e = make_engine(type);
    const auto state = random_bits(e->info().state, 7);
    for (slot_id s = 0; s < sizes.slots; ++s) e->start(s, greedy(3));
    e->write_state(1, state);
    BOOST_TEST((value_of(*e, 1) == state));
    parked_sequence parked;
    e->park(1, parked);
    e->unpark(3, greedy(3), parked);
    e->copy_state(3, 2);
    BOOST_TEST((value_of(*e, 2) == state));
    BOOST_TEST((parked.state == state));
  }
}

BOOST_AUTO_TEST_CASE(a_parked_fp16_sequence_continues_as_if_it_had_stayed) {
  const auto stays = make_engine(dtype::f16), leaves = make_engine(dtype::f16), other = make_engine(dtype::f16);
  stays->start(0, seeded(1, 100));
  static_cast<void>(prefill(*stays, 0, six_tokens, true));
  const auto parked = parked_after(*leaves, six_tokens);
  other->unpark(2, seeded(1, 100), parked);
  for (int i = 0; i < 6; ++i) BOOST_TEST(decode(*other, 2).token == decode(*stays, 0).token);
  BOOST_TEST((value_of(*other, 2) == value_of(*stays, 0)));
}

BOOST_AUTO_TEST_CASE(a_state_of_the_other_type_is_converted) {
  const auto narrow = make_engine(dtype::f16), wide = make_engine(dtype::f32);
  auto from_wide = parked_after(*wide, six_tokens);
  const auto from_narrow = parked_after(*narrow, six_tokens);
  model::floats_in(from_wide.state)[5] = 1e9f;  // beyond fp16
  model::floats_in(from_wide.state)[6] = -std::numeric_limits<float>::infinity();

  narrow->unpark(1, seeded(1, 100), from_wide);
  const auto narrowed = value_of(*narrow, 1);
  BOOST_TEST((narrowed == converted(from_wide.state, narrow->info().state)));
  BOOST_TEST(floats_of(narrowed)[5] == 65504.0f);
  BOOST_TEST(floats_of(narrowed)[6] == -65504.0f);
  wide->write_state(1, from_narrow.state);
  const auto widened = value_of(*wide, 1);
  BOOST_TEST((widened == converted(from_narrow.state, wide->info().state)));
  narrow->write_state(2, widened);  // no bit is lost on the way through fp32
  BOOST_TEST((value_of(*narrow, 2) == from_narrow.state));
}

// Shifts in the type of the states, the memory always in fp32.
BOOST_AUTO_TEST_CASE(each_part_of_a_state_of_version_4_keeps_its_type) {
  const random_weights model(random_weights::version::v4, {.layers = 2, .embd = 64, .ffn = 256, .vocab = 100},
                             dtype::f16, 3);
  for (const dtype type : {dtype::f16, dtype::f32}) {
    kernels::gpu::gpu_options options;
    options.matrix_type = element::f16;
    options.state_type = type == dtype::f16 ? element::f16 : element::f32;
    options.limits.slots = 3;
    options.limits.max_tick_tokens = options.limits.max_tick_rows = 16;
    auto runner = kernels::gpu::make_runner(model.weights(), options);
    BOOST_REQUIRE(runner.has_value());
    const model::state_format format(layout_of(model.dims()), type);
    BOOST_TEST((*runner)->sizes().state_bytes == format.bytes());
    const auto stage = (*runner)->begin_write(0);
    BOOST_REQUIRE(stage.has_value());
    BOOST_TEST(stage->state.size() == format.bytes());

    const auto state = random_bits(format, 11);
    std::ranges::copy(state.bytes, stage->state.begin());
    BOOST_REQUIRE((*runner)->send(0).has_value());
    BOOST_REQUIRE((*runner)->end_write(0, 1).has_value());
    BOOST_REQUIRE((*runner)->copy_slot(1, 2).has_value());
    BOOST_REQUIRE((*runner)->begin_read(2, 1).has_value());
    const auto read = (*runner)->end_read(1);
    BOOST_REQUIRE(read.has_value());
    BOOST_TEST(std::memcmp(read->state.data(), state.bytes.data(), format.bytes()) == 0);
  }
}

BOOST_AUTO_TEST_SUITE_END()
