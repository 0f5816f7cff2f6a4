// How many slots a model gets and when it is refused, by plans whose parts grow with the slots as those of engines do.
#include "actors/supervisor/models/load_admission.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

using namespace skein;
using namespace skein::supervisor;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

memory_plan plan_of(std::uint32_t slots) {
  return {.weight_bytes = 100 * mib,
          .activation_bytes = 10 * mib + slots * mib / 4,
          .workspace_bytes = 5 * mib,
          .slot_bytes = 2 * mib,
          .slots = slots};
}
const memory_planner plan = [](std::uint32_t slots) -> result<memory_plan> { return plan_of(slots); };

}  // namespace

BOOST_AUTO_TEST_SUITE(load_admission)

BOOST_AUTO_TEST_CASE(a_plan_larger_than_what_is_left_is_refused_and_no_other) {
  const memory_plan needed = plan_of(4);
  BOOST_TEST(needed.bytes() == 124 * mib);
  BOOST_TEST(!!admit(needed, {.left = needed.bytes(), .taken = 7}));
  const auto refused = admit(needed, {.left = needed.bytes() - 1, .taken = 7});
  BOOST_REQUIRE(!refused.has_value());
  BOOST_CHECK(refused.error().kind == error_kind::no_memory);
  BOOST_TEST(refused.error().message ==
             "the model needs about 130023424 bytes, but only 130023423 are free; loaded models use 7, unload them "
             "first (weights 104857600, activations 11534336, workspace 5242880, 4 slots of 2097152)");
}

BOOST_AUTO_TEST_CASE(what_is_left_is_the_device_s_or_the_ceiling_s) {
  BOOST_TEST(room_beside(0, 100, 0).left == 100u);
  BOOST_TEST(room_beside(30, 100, 0).left == 100u);  // what is free is free beside what is loaded
  BOOST_TEST(room_beside(30, 100, 90).left == 60u);
  BOOST_TEST(room_beside(30, 50, 90).left == 50u);
  BOOST_TEST(room_beside(95, 100, 90).left == 0u);
  BOOST_TEST(room_beside(95, 100, 90).taken == 95u);
}

BOOST_AUTO_TEST_CASE(a_cpu_gets_what_fits_a_quarter_of_the_free_memory) {
  BOOST_TEST(*default_slots(plan, 80 * mib, 1000 * mib) == 10u);
  BOOST_TEST(*default_slots(plan, 10'000 * mib, 10'000 * mib) == 64u);
  BOOST_TEST(*default_slots(plan, 0, 1000 * mib) == 1u);
  // Free, but not beside the weights: 150 MiB less 115 and a quarter a slot.
  BOOST_TEST(*default_slots(plan, 1000 * mib, 150 * mib) == 15u);
  BOOST_TEST(*default_slots(plan, 1000 * mib, 10 * mib) == 1u);
}

BOOST_AUTO_TEST_CASE(a_gpu_gets_nine_tenths_of_what_all_else_leaves) {
  BOOST_TEST(*default_gpu_slots(plan, 10'000 * mib) == 256u);
  BOOST_TEST(*default_gpu_slots(plan, 0) == 1u);
  for (const std::size_t left : {130 * mib, 200 * mib, 300 * mib, 500 * mib}) {
    const std::uint32_t slots = *default_gpu_slots(plan, left);
    const auto fits = [&](std::uint32_t n) {
      return plan_of(n).bytes_of_slots() <= (left - plan_of(n).fixed_bytes()) / 10 * 9;
    };
    BOOST_TEST((fits(slots) && !fits(slots + 1)), slots << " slots in " << left);
    BOOST_TEST(!!admit(plan_of(slots), {.left = left}));
  }
}

BOOST_AUTO_TEST_CASE(buffers_shrink_until_the_plan_fits) {
  const auto choices = smaller_and_smaller({2048, 256 * mib}, 300);
  BOOST_CHECK((choices ==
               std::array<buffer_sizes, 4>{{{2048, 256 * mib}, {1024, 128 * mib}, {512, 64 * mib}, {300, 32 * mib}}}));
  const auto sized = [](const buffer_sizes& sizes) -> result<memory_plan> {
    return memory_plan{.activation_bytes = sizes.tick_tokens * mib, .workspace_bytes = sizes.moving_bytes};
  };
  BOOST_CHECK((*first_that_fits(choices, sized, 10'000 * mib) == choices[0]));
  BOOST_CHECK((*first_that_fits(choices, sized, 2304 * mib) == choices[0]));
  BOOST_CHECK((*first_that_fits(choices, sized, 2303 * mib) == choices[1]));
  BOOST_CHECK((*first_that_fits(choices, sized, 600 * mib) == choices[2]));
  BOOST_CHECK((*first_that_fits(choices, sized, 0) == choices[3]));
}

BOOST_AUTO_TEST_CASE(a_plan_that_cannot_be_made_is_told) {
  const memory_planner broken = [](std::uint32_t) -> result<memory_plan> {
    return error{error_kind::unsupported, "no such type", "dtype"};
  };
  BOOST_CHECK(default_slots(broken, mib, mib).error().kind == error_kind::unsupported);
  BOOST_CHECK(default_gpu_slots(broken, mib).error().field == "dtype");
  const auto unsized = [&](const buffer_sizes&) { return broken(1); };
  BOOST_CHECK(first_that_fits(smaller_and_smaller({1, 1}, 1), unsized, mib).error().field == "dtype");
}

BOOST_AUTO_TEST_SUITE_END()
