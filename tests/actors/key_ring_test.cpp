// Keys and what they have used, on a clock of the test.
#include "actors/request/shared/key_ring.hpp"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace {

using namespace skein;
using namespace skein::request;
using namespace std::chrono_literals;

access::api_key key(const std::string& name, const std::string& secret) {
  access::api_key k;
  k.name = k.tenant = name;
  k.hash = access::hash_of(secret);
  return k;
}

BOOST_AUTO_TEST_CASE(a_secret_finds_its_key_and_no_other) {
  key_ring ring;
  BOOST_TEST(ring.empty());
  BOOST_TEST(!ring.find(""));
  ring.replace({key("alice", "one"), key("bob", "two")});
  BOOST_TEST(!ring.empty());
  BOOST_TEST(ring.find("one")->key == "alice");
  BOOST_TEST(ring.find("two")->tenant == "bob");
  for (const char* wrong : {"", "on", "one ", "three", "alice"}) BOOST_TEST(!ring.find(wrong));
}

BOOST_AUTO_TEST_CASE(what_was_used_stays_when_keys_are_read_anew) {
  fake_clock time;
  key_ring ring;
  ring.replace({key("alice", "one"), key("bob", "two")});
  const caller_ref before = ring.find("one");
  BOOST_TEST(!before->usage->enter({1, 0}, time.now()));
  ring.replace({key("alice", "new"), key("carl", "three")});
  BOOST_TEST(!ring.find("one"));
  const caller_ref after = ring.find("new");
  BOOST_TEST(after->usage == before->usage);
  BOOST_TEST(after->usage->enter({1, 0}, time.now()).has_value());
  before->usage->leave();  // of a request that began with the old key
  BOOST_TEST(!after->usage->enter({1, 0}, time.now()));
}

BOOST_AUTO_TEST_CASE(requests_at_a_time_are_counted) {
  key_usage usage;
  fake_clock time;
  const key_usage::limits two{2, 0};
  BOOST_TEST(!usage.enter(two, time.now()));
  key_lease place(std::make_shared<key_usage>());  // of another one
  BOOST_TEST(!usage.enter(two, time.now()));
  const auto no = usage.enter(two, time.now());
  BOOST_REQUIRE(no);
  BOOST_TEST((no->why.kind == error_kind::overloaded));
  BOOST_TEST(usage.running() == 2u);
  usage.leave();
  BOOST_TEST(!usage.enter(two, time.now()));
}

BOOST_AUTO_TEST_CASE(a_lease_gives_its_place_back_once) {
  const auto usage = std::make_shared<key_usage>();
  fake_clock time;
  BOOST_TEST(!usage->enter({}, time.now()));
  {
    key_lease one(usage);
    key_lease other(std::move(one));
    one.reset();
    BOOST_TEST(usage->running() == 1u);
    one = std::move(other);
    BOOST_TEST(usage->running() == 1u);
  }
  BOOST_TEST(usage->running() == 0u);
}

BOOST_AUTO_TEST_CASE(tokens_of_a_minute_come_back_in_a_minute) {
  key_usage usage;
  fake_clock time;
  const key_usage::limits most{0, 600};  // ten a second
  BOOST_TEST(!usage.enter(most, time.now()));
  usage.spend(650);  // it may overdraw
  auto no = usage.enter(most, time.now());
  BOOST_REQUIRE(no);
  BOOST_TEST(no->retry_after.count() == 6);  // 50 missing tokens, and one to spend
  time.advance(5s);
  BOOST_TEST(usage.enter(most, time.now()).has_value());
  time.advance(1s);
  BOOST_TEST(!usage.enter(most, time.now()));
  time.advance(3600s);  // no more than a minute's tokens are saved
  BOOST_TEST(!usage.enter(most, time.now()));
  usage.spend(601);
  no = usage.enter(most, time.now());
  BOOST_REQUIRE(no);
  BOOST_TEST(no->retry_after.count() == 1);
}

BOOST_AUTO_TEST_CASE(a_new_limit_counts_from_now_on) {
  fake_clock time;
  key_ring ring;
  auto alice = key("alice", "one");
  ring.replace({alice});
  const auto enter = [&] {
    const caller_ref who = ring.find("one");
    return who->usage->enter(who->limits, time.now());
  };
  BOOST_TEST(!enter());
  ring.find("one")->usage->spend(10'000'000);
  for (int change = 0; change < 2; ++change) {  // the second time, after a limit that was lifted
    alice.tokens_per_minute = 600;
    ring.replace({alice});
    BOOST_TEST(!enter());
    ring.find("one")->usage->spend(700);
    BOOST_TEST(enter().has_value());
    ring.replace({alice});  // the same limit forgives nothing
    BOOST_TEST(enter().has_value());
    alice.tokens_per_minute = 0;
    ring.replace({alice});
    BOOST_TEST(!enter());
    ring.find("one")->usage->spend(10'000'000);
  }
}

BOOST_AUTO_TEST_CASE(a_change_between_two_limits_forgives_nothing) {
  fake_clock time;
  key_ring ring;
  auto alice = key("alice", "one");
  alice.tokens_per_minute = 600;
  ring.replace({alice});
  const auto usage = ring.find("one")->usage;
  BOOST_TEST(!usage->enter({0, 600}, time.now()));
  usage->spend(1300);
  alice.tokens_per_minute = 1200;
  ring.replace({alice});
  const auto no = usage->enter({0, 1200}, time.now());
  BOOST_REQUIRE(no);
  BOOST_TEST(no->retry_after.count() == 36);  // 700 missing tokens, at 20 a second, and one to spend
}

BOOST_AUTO_TEST_CASE(over_an_hour_a_key_gets_what_it_may_have) {
  key_usage usage;
  fake_clock time;
  const key_usage::limits most{0, 6000};
  std::uint64_t tokens = 0;
  for (int second = 0; second < 3600; ++second, time.advance(1s))
    for (int wish = 0; wish < 3; ++wish)
      if (!usage.enter(most, time.now())) {
        usage.spend(70);
        tokens += 70;
      }
  BOOST_TEST(tokens <= 6000u * 61 + 210);  // a full minute at the beginning, then as they come back
  BOOST_TEST(tokens >= 6000u * 59);
}

}  // namespace
