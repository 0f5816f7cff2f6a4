// The thread pool: every task runs exactly once, run() returns after the last one, phases follow each other by the
// thousand without losing work, and denormals are off inside and untouched outside.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "base/sanitizer.hpp"
#include "base/threads/start_thread.hpp"
#include "kernels/cpu/thread_pool.hpp"

using skein::no_thread;
using skein::kernels::cpu::thread_pool;

BOOST_AUTO_TEST_CASE(every_task_runs_once) {
  for (std::uint32_t threads = 1; threads <= 4; ++threads) {
    thread_pool pool(threads);
    BOOST_TEST(pool.threads() == threads);
    for (const std::size_t tasks : {0, 1, 2, 3, 100}) {
      std::vector<int> runs(tasks, 0);       // plain ints: a task that ran twice at once would be a race
      std::atomic<bool> thread_known{true};  // Boost.Test itself belongs to one thread
      pool.run(tasks, [&](std::size_t task, std::uint32_t thread) {
        if (thread >= threads) thread_known = false;
        ++runs[task];
      });
      BOOST_TEST(thread_known.load());
      BOOST_TEST(std::accumulate(runs.begin(), runs.end(), 0) == static_cast<int>(tasks));
      BOOST_TEST(std::count(runs.begin(), runs.end(), 1) == static_cast<std::ptrdiff_t>(tasks));
    }
  }
}

BOOST_AUTO_TEST_CASE(phases_are_barriers) {
  thread_pool pool(4);
  std::vector<std::size_t> values(64, 0);
  for (std::size_t phase = 0; phase < 5000; ++phase) {
    // Each task reads what its neighbour wrote in the phase before.
    std::vector<std::size_t> next(values.size());
    pool.run(values.size(),
             [&](std::size_t task, std::uint32_t) { next[task] = values[(task + 1) % values.size()] + 1; });
    values = next;
  }
  for (const std::size_t value : values) BOOST_REQUIRE_EQUAL(value, 5000u);
}

BOOST_AUTO_TEST_CASE(an_exception_comes_out_after_the_phase_and_leaves_the_pool_whole) {
  for (std::uint32_t threads = 1; threads <= 4; ++threads) {
    thread_pool pool(threads);
    for (int round = 0; round < 50; ++round) {
      std::atomic<int> ended{0};
      const auto body = [&](std::size_t task, std::uint32_t) {
        ended.fetch_add(1);
        if (task % 5 == 3) throw std::runtime_error("task");
      };
      BOOST_CHECK_THROW(pool.run(20, body), std::runtime_error);
      if (threads > 1) BOOST_REQUIRE_EQUAL(ended.load(), 20);
      pool.run(10, [&](std::size_t, std::uint32_t) { ended.fetch_add(100); });
      BOOST_REQUIRE_GE(ended.load(), 1000);
    }
  }
}

#if !defined(SKEIN_ADDRESS_SANITIZER) && !defined(SKEIN_THREAD_SANITIZER)  // they reserve terabytes of addresses
BOOST_AUTO_TEST_CASE(a_pool_that_cannot_start_a_thread_ends_those_that_run) {
  const pid_t child = fork();
  if (child == 0) {  // the stacks of all threads do not fit below this limit, those of the first ones do
    rlimit addresses{};
    getrlimit(RLIMIT_AS, &addresses);
    addresses.rlim_cur = std::min<rlim_t>(addresses.rlim_max, rlim_t{1} << 30);
    setrlimit(RLIMIT_AS, &addresses);
    alarm(60);
    try {
      const thread_pool pool(20'000);
    } catch (const no_thread& refused) {
      const std::string_view why = refused.what();
      _exit(why.starts_with("cannot start thread ") && why.find(" of 20000: ") != why.npos ? 0 : 3);
    }
    _exit(2);
  }
  int status = -1;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  BOOST_TEST(status == 0);
}
#endif

BOOST_AUTO_TEST_CASE(zero_means_all_cores) {
  thread_pool pool(0);
  BOOST_TEST(pool.threads() >= 1u);
}

BOOST_AUTO_TEST_CASE(denormals_are_off_in_every_task_only) {
  thread_pool pool(3);
  volatile float tiny = 1e-39f;
  std::atomic<int> flushed{0};
  pool.run(200, [&](std::size_t, std::uint32_t) {
    if (tiny * 2.0f == 0.0f) flushed.fetch_add(1);
  });
#if defined(__SSE2__)
  BOOST_TEST(flushed.load() == 200);
#endif
  BOOST_TEST(tiny * 2.0f > 0.0f);
}
