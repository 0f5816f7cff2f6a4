// Shows that bytes are counted in every group that a holder belongs to, up to each ceiling, and are all given back.
#include "actors/byte_share.hpp"

#include <boost/test/unit_test.hpp>
#include <thread>
#include <vector>

#include "actors/byte_hold.hpp"

namespace skein {

using outcome = byte_share::outcome;

struct share_bench {
  [[nodiscard]] byte_share of(const std::string& name, std::size_t most) {
    return {{budget.of(name), most}, {budget.strangers(), 150}, {budget.all(), 200}};
  }
  byte_budget budget;
};

BOOST_FIXTURE_TEST_SUITE(byte_shares, share_bench)

BOOST_AUTO_TEST_CASE(a_share_takes_up_to_the_first_ceiling_that_it_meets) {
  const byte_share a = of("a", 100), b = of("b", 100);
  BOOST_TEST((a.take(101) == outcome::too_large));
  BOOST_TEST((a.take(60) == outcome::taken));
  BOOST_TEST((a.take(41) == outcome::share_full));
  BOOST_TEST((of("a", 100).take(41) == outcome::share_full));  // the same counter
  BOOST_TEST((b.take(91) == outcome::share_full));             // the strangers'
  BOOST_TEST((b.take(90) == outcome::taken));
  BOOST_TEST(budget.held() == 150u);
  const byte_share known{{budget.of("c"), 100}, {}, {budget.all(), 200}};
  BOOST_TEST((known.take(51) == outcome::all_full));
  BOOST_TEST((known.take(50) == outcome::taken));
  BOOST_TEST(budget.strangers()->load() == 150u);
  a.give_back(60);
  b.give_back(90);
  known.give_back(50);
  BOOST_TEST(budget.held() == 0u);
  BOOST_TEST((byte_share().take(1 << 30) == outcome::taken));  // counts nothing
}

BOOST_AUTO_TEST_CASE(a_lease_gives_back_with_its_last_copy) {
  auto why = outcome::taken;
  auto lease = of("a", 100).lease(80, why);
  auto copy = lease;
  BOOST_TEST(!of("a", 100).lease(30, why));
  BOOST_TEST((why == outcome::share_full));
  lease.reset();
  BOOST_TEST(budget.held() == 80u);
  copy.reset();
  BOOST_TEST(budget.held() == 0u);
}

BOOST_AUTO_TEST_CASE(holders_come_together_no_further_than_the_ceiling) {
  std::atomic<int> taken{0};
  const byte_share kept = of("a", 100);  // else a thread that ends early takes the counter with it
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, share = of("a", 100)] {
        for (int n = 0; n < 1000; ++n) taken += share.take(1) == outcome::taken;
      });
  }
  BOOST_TEST(taken == 100);
  BOOST_TEST(budget.held() == 100u);
}

BOOST_AUTO_TEST_CASE(holders_that_are_gone_are_forgotten) {
  for (int i = 0; i < 10'000; ++i) (void)budget.of(std::to_string(i));
  const auto kept = budget.of("kept");
  kept->fetch_add(1);
  for (int i = 0; i < 10'000; ++i) (void)budget.of(std::to_string(i));
  BOOST_TEST(budget.of("kept")->load() == 1u);
}

BOOST_AUTO_TEST_CASE(what_a_connection_holds_follows_its_buffers) {
  const byte_share big{{budget.of("a"), 1 << 20}, {}, {budget.all(), 1 << 20}};
  {
    byte_hold hold;
    hold.move_to(big);
    BOOST_TEST((hold.set(4096) == outcome::taken));
    BOOST_TEST(budget.held() == 0u);  // what any connection takes
    BOOST_TEST((hold.set(500'000) == outcome::taken));
    BOOST_TEST(budget.held() >= 500'000u);
    BOOST_TEST((hold.set(2 << 20) == outcome::too_large));
    BOOST_TEST(budget.held() >= 500'000u);
    BOOST_TEST(budget.held() < 505'000u);
    BOOST_TEST((hold.set(100'000) == outcome::taken));
    BOOST_TEST(budget.held() < 105'000u);
    BOOST_TEST(!hold.set_anyway(2 << 20));
    BOOST_TEST(budget.held() >= std::size_t{2} << 20);
    byte_budget other;
    hold.move_to({{other.of("b"), 10}, {}, {other.all(), 10}});
    BOOST_TEST(budget.held() == 0u);
    BOOST_TEST(other.held() >= std::size_t{2} << 20);
    hold.move_to(big);
  }
  BOOST_TEST(budget.held() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein
