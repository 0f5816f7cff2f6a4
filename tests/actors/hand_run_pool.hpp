#pragma once
#include <boost/test/unit_test.hpp>
#include <functional>
#include <utility>
#include <vector>

namespace skein::test {

/// The test in the place of the worker pool and of the io thread that its results come back to.
struct hand_run_pool {
  /// As service_context::run_long.
  bool take(std::function<void()> work) {
    if (!full) long_work.push_back(std::move(work));
    return !full;
  }
  /// Runs the one piece of work that waits, and what comes back of it.
  void run_one() {
    BOOST_REQUIRE_EQUAL(long_work.size(), 1u);
    long_work[0]();
    long_work.clear();
    BOOST_REQUIRE_EQUAL(posted.size(), 1u);
    posted[0]();
    posted.clear();
  }

  std::vector<std::function<void()>> long_work, posted;
  bool full = false;
};

}  // namespace skein::test
