// Shows how wrong passwords are counted: by address, within a window, in a table that stays small. Time is the test's.
#include "actors/request/shared/login_guard.hpp"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace skein;
using namespace std::chrono_literals;
using request::login_guard;

constexpr config::limit_settings three_a_minute{
    .login_failures_max = 3, .login_window_ms = 60'000, .login_addresses_max = 100};
const steady_time start{1000s};

void fail(login_guard& guard, std::string_view address, int times, steady_time at = start) {
  for (int i = 0; i < times; ++i) (void)guard.judge(address, false, at);
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_address_waits_until_its_window_is_over) {
  login_guard guard(three_a_minute);
  fail(guard, "1.2.3.4", 2);
  BOOST_TEST(!guard.must_wait("1.2.3.4", start).has_value());
  fail(guard, "1.2.3.4", 1, start + 10s);
  BOOST_TEST((guard.must_wait("1.2.3.4", start + 10s) == 50s));
  fail(guard, "1.2.3.4", 100, start + 20s);  // does not lengthen it
  BOOST_TEST((guard.must_wait("1.2.3.4", start + 59s) == 1s));
  BOOST_TEST(!guard.must_wait("1.2.3.4", start + 60s).has_value());
  BOOST_TEST(guard.addresses() == 0u);
}

BOOST_AUTO_TEST_CASE(a_right_password_is_accepted_while_wrong_ones_are_refused) {
  login_guard guard(three_a_minute);
  BOOST_TEST(!guard.judge("1.2.3.4", true, start).has_value());
  BOOST_TEST(guard.addresses() == 0u);
  for (int i = 0; i < 3; ++i) BOOST_TEST(!guard.judge("1.2.3.4", false, start).has_value());
  BOOST_TEST((guard.judge("1.2.3.4", false, start + 10s) == 50s));
  BOOST_TEST(!guard.judge("1.2.3.4", true, start + 10s).has_value());
  BOOST_TEST((guard.judge("1.2.3.4", false, start + 11s) == 49s));  // the right one is no fresh start for a guesser
  BOOST_TEST(!guard.judge("1.2.3.4", true, start + 60s).has_value());
}

BOOST_AUTO_TEST_CASE(passwords_that_come_together_are_tried_no_further_than_the_limit) {
  login_guard guard(three_a_minute);
  std::atomic<int> tried{0};
  {
    std::vector<std::jthread> guessers;
    for (int i = 0; i < 4; ++i)
      guessers.emplace_back([&] {
        for (int guess = 0; guess < 1000; ++guess) tried += !guard.judge("1.2.3.4", false, start).has_value();
      });
  }
  BOOST_TEST(tried == 3);
}

BOOST_AUTO_TEST_CASE(requests_without_a_password_are_counted_apart_from_wrong_ones) {
  login_guard guard(three_a_minute);
  for (int i = 0; i < 15; ++i) BOOST_TEST(!guard.judge_visit("1.2.3.4", start).has_value());
  BOOST_TEST((guard.judge_visit("1.2.3.4", start + 10s) == 50s));
  BOOST_TEST(!guard.judge_visit("1.2.3.5", start + 10s).has_value());
  BOOST_TEST(!guard.must_wait("1.2.3.4", start + 10s).has_value());  // a password typed now is tried
  fail(guard, "1.2.3.4", 3, start + 10s);
  BOOST_TEST(guard.must_wait("1.2.3.4", start + 10s).has_value());
  BOOST_TEST(!guard.judge_visit("1.2.3.4", start + 60s).has_value());
  for (int i = 0; i < 20; ++i) (void)guard.judge_visit("2001:db8:1:2::" + std::to_string(i), start);
  BOOST_TEST(guard.judge_visit("2001:db8:1:2::ffff", start).has_value());
  login_guard open({.login_failures_max = 0});
  for (int i = 0; i < 1000; ++i) BOOST_TEST(!open.judge_visit("1.2.3.4", start).has_value());
}

BOOST_AUTO_TEST_CASE(addresses_do_not_answer_for_each_other) {
  login_guard guard(three_a_minute);
  fail(guard, "1.2.3.4", 3);
  BOOST_TEST(guard.must_wait("1.2.3.4", start).has_value());
  BOOST_TEST(!guard.must_wait("1.2.3.5", start).has_value());
  BOOST_TEST(!guard.must_wait("unix", start).has_value());
}

BOOST_AUTO_TEST_CASE(a_network_of_ipv6_is_one_address) {
  login_guard guard(three_a_minute);
  for (int i = 1; i < 4; ++i) fail(guard, "2001:db8:1:2::" + std::to_string(i), 1);
  BOOST_TEST(guard.must_wait("2001:db8:1:2:ffff::9", start).has_value());
  BOOST_TEST(!guard.must_wait("2001:db8:1:3::1", start).has_value());
  BOOST_TEST(guard.addresses() == 1u);
}

BOOST_AUTO_TEST_CASE(the_table_has_a_limit_and_the_oldest_makes_room) {
  login_guard guard(three_a_minute);
  fail(guard, "first", 3);
  for (int i = 0; i < 99; ++i) fail(guard, "address " + std::to_string(i), 3, start + 1s);
  BOOST_TEST(guard.must_wait("first", start + 1s).has_value());
  for (int i = 99; i < 1000; ++i) fail(guard, "address " + std::to_string(i), 3, start + 1s);
  BOOST_TEST(guard.addresses() == 100u);
  BOOST_TEST(!guard.must_wait("first", start + 1s).has_value());
  BOOST_TEST(guard.must_wait("address 999", start + 1s).has_value());
}

BOOST_AUTO_TEST_CASE(without_a_limit_no_address_is_stored) {
  login_guard guard({.login_failures_max = 0});
  fail(guard, "1.2.3.4", 1000);
  BOOST_TEST(!guard.must_wait("1.2.3.4", start).has_value());
  BOOST_TEST(guard.addresses() == 0u);
}
