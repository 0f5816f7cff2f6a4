// Shows that the worker pool is bounded, that owners take turns, and that its end waits for the piece that runs and for
// nothing else.
#include "actors/supervisor/process/worker_pool.hpp"

#include <boost/test/unit_test.hpp>
#include <future>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using skein::supervisor::worker_pool;

/// A piece of work that runs until it is let go.
struct gate {
  std::promise<void> entered, open;
  std::function<void()> work() {
    return [this] {
      entered.set_value();
      open.get_future().wait();
    };
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  gate first;
  worker_pool pool(2);
  BOOST_TEST(pool.run(nullptr, first.work()));
  first.entered.get_future().wait();
  BOOST_TEST(pool.run(nullptr, [] {}));
  BOOST_TEST(!pool.run(nullptr, [] {}));
  first.open.set_value();
}

BOOST_AUTO_TEST_CASE(owners_take_turns) {
  gate running;
  worker_pool pool(16);
  const auto one = std::make_shared<int>(1), other = std::make_shared<int>(2);
  std::string order;
  std::promise<void> done;
  BOOST_TEST(pool.run(one, running.work()));
  running.entered.get_future().wait();
  for (int i = 0; i < 3; ++i) BOOST_TEST(pool.run(one, [&] { order += 'a'; }));
  BOOST_TEST(pool.run(one, [&] { done.set_value(); }));
  BOOST_TEST(!pool.run(one, [] {}));  // a quarter of the queue
  for (int i = 0; i < 2; ++i) BOOST_TEST(pool.run(other, [&] { order += 'b'; }));
  BOOST_TEST(pool.run(nullptr, [&] { order += 'c'; }));
  running.open.set_value();
  done.get_future().wait();
  BOOST_TEST(order == "abcaba");
}

BOOST_AUTO_TEST_CASE(a_piece_that_throws_makes_room_for_the_next) {
  worker_pool pool(8);
  BOOST_TEST(pool.run(nullptr, [] { throw std::runtime_error("trouble"); }));
  std::promise<void> done;
  BOOST_TEST(pool.run(nullptr, [&] { done.set_value(); }));
  done.get_future().wait();
}

BOOST_AUTO_TEST_CASE(stopping_drops_what_is_queued) {
  gate running;
  bool ran = false;
  const auto held = std::make_shared<int>(0);
  {
    worker_pool pool(std::numeric_limits<std::size_t>::max());
    BOOST_TEST(pool.run(nullptr, running.work()));
    running.entered.get_future().wait();
    for (int i = 0; i < 64; ++i) BOOST_TEST(pool.run(nullptr, [&ran, held] { ran = true; }));
    std::thread stopping([&] { pool.stop(); });
    while (pool.run(nullptr, [] {})) std::this_thread::yield();
    running.open.set_value();
    stopping.join();
    BOOST_TEST(!pool.run(nullptr, [] {}));
    pool.stop();
  }
  BOOST_TEST(!ran);
  BOOST_TEST(held.use_count() == 1);
}
