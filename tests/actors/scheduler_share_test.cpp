// Who gets how much when more is wanted than there is: shares of clients counted in tokens, and waiting times at ten
// times the load that the slots can carry. Time is the test's: one tick a millisecond.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/actors/scheduler_world.hpp"

namespace {

using namespace skein;
using namespace skein::test;

/// What a client always wants more of.
struct habit {
  std::string who;
  std::uint32_t prompt_tokens, budget, at_once;
  int since = 0;  ///< tick
};

/// Tokens of prompts and answers that each client got between two ticks, while each had requests waiting all the time.
std::map<std::string, std::uint64_t> shares(const std::vector<habit>& habits, int ticks, std::uint32_t slots = 8) {
  scheduler_options o = small(slots);
  o.turn_tokens = 16;
  o.waiting_max = 1000;
  o.waiting_per_client_max = 1000;
  world w(o);
  struct running {
    std::string who;
    std::uint32_t prompt_tokens;
  };
  std::map<request_id, running> all;
  const auto got = [&](request_id id) -> std::uint64_t {
    const auto& c = w.clients.at(id);
    return (c.admitted ? all.at(id).prompt_tokens : 0) + c.rows[0].got.size();
  };
  std::map<std::string, std::uint64_t> tokens;
  const auto count = [&](int sign) {
    for (const auto& [id, r] : all) tokens[r.who] += static_cast<std::uint64_t>(sign) * got(id);
  };
  for (int tick = 0; tick < ticks; ++tick) {
    if (tick == ticks / 4) count(-1);  // what came while the queues filled is left out
    for (const habit& h : habits) {
      if (tick < h.since) continue;
      std::uint32_t open = 0;
      for (const auto& [id, r] : all) open += r.who == h.who && !w.clients.at(id).over();
      for (; open < h.at_once; ++open) {
        const auto id =
            w.send({.prompt = std::vector<token_id>(h.prompt_tokens, 3), .n = 1, .budget = h.budget, .who = h.who});
        all[id] = {h.who, h.prompt_tokens};
      }
    }
    w.turn();
  }
  count(1);
  return tokens;
}

BOOST_AUTO_TEST_CASE(two_clients_who_always_want_more_get_the_same) {
  const std::vector<habit> alike{{"a", 4, 40, 20}, {"b", 4, 40, 20}};
  const std::vector<habit> many_and_few{{"a", 4, 40, 60}, {"b", 4, 40, 10}};
  const std::vector<habit> short_and_long{{"a", 4, 6, 20}, {"b", 4, 1000, 20}};
  const std::vector<habit> long_prompts{{"a", 60, 6, 20}, {"b", 4, 40, 20}};
  for (const auto& habits : {alike, many_and_few, short_and_long, long_prompts}) {
    const auto tokens = shares(habits, 3000);
    const auto a = static_cast<double>(tokens.at("a")), b = static_cast<double>(tokens.at("b"));
    BOOST_TEST_CONTEXT("a " << a << " b " << b) {
      BOOST_TEST(a > 1000);
      BOOST_TEST(std::abs(a - b) <= 0.1 * std::max(a, b));
    }
  }
}

// A client uses no more slots than it has requests. One with fewer than its fair number of slots (all slots by the
// number of clients, rounded down) gets a slot for each, and the others share the rest.
BOOST_AUTO_TEST_CASE(a_client_with_few_requests_has_a_slot_for_each) {
  constexpr int ticks = 4000, counted = ticks - ticks / 4;
  struct one_case {
    std::uint32_t slots, streams, others, answer;
    double least;  // of what its streams could draw without an interruption
  };
  for (const one_case& c : {one_case{2, 1, 6, endless, 0.95}, one_case{2, 1, 6, 60, 0.8}, one_case{2, 1, 60, 10, 0.5},
                            one_case{8, 3, 40, endless, 0.95}, one_case{8, 1, 20, 60, 0.8}}) {
    const auto tokens = shares({{"many", 4, c.answer, c.others}, {"few", 4, c.answer, c.streams}}, ticks, c.slots);
    const double whole = static_cast<double>(c.streams) * counted;
    BOOST_TEST_CONTEXT(c.slots << " slots, answers of " << c.answer << ": few " << tokens.at("few") << " many "
                               << tokens.at("many")) {
      BOOST_TEST(static_cast<double>(tokens.at("few")) >= c.least * whole);
      BOOST_TEST(static_cast<double>(tokens.at("few")) <= 1.4 * whole);
      BOOST_TEST(static_cast<double>(tokens.at("many")) >= 0.9 * (c.slots - c.streams) * counted);  // no slot rests
    }
  }
}

BOOST_AUTO_TEST_CASE(who_comes_later_neither_catches_up_nor_waits) {
  constexpr int ticks = 4000;
  const auto tokens = shares({{"old", 4, 40, 20}, {"new", 4, 40, 20, ticks / 4}}, ticks);
  const auto old = static_cast<double>(tokens.at("old")), late = static_cast<double>(tokens.at("new"));
  BOOST_TEST_CONTEXT("old " << old << " new " << late) BOOST_TEST(std::abs(old - late) <= 0.1 * std::max(old, late));
}

struct waits {
  std::vector<int> ticks;  // from arrival to first token, of those that were taken
  std::size_t refused = 0;
  [[nodiscard]] int p99() {
    std::ranges::sort(ticks);
    return ticks.at(ticks.size() * 99 / 100);
  }
};

/// Requests come at random times, `rate` of them in a tick on average.
waits under_load(double rate, int ticks) {
  scheduler_options o = small(16);
  o.waiting_max = 8;
  o.waiting_per_client_max = 8;
  o.turn_tokens = 1000;
  world w(o);
  std::mt19937_64 random(7);
  std::poisson_distribution<int> arrivals(rate);
  std::map<request_id, int> untouched;
  waits seen;
  for (int tick = 0; tick < ticks; ++tick) {
    for (int n = arrivals(random); n > 0; --n) {
      const auto id = w.send({3, 5, 7, 9}, 1, 32, false, "c" + std::to_string(random() % 50));
      w.read_events();
      if (w.clients.at(id).refused) {  // at once: no tick has passed
        BOOST_REQUIRE((w.clients.at(id).refused == error_kind::overloaded));
        ++seen.refused;
      } else {
        untouched[id] = tick;
      }
    }
    w.turn();
    std::erase_if(untouched, [&](const auto& one) {
      const auto& c = w.clients.at(one.first);
      BOOST_REQUIRE(!c.refused);  // who was taken is not sent away later
      if (c.rows[0].got.empty()) return false;
      seen.ticks.push_back(tick - one.second);
      return true;
    });
  }
  return seen;
}

BOOST_AUTO_TEST_CASE(at_ten_times_the_load_who_is_taken_waits_no_longer_than_twice_as_long) {
  // A request holds a slot for about 34 ticks, less where it draws a stop token: measured, not computed.
  const double capacity = [] {
    const waits full = under_load(10, 2000);
    return static_cast<double>(full.ticks.size()) / 2000;
  }();
  waits busy = under_load(0.8 * capacity, 6000), flooded = under_load(10 * capacity, 6000);
  BOOST_TEST_CONTEXT("p99 at 80 %: " << busy.p99() << " ticks, at ten times: " << flooded.p99()) {
    BOOST_TEST(flooded.p99() <= 2 * busy.p99());
    BOOST_TEST(flooded.refused > 8 * flooded.ticks.size());
    BOOST_TEST(static_cast<double>(flooded.ticks.size()) >= 0.95 * capacity * 6000);
  }
}

}  // namespace
