// Which device of a model gets a request: the rules of device_policy.hpp one by one, and that model_devices counts the
// sequences on each device for as long as they have their places.
#include "actors/request/devices/device_policy.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "actors/request/devices/model_devices.hpp"

namespace {

using namespace skein;
using namespace skein::request;

constexpr std::nullopt_t no_holder = std::nullopt;

/// Devices of four slots, with that many sequences; a negative number: the device is lost.
std::vector<device_load> loads(const std::vector<int>& sequences) {
  std::vector<device_load> all;
  for (const int n : sequences) all.push_back({n >= 0, 4, static_cast<std::uint32_t>(std::max(n, 0))});
  return all;
}

device_id choice(const std::vector<int>& sequences, std::optional<device_id> holder, device_id last) {
  return choose_device(loads(sequences), holder, last);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_only_device_gets_every_request) {
  for (const int n : {0, 4, 9, -1}) {
    BOOST_TEST(choice({n}, no_holder, 0) == 0u);
    BOOST_TEST(choice({n}, 0, 0) == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_session_stays_where_its_state_is) {
  BOOST_TEST(choice({0, 3, 0}, 1, 2) == 1u);  // although others are idle
  BOOST_TEST(choice({7, 4, 5}, 1, 2) == 1u);  // it would wait everywhere
}

BOOST_AUTO_TEST_CASE(a_session_leaves_a_device_on_which_it_would_wait) {
  BOOST_TEST(choice({3, 4, 2}, 1, 0) == 2u);
  BOOST_TEST(choice({3, 6, 5}, 1, 0) == 0u);
}

BOOST_AUTO_TEST_CASE(otherwise_the_device_with_the_fewest_sequences_is_chosen) {
  for (device_id last = 0; last < 3; ++last) {
    BOOST_TEST(choice({2, 1, 3}, no_holder, last) == 1u);
    BOOST_TEST(choice({9, 8, 7}, no_holder, last) == 2u);
  }
}

BOOST_AUTO_TEST_CASE(equal_devices_take_turns_and_the_lowest_follows_the_highest) {
  std::vector<device_id> order;
  device_id last = 2;
  for (int i = 0; i < 7; ++i) order.push_back(last = choice({1, 1, 1}, no_holder, last));
  const std::vector<device_id> expected{0, 1, 2, 0, 1, 2, 0};
  BOOST_TEST(order == expected, boost::test_tools::per_element());
  BOOST_TEST(choice({1, 0, 0}, no_holder, 1) == 2u);
  BOOST_TEST(choice({1, 0, 0}, no_holder, 2) == 1u);
}

BOOST_AUTO_TEST_CASE(a_lost_device_gets_nothing_while_another_one_works) {
  BOOST_TEST(choice({-1, 5}, no_holder, 1) == 1u);
  BOOST_TEST(choice({-1, 5}, 0, 1) == 1u);  // its slots are gone
  BOOST_TEST(choice({3, -1, 4}, 1, 0) == 0u);
  BOOST_TEST(choice({-1, -1}, no_holder, 0) == 0u);  // which says why
  BOOST_TEST(choice({-1, -1}, 1, 0) == 0u);
}

BOOST_AUTO_TEST_CASE(a_holder_that_the_model_does_not_have_is_ignored) {  // it was loaded on more devices before
  BOOST_TEST(choice({2, 1}, 5, 0) == 1u);
}

// ---------------------------------------------------------------- model_devices

namespace {

struct two_devices {
  two_devices() {
    for (auto* each : {&counters_0, &counters_1}) each->slots = 4;
    devices.add(inbox_0, &counters_0);
    devices.add(inbox_1, &counters_1);
  }
  device::mailbox inbox_0{10, 10}, inbox_1{10, 10};
  device::device_counters counters_0, counters_1;
  model_devices devices;
};

}  // namespace

BOOST_AUTO_TEST_CASE(sequences_count_until_their_place_is_given_up) {
  two_devices b;
  auto four = b.devices.place(4, no_holder);
  BOOST_TEST(four.id() == 0u);
  auto one = b.devices.place(1, no_holder);
  BOOST_TEST(one.id() == 1u);
  auto two = b.devices.place(2, no_holder);
  BOOST_TEST(two.id() == 1u);
  BOOST_TEST(b.devices.place(1, no_holder).id() == 1u);  // given up at once
  auto moved = std::move(two);
  BOOST_TEST(b.devices.place(1, no_holder).id() == 1u);  // 4 and 3
  four = {};
  BOOST_TEST(b.devices.place(1, no_holder).id() == 0u);  // 0 and 3
  one = std::move(moved);                                // 0 and 2
  auto more = b.devices.place(3, no_holder);
  BOOST_TEST(more.id() == 0u);
  BOOST_TEST(b.devices.place(1, no_holder).id() == 1u);  // 3 and 2
}

BOOST_AUTO_TEST_CASE(a_place_is_on_the_holder_and_not_on_a_lost_device) {
  two_devices b;
  const auto first = b.devices.place(3, 1);
  const auto second = b.devices.place(1, 1);
  BOOST_TEST(first.id() == 1u);
  BOOST_TEST(second.id() == 1u);
  BOOST_TEST(b.devices.place(1, 1).id() == 0u);  // the holder has no slot left
  b.counters_0.lost = true;
  BOOST_TEST(b.devices.place(1, no_holder).id() == 1u);
  BOOST_TEST(!b.devices.lost());
  b.counters_1.lost = true;
  BOOST_TEST(b.devices.lost());
}

BOOST_AUTO_TEST_CASE(io_threads_choose_at_the_same_time) {
  two_devices b;
  std::vector<device_place> kept[2];
  std::vector<std::thread> threads;
  for (auto& mine : kept)
    threads.emplace_back([&b, &mine] {
      for (int i = 0; i < 1000; ++i) {
        mine.push_back(b.devices.place(1, no_holder));
        const auto given_back = b.devices.place(2, 1);
      }
    });
  for (auto& each : threads) each.join();
  std::size_t on_first = 0;
  for (const auto& mine : kept)
    for (const auto& place : mine) on_first += place.id() == 0 ? 1 : 0;
  BOOST_TEST(on_first >= 990u);  // nearly half: what was given back meanwhile was on one of them for a moment
  BOOST_TEST(on_first <= 1010u);
}
