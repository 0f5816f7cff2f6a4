// Shows that an fp16 state of the GPU's engine keeps its bits on every way of a session: out of its slot, into RAM, to
// the disk, through a restart and into a slot of another engine, where its sequence continues as if it had stayed.
#include <boost/test/unit_test.hpp>

#include "actors/persistence/states/tiered_cache.hpp"
#include "storage/states/state_store.hpp"
#include "tests/engine/engine_fixture.hpp"
#include "tests/storage/random_records.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;
using namespace skein::test;

namespace {

const std::vector<token_id> prompt = {5, 17, 3, 3, 42, 11};
constexpr engine_sizes sizes{.slots = 2, .max_tick_tokens = 80, .max_tick_rows = 2};

std::unique_ptr<skein::engine::engine> make_engine(dtype states) {
  return make_gpu_fp16(sizes, states == dtype::f16 ? kernels::gpu::element::f16 : kernels::gpu::element::f32);
}

std::shared_ptr<const engine::parked_sequence> parked_after_prompt(skein::engine::engine& e) {
  e.start(0, seeded(1, 100));
  static_cast<void>(prefill(e, 0, prompt, true));
  const auto parked = std::make_shared<engine::parked_sequence>();
  e.park(0, *parked);
  BOOST_REQUIRE(e.finish().has_value());
  return parked;
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_fp16_state_keeps_its_bits_through_ram_disk_and_restart) {
  const auto first = make_engine(dtype::f16), second = make_engine(dtype::f16);
  const model::state_format format = first->info().state;
  const auto parked = parked_after_prompt(*first);
  const storage::state_buffer state(parked, &parked->state);

  persistence::tiered_cache cache(persistence::tier_limits{});
  cache.put({7, 1}, state, {default_tenant, prompt.size(), "random"}, true, {}, 0);
  BOOST_TEST(cache.count().ram_bytes == format.floats() * 2);
  const auto lent = cache.lend({7, 1}, 1);
  BOOST_TEST((*lent == *state));

  const temporary_folder folder;
  {
    storage::state_store states(opened(folder.path()), format, "random", std::nullopt);
    BOOST_REQUIRE(states.put({"random", default_tenant, {7, 1}, prompt.size()}, *lent).has_value());
    BOOST_TEST(states.list().value().front().bytes < format.floats() * 2 + 1000);
  }
  storage::state_store states(opened(folder.path()), format, "random", std::nullopt);
  const auto loaded = states.get({7, 1}).value().value();
  BOOST_TEST((loaded.state == *state));

  engine::parked_sequence resumed = *parked;
  resumed.state = loaded.state;
  second->unpark(1, seeded(1, 100), resumed);
  BOOST_TEST((value_of(*second, 1) == value_of(*first, 0)));
  for (int i = 0; i < 5; ++i) BOOST_TEST(decode(*second, 1).token == decode(*first, 0).token);
  BOOST_TEST((value_of(*second, 1) == value_of(*first, 0)));
}

BOOST_AUTO_TEST_CASE(a_state_of_an_fp32_engine_is_loaded_into_an_fp16_engine_and_back) {
  const auto wide = make_engine(dtype::f32), narrow = make_engine(dtype::f16);
  const auto parked = parked_after_prompt(*wide);
  const auto db = opened();
  storage::state_store of_wide(db, wide->info().state, "random", std::nullopt);
  storage::state_store of_narrow(db, narrow->info().state, "random", std::nullopt);
  BOOST_REQUIRE(of_wide.put({"random", default_tenant, {7, 1}, 6}, parked->state).has_value());
  const auto loaded = of_narrow.get({7, 1}).value().value().state;
  BOOST_TEST((loaded.format == narrow->info().state));
  narrow->write_state(1, loaded);
  BOOST_TEST((value_of(*narrow, 1) == loaded));
  BOOST_TEST((loaded == converted(parked->state, narrow->info().state)));

  BOOST_REQUIRE(of_narrow.put({"random", default_tenant, {7, 2}, 6}, loaded).has_value());
  const auto back = of_wide.get({7, 2}).value().value().state;
  wide->write_state(1, back);
  BOOST_TEST((value_of(*wide, 1) == converted(loaded, wide->info().state)));
}
