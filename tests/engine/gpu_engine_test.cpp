// Shows what is the GPU engine's own: replayed decode ticks give the bits of launched ones whatever their size, states
// leave and arrive while ticks run, nothing is taken in a steady state, and what is lost or missing is said.
#include "engine/gpu/gpu_engine.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>

#include "kernels/gpu/runtime/stream.hpp"
#include "tests/engine/counted_new.hpp"
#include "tests/engine/engine_fixture.hpp"
#include "tests/kernels/random_rwkv7.hpp"

namespace {

using namespace skein;
using namespace skein::engine;
using namespace skein::test;

std::unique_ptr<skein::engine::engine> make_gpu(const engine_sizes& sizes) {
  return engines_under_test().back().make(sizes);
}

std::vector<token_id> prompt_of(slot_id slot) {
  std::vector<token_id> tokens = six_tokens;
  tokens[slot % tokens.size()] = static_cast<token_id>(slot);
  return tokens;
}

void start_all(skein::engine::engine& e, slot_id slots) {
  tick_plan plan;
  for (slot_id s = 0; s < slots; ++s) {
    e.start(s, seeded(s, 100));
    add_prefill(plan, s, prompt_of(s), true);
  }
  BOOST_REQUIRE(run_tick(e, plan).size() == slots);
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

__global__ void lose_a_thread() {
  if (threadIdx.x > 0) kernels::gpu::__syncthreads();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gpu_engine)

// Sizes on both sides of the recorded ones. Asking for logits keeps a tick from being replayed.
BOOST_AUTO_TEST_CASE(a_replayed_tick_is_a_launched_tick) {
  constexpr slot_id slots = 13;
  const engine_sizes sizes{.slots = slots, .max_tick_tokens = 80, .max_tick_rows = slots};
  for (const slot_id rows : {1u, 2u, 3u, 4u, 5u, 8u, 9u, 12u, 13u}) {
    const auto replayed = make_gpu(sizes), launched = make_gpu(sizes);
    start_all(*replayed, slots);
    start_all(*launched, slots);
    tick_plan plan;
    for (slot_id i = 0; i < rows; ++i) add_decode(plan, (i * 5 + 2) % slots);
    tick_plan with_logits = plan;
    with_logits.rows.back().logits = logits_wanted::last;
    for (int tick = 0; tick < 2; ++tick) {
      const auto got = run_tick(*replayed, plan), expected = run_tick(*launched, with_logits);
      for (slot_id i = 0; i < rows; ++i) BOOST_TEST(got[i].token == expected[i].token);
    }
    for (slot_id s = 0; s < slots; ++s)
      BOOST_TEST(same_bits(state_of(*replayed, s), state_of(*launched, s)), "slot " << s << " of " << rows << " rows");
  }
}

// A frozen row runs in an unused slot: the other slots and the frozen one keep their states.
BOOST_AUTO_TEST_CASE(a_frozen_row_touches_nothing) {
  const auto e = make_gpu({.slots = 4, .max_tick_tokens = 32, .max_tick_rows = 4});
  tick_plan plan;
  for (slot_id s = 0; s < 4; ++s) {
    e->start(s, greedy(s % 2 == 0 ? 1 : 9));  // two stop at once
    add_prefill(plan, s, prompt_of(s), true);
  }
  BOOST_REQUIRE(run_tick(*e, plan).size() == 4u);
  const auto frozen = state_of(*e, 0), running = state_of(*e, 1);
  plan.clear();
  for (slot_id s = 0; s < 4; ++s) add_decode(plan, s);
  const auto rows = run_tick(*e, plan);
  BOOST_TEST(rows[0].frozen);
  BOOST_TEST(!rows[0].sampled);
  BOOST_TEST(rows[1].sampled);
  BOOST_TEST(same_bits(state_of(*e, 0), frozen));
  BOOST_TEST(!same_bits(state_of(*e, 1), running));
  const auto alone = generate_alone(*e, 1, prompt_of(1), greedy(9), 3);
  BOOST_TEST(rows[1].token == alone.tokens[1]);
}

// More states on their way than there are stages for, while ticks are in flight.
BOOST_AUTO_TEST_CASE(many_states_travel_at_once) {
  constexpr slot_id slots = 12;
  const auto e = make_gpu({.slots = slots, .max_tick_tokens = 80, .max_tick_rows = slots});
  start_all(*e, slots);
  std::vector<model::state_value> before;
  for (slot_id s = 0; s < slots; ++s) before.push_back(value_of(*e, s));
  tick_plan plan;
  for (slot_id s = 0; s < slots; ++s) add_decode(plan, s);
  const auto expected = run_tick(*e, plan);
  start_all(*e, slots);

  std::vector<parked_sequence> parked(slots);
  std::vector<model::state_value> read(slots);
  for (slot_id s = 0; s < slots; ++s) {
    e->park(s, parked[s]);
    e->read_state(s, read[s]);
  }
  BOOST_REQUIRE(e->submit(plan).has_value());
  for (slot_id s = 0; s < slots; ++s) e->unpark((s + 5) % slots, seeded(s, 100), parked[s]);
  BOOST_REQUIRE(e->submit(plan).has_value());
  const auto first = e->collect();
  BOOST_REQUIRE(first.has_value());
  BOOST_REQUIRE(e->finish().has_value());  // the tick does not wait for the states that leave
  for (slot_id s = 0; s < slots; ++s) {
    BOOST_TEST((parked[s].state == before[s]));
    BOOST_TEST((read[s] == before[s]));
    BOOST_TEST((*first)->rows[s].token == expected[s].token);
  }
  const auto second = e->collect();
  BOOST_REQUIRE(second.has_value());
  for (slot_id s = 0; s < slots; ++s) BOOST_TEST((*second)->rows[(s + 5) % slots].token == expected[s].token);
}

// The emulator's own memory is not counted: a device would take none.
BOOST_AUTO_TEST_CASE(steady_ticks_take_no_memory) {
  const auto e = make_gpu({.slots = 4, .max_tick_tokens = 32, .max_tick_rows = 4});
  start_all(*e, 4);
  tick_plan decodes, mixed;
  for (slot_id s = 0; s < 4; ++s) add_decode(decodes, s);
  for (slot_id s = 0; s < 3; ++s) add_decode(mixed, s);
  add_prefill(mixed, 3, six_tokens, true);
  const auto run_ticks = [&](int count) {
    for (int i = 0; i < count; ++i)
      if (!e->submit(mixed) || !e->submit(decodes) || !e->collect() || !e->collect()) return false;
    return true;
  };
  BOOST_REQUIRE(run_ticks(4));
  const std::uint64_t before = allocation_count(), on_device = kernels::gpu::emulator::device_allocations();
  BOOST_TEST(run_ticks(10));
  BOOST_TEST(allocation_count() - before == 0u);
  BOOST_TEST(kernels::gpu::emulator::device_allocations() - on_device == 0u);
}

BOOST_AUTO_TEST_CASE(says_what_it_has_taken) {
  const auto small = make_gpu({.slots = 1, .max_tick_tokens = 8, .max_tick_rows = 1});
  const auto large = make_gpu({.slots = 8, .max_tick_tokens = 80, .max_tick_rows = 8});
  BOOST_TEST(small->info().memory.weight_bytes > 0u);
  BOOST_TEST(small->info().memory.weight_bytes == large->info().memory.weight_bytes);
  BOOST_TEST(small->info().memory.activation_bytes < large->info().memory.activation_bytes);
  BOOST_TEST(small->info().memory.workspace_bytes > 0u);
  BOOST_TEST(small->info().memory.slot_bytes > small->info().state.bytes());
}

BOOST_AUTO_TEST_CASE(memory_that_is_not_there_is_named) {
  const kernels::model_dims dims{2, 64, 1, 64, 256, 100, 16, 16, 8, 24};
  const random_rwkv7 model(dims, dtype::f32, 16);
  kernels::gpu::gpu_options options;
  options.limits.slots = 1u << 26;
  const auto no_room = kernels::gpu::make_runner(model.weights(), options);
  BOOST_REQUIRE(!no_room.has_value());
  BOOST_CHECK(no_room.error().kind == error_kind::unavailable);
  for (const char* part : {" bytes for the states of the slots", "out of memory", " bytes of device memory are free"})
    BOOST_TEST(no_room.error().message.find(part) != std::string::npos, no_room.error().message);

  options = {};
  options.device = 1;
  const auto no_device = kernels::gpu::make_runner(model.weights(), options);
  BOOST_REQUIRE(!no_device.has_value());
  BOOST_CHECK(no_device.error().kind == error_kind::unavailable);
}

// Trouble in any kernel ends the device for all; every later call gives the first trouble's words.
BOOST_AUTO_TEST_CASE(a_lost_device_stays_lost) {
  const kernels::model_dims dims{2, 64, 1, 64, 256, 100, 16, 16, 8, 24};
  const random_rwkv7 model(dims, dtype::f32, 16);
  const auto runner = kernels::gpu::make_runner(model.weights(), {});
  BOOST_REQUIRE(runner.has_value());
  const std::vector<kernels::gpu::tick_row> rows(1, {.slot = 0, .tokens = 6});
  BOOST_REQUIRE((*runner)->launch({rows, six_tokens}).has_value());
  BOOST_REQUIRE((*runner)->complete().has_value());
  {
    const kernels::gpu::stream other;
    BOOST_REQUIRE(kernels::gpu::launch({"lose_a_thread", {1}, {64}, 0, other}, lose_a_thread).has_value());
    BOOST_TEST(!other.synchronize().has_value());
  }
  BOOST_TEST((*runner)->launch({rows, six_tokens}).has_value());  // not known yet
  const auto lost = (*runner)->complete();
  kernels::gpu::emulator::clear_error();
  BOOST_REQUIRE(!lost.has_value());
  BOOST_TEST(lost.error().message.find("lose_a_thread") != std::string::npos, lost.error().message);
  const auto next = (*runner)->launch({rows, six_tokens});
  BOOST_REQUIRE(!next.has_value());
  BOOST_TEST(next.error().message == lost.error().message);
  BOOST_TEST(!(*runner)->settle().has_value());
}

BOOST_AUTO_TEST_SUITE_END()
