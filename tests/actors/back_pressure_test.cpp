// When a connection tells its service to stop writing, to go on, and that it has ignored this for too long.
#include <boost/test/unit_test.hpp>

#include "actors/connection/back_pressure.hpp"

namespace skein::test {
namespace {

using connection::back_pressure;

constexpr std::size_t limit = 1000;

BOOST_AUTO_TEST_CASE(a_full_queue_is_relieved_at_half_of_the_limit) {
  back_pressure p;
  p.on_write(limit, limit);
  BOOST_TEST(!p.on_sent(0, limit));  // it was never above the limit
  p.on_write(limit + 1, limit);
  BOOST_TEST(!p.lacks_memory());
  BOOST_TEST(!p.on_sent(limit / 2 + 1, limit));
  BOOST_TEST(p.on_sent(limit / 2, limit));
  BOOST_TEST(!p.on_sent(0, limit));  // told once
}

BOOST_AUTO_TEST_CASE(a_lack_of_memory_is_relieved_at_half_of_what_was_queued) {
  back_pressure p;
  p.on_write(100, limit);
  p.on_no_memory(100);
  BOOST_TEST(p.lacks_memory());
  BOOST_TEST(!p.on_sent(51, limit));
  BOOST_TEST(p.on_sent(50, limit));
  BOOST_TEST(!p.lacks_memory());
}

BOOST_AUTO_TEST_CASE(a_service_that_never_stops_is_noticed_by_bytes_and_by_writes) {
  back_pressure p;
  for (int i = 0; i < 257; ++i) {
    p.on_write(9 * limit, limit);
    BOOST_TEST(!p.is_ignored(9 * limit, limit));  // one large piece is no fault of the reader
  }
  p.on_write(9 * limit, limit);
  BOOST_TEST(p.is_ignored(8 * limit + 1, limit));
  BOOST_TEST(!p.is_ignored(8 * limit, limit));
  BOOST_TEST(p.on_sent(0, limit));
  p.on_write(9 * limit, limit);
  BOOST_TEST(!p.is_ignored(9 * limit, limit));  // counted from the start
}

}  // namespace
}  // namespace skein::test
