// Shows that states move beside the ticks on the GPU's engine: with a runner whose copies between device and host are
// done when the test says so, on the emulator.
#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "engine/gpu/gpu_engine.hpp"
#include "tests/engine/engine_fixture.hpp"
#include "tests/kernels/random_rwkv7.hpp"

namespace {

using namespace skein;
using namespace skein::engine;
using namespace skein::test;
using kernels::gpu::tick_runner;
using std::chrono_literals::operator""ms;

const std::vector<token_id> first_prompt = {3, 1, 4, 1, 5, 9};

/// Copies between device and host stand still until they may go on.
struct traffic {
  std::atomic<bool> moves{true};
  std::atomic<int> waited{0};  ///< for a state that stood still
};

class halted_runner final : public tick_runner {
 public:
  halted_runner(std::unique_ptr<tick_runner> runner, traffic& copies) : runner_(std::move(runner)), copies_(copies) {}
  const kernels::gpu::runner_sizes& sizes() const override { return runner_->sizes(); }
  result<void> start(slot_id slot, const kernels::gpu::sampler_start& p) override { return runner_->start(slot, p); }
  result<void> restart_sampler(slot_id slot, const kernels::gpu::sampler_start& p) override {
    return runner_->restart_sampler(slot, p);
  }
  result<void> copy_slot(slot_id from, slot_id to) override { return runner_->copy_slot(from, to); }
  result<void> force(std::span<const kernels::gpu::forced_run> runs) override { return runner_->force(runs); }
  result<void> launch(const kernels::gpu::tick& plan) override { return runner_->launch(plan); }
  bool ready() override { return runner_->ready(); }
  result<std::span<const kernels::gpu::row_outcome>> complete() override { return runner_->complete(); }
  result<void> begin_read(slot_id slot, std::uint32_t stage) override { return runner_->begin_read(slot, stage); }
  bool arrived(std::uint32_t stage) override { return copies_.moves && runner_->arrived(stage); }
  result<kernels::gpu::staged_state> end_read(std::uint32_t stage) override {
    copies_.waited += !copies_.moves;
    return runner_->end_read(stage);
  }
  result<kernels::gpu::staged_state> begin_write(std::uint32_t stage) override { return runner_->begin_write(stage); }
  result<void> send(std::uint32_t stage) override { return runner_->send(stage); }
  result<void> end_write(std::uint32_t stage, slot_id slot) override {
    copies_.waited += !copies_.moves;
    return runner_->end_write(stage, slot);
  }
  result<void> restore(std::uint32_t stage, slot_id slot, const kernels::gpu::sampler_start& p) override {
    return runner_->restore(stage, slot, p);
  }
  result<void> give_penalties(std::uint32_t stage, slot_id slot) override {
    return runner_->give_penalties(stage, slot);
  }
  result<kernels::gpu::sampled_token> sample(slot_id slot, std::span<const float> logits,
                                             std::span<const std::uint32_t> allowed) override {
    return runner_->sample(slot, logits, allowed);
  }
  result<void> settle() override { return runner_->settle(); }

 private:
  const std::unique_ptr<tick_runner> runner_;
  traffic& copies_;
};

std::unique_ptr<skein::engine::engine> make_halted(traffic& copies, std::uint32_t slots, dtype type = dtype::f32) {
  const kernels::model_dims dims{2, 64, 1, 64, 256, 100, 16, 16, 8, 24};
  const random_rwkv7 model(dims, dtype::f32, 16);
  kernels::gpu::gpu_options options;
  options.matrix_type = kernels::gpu::element::f32;
  options.state_type = type == dtype::f16 ? kernels::gpu::element::f16 : kernels::gpu::element::f32;
  options.limits.slots = slots;
  options.limits.max_tick_tokens = 128;
  options.limits.max_tick_rows = slots;
  auto runner = kernels::gpu::make_runner(model.weights(), options);
  BOOST_REQUIRE(runner.has_value());
  engine_info info;
  info.vocab = dims.vocab, info.slots = slots, info.max_tick_tokens = 128, info.max_tick_rows = slots;
  info.state = {layout_of(dims), type};
  return make_runner_engine(std::make_unique<halted_runner>(std::move(*runner), copies), std::move(info));
}

moved_states moved(skein::engine::engine& e) {
  const auto now = e.moved();
  BOOST_REQUIRE(now.has_value());
  return *now;
}

/// The limit only ends a test that would hang.
template <typename Holds>
void wait_until(Holds holds) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!holds()) {
    BOOST_REQUIRE(std::chrono::steady_clock::now() < limit);
    std::this_thread::sleep_for(1ms);
  }
}

void run_prompts(skein::engine::engine& e, slot_id slots) {
  tick_plan plan;
  for (slot_id s = 0; s < slots; ++s) {
    e.start(s, seeded(s, 1000));
    std::vector<token_id> own = first_prompt;
    own.push_back(static_cast<token_id>(s + 1));
    add_prefill(plan, s, own, true);
  }
  BOOST_REQUIRE(run_tick(e, plan).size() == slots);
}

tick_plan decodes(slot_id from, slot_id to) {
  tick_plan plan;
  for (slot_id s = from; s < to; ++s) add_decode(plan, s);
  return plan;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gpu_moves)

BOOST_AUTO_TEST_CASE(ticks_continue_while_states_leave) {
  traffic copies;
  constexpr slot_id slots = 4;
  const auto e = make_halted(copies, slots), other = make_halted(copies, slots);
  run_prompts(*e, slots);
  run_prompts(*other, slots);
  std::vector<model::state_value> before;
  for (slot_id s = 0; s < slots; ++s) before.push_back(value_of(*e, s));
  BOOST_REQUIRE_LE(slots, e->info().leaving_max);

  copies.moves = false;
  const std::uint64_t departed = moved(*e).departed;
  std::vector<parked_sequence> out(slots);
  for (slot_id s = 0; s < slots; ++s) e->park(s, out[s]);
  for (int tick = 0; tick < 5; ++tick) {
    const auto got = run_tick(*e, decodes(0, slots)), expected = run_tick(*other, decodes(0, slots));
    for (slot_id s = 0; s < slots; ++s) BOOST_TEST(got[s].token == expected[s].token);
  }
  BOOST_TEST(moved(*e).departed == departed);
  for (const auto& o : out) BOOST_TEST(o.state.empty());
  BOOST_TEST(copies.waited == 0);

  copies.moves = true;  // the engine is not called meanwhile
  wait_until([&] { return moved(*e).departed == departed + slots; });
  for (slot_id s = 0; s < slots; ++s) BOOST_TEST((out[s].state == before[s]));
}

// With all ticks in flight the worker looks after states too.
BOOST_AUTO_TEST_CASE(states_leave_while_all_ticks_are_in_flight) {
  traffic copies;
  const auto e = make_halted(copies, 2);
  run_prompts(*e, 2);
  parked_sequence out;
  e->park(0, out);
  BOOST_REQUIRE(e->submit(decodes(0, 2)).has_value());
  BOOST_REQUIRE(e->submit(decodes(0, 2)).has_value());
  wait_until([&] { return moved(*e).departed == 1; });
  BOOST_TEST(out.state.bytes.size() == e->info().state.bytes());
  BOOST_TEST(e->collect().has_value());
  BOOST_TEST(e->collect().has_value());
}

BOOST_AUTO_TEST_CASE(more_states_than_there_is_room_for_wait_for_the_first) {
  traffic copies;
  const slot_id slots = 12;  // of 8 stages
  const auto e = make_halted(copies, slots);
  run_prompts(*e, slots);
  std::vector<model::state_value> before;
  for (slot_id s = 0; s < slots; ++s) before.push_back(value_of(*e, s));
  BOOST_REQUIRE_LT(e->info().leaving_max + e->info().coming_max, slots);
  copies.moves = false;
  std::vector<parked_sequence> out(slots);
  for (slot_id s = 0; s < slots; ++s) e->park(s, out[s]);
  BOOST_REQUIRE(run_tick(*e, decodes(0, slots)).size() == slots);
  BOOST_TEST(copies.waited > 0);
  BOOST_REQUIRE(e->finish().has_value());
  for (slot_id s = 0; s < slots; ++s) BOOST_TEST((out[s].state == before[s]));
}

BOOST_AUTO_TEST_CASE(ticks_of_others_continue_while_a_state_arrives) {
  traffic copies;
  constexpr slot_id slots = 4;
  const auto e = make_halted(copies, slots), other = make_halted(copies, slots);
  run_prompts(*e, slots);
  run_prompts(*other, slots);
  parked_sequence parked;
  e->park(0, parked);
  BOOST_REQUIRE(e->finish().has_value());
  run_prompts(*e, slots);  // another sequence in slot 0

  copies.moves = false;
  const std::uint64_t arrived = moved(*e).arrived;
  e->unpark(0, seeded(0, 1000), parked);
  for (int tick = 0; tick < 4; ++tick) {
    const auto got = run_tick(*e, decodes(1, slots)), expected = run_tick(*other, decodes(1, slots));
    for (slot_id s = 0; s + 1 < slots; ++s) BOOST_TEST(got[s].token == expected[s].token);
  }
  BOOST_TEST(moved(*e).arrived == arrived);
  BOOST_TEST(copies.waited == 0);
  // What names its slot waits.
  BOOST_TEST(decode(*e, 0).token == decode(*other, 0).token);
  BOOST_TEST(copies.waited == 1);
  copies.moves = true;
  wait_until([&] { return moved(*e).arrived == arrived + 1; });
}

BOOST_AUTO_TEST_CASE(every_command_finds_a_state_that_comes) {
  traffic copies;
  const auto e = make_halted(copies, 4);
  run_prompts(*e, 2);
  const auto zero = value_of(*e, 0), one = value_of(*e, 1);
  copies.moves = false;
  e->write_state(2, one);
  e->copy_state(2, 3);
  BOOST_TEST((value_of(*e, 3) == one));
  e->write_state(2, zero);
  e->write_state(2, one);
  BOOST_TEST((value_of(*e, 2) == one));
  e->write_state(2, zero);
  e->start(2, seeded(2, 9));
  const auto fresh = value_of(*e, 2);
  BOOST_TEST((!(fresh == zero)));
  e->write_state(2, zero);
  e->clear(2);
  BOOST_TEST((value_of(*e, 2) == fresh));
  e->write_state(3, zero);
  e->copy_state(0, 3);
  e->write_state(0, one);
  BOOST_TEST((value_of(*e, 3) == zero));
  BOOST_TEST((value_of(*e, 0) == one));
}

// A state may be asked back before it has left.
BOOST_AUTO_TEST_CASE(a_state_that_leaves_may_be_asked_back_at_once) {
  traffic copies;
  const auto e = make_halted(copies, 3);
  run_prompts(*e, 2);
  const auto zero = value_of(*e, 0), one = value_of(*e, 1);
  copies.moves = false;
  model::state_value read{e->info().state, std::vector<std::byte>(e->info().state.bytes())};
  parked_sequence parked;
  e->park(0, parked);
  e->read_state(1, read);
  e->unpark(2, seeded(0, 9), parked);
  BOOST_TEST((value_of(*e, 2) == zero));
  e->write_state(2, read);  // before it has left: its memory is known
  BOOST_TEST((value_of(*e, 2) == one));
}

BOOST_AUTO_TEST_SUITE_END()
