// Shows that decode ticks take no memory once the engine is warm: every operator new of the process is counted while
// two ticks are kept in flight.
#include <boost/test/unit_test.hpp>

#include "tests/engine/counted_new.hpp"
#include "tests/engine/engine_fixture.hpp"

BOOST_AUTO_TEST_CASE(decode_ticks_take_no_memory) {
  using namespace skein::test;
  const std::vector<skein::token_id> prompt = {3, 1, 4, 1, 5};
  for (const engine_under_test& line : engines_under_test()) {
    if (line.name == "toy" || line.name == "reference" || line.emulated) continue;  // made to be plain, not to be lean
    BOOST_TEST_CONTEXT(line.name) {
      const auto e = line.make({});
      skein::engine::tick_plan plan;
      for (skein::slot_id s = 0; s < 4; ++s) {
        e->start(s, seeded(s, 1000));
        add_prefill(plan, s, prompt, true);
      }
      BOOST_REQUIRE(run_tick(*e, plan).size() == 4u);
      plan.clear();
      for (skein::slot_id s = 0; s < 4; ++s) add_decode(plan, s);
      BOOST_REQUIRE(e->submit(plan).has_value());
      const auto run_ticks = [&](int count) {
        for (int i = 0; i < count; ++i)
          if (!e->submit(plan) || !e->collect()) return false;
        return true;
      };
      BOOST_REQUIRE(run_ticks(20));
      const std::uint64_t before = allocation_count();
      const bool all_ran = run_ticks(200);
      const std::uint64_t taken = allocation_count() - before;
      BOOST_TEST(all_ran);
      BOOST_TEST(taken == 0u);
    }
  }
}
