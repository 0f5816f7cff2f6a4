// Shows that the worker pool is bounded and that its end waits for the piece that runs and for nothing else.
#include "actors/supervisor/process/worker_pool.hpp"

#include <boost/test/unit_test.hpp>
#include <future>
#include <limits>
#include <memory>
#include <stdexcept>
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
  BOOST_TEST(pool.run(first.work()));
  first.entered.get_future().wait();
  BOOST_TEST(pool.run([] {}));
  BOOST_TEST(!pool.run([] {}));
  first.open.set_value();
}

BOOST_AUTO_TEST_CASE(a_piece_that_throws_makes_room_for_the_next) {
  worker_pool pool(8);
  BOOST_TEST(pool.run([] { throw std::runtime_error("trouble"); }));
  std::promise<void> done;
  BOOST_TEST(pool.run([&] { done.set_value(); }));
  done.get_future().wait();
}

BOOST_AUTO_TEST_CASE(stopping_drops_what_is_queued) {
  gate running;
  bool ran = false;
  const auto held = std::make_shared<int>(0);
  {
    worker_pool pool(std::numeric_limits<std::size_t>::max());
    BOOST_TEST(pool.run(running.work()));
    running.entered.get_future().wait();
    for (int i = 0; i < 64; ++i) BOOST_TEST(pool.run([&ran, held] { ran = true; }));
    std::thread stopping([&] { pool.stop(); });
    while (pool.run([] {})) std::this_thread::yield();
    running.open.set_value();
    stopping.join();
    BOOST_TEST(!pool.run([] {}));
    pool.stop();
  }
  BOOST_TEST(!ran);
  BOOST_TEST(held.use_count() == 1);
}
