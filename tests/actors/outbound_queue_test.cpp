// Shows that bytes leave the outbound queue in order and once, however writes cut them, and that small pieces share
// memory. Random cuts come from a printed seed.
#include "actors/connection/link/outbound_queue.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <random>

namespace skein::connection {
namespace {

BOOST_AUTO_TEST_CASE(small_pieces_become_one) {
  outbound_queue queue;
  for (int i = 0; i < 100; ++i) queue.push_chunk("token");
  std::array<std::string_view, 8> pieces;
  BOOST_TEST(queue.gather(pieces) == 1u);
  BOOST_TEST(pieces[0].size() == queue.bytes());
  BOOST_TEST(pieces[0].substr(0, 20) == "5\r\ntoken\r\n5\r\ntoken\r\n");
}

BOOST_AUTO_TEST_CASE(a_running_write_keeps_its_bytes) {
  outbound_queue queue;
  queue.push("first");
  std::array<std::string_view, 8> pieces;
  BOOST_TEST(queue.gather(pieces) == 1u);
  for (int i = 0; i < 100; ++i) queue.push("more");
  BOOST_TEST(pieces[0] == "first");
  queue.consumed(3);
  BOOST_TEST(queue.gather(pieces) == 2u);
  BOOST_TEST(pieces[0] == "st");
}

BOOST_AUTO_TEST_CASE(any_cuts_give_the_same_bytes) {
  const auto seed = std::random_device{}();
  BOOST_TEST_MESSAGE("seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    outbound_queue queue;
    std::string put, got;
    for (int step = 0; step < 50 || !queue.empty(); ++step) {
      if (step < 50) {
        const std::string bytes(random() % 2 ? random() % 40 : random() % 6000, static_cast<char>('a' + step % 26));
        put += bytes;
        queue.push(bytes);
      }
      std::array<std::string_view, 3> pieces;
      const std::size_t count = queue.gather(pieces);
      std::string offered;
      for (std::size_t i = 0; i < count; ++i) offered += pieces[i];
      const std::size_t take = offered.empty() ? 0 : random() % (offered.size() + 1);
      got += offered.substr(0, take);
      queue.consumed(take);
      BOOST_REQUIRE(queue.bytes() == put.size() - got.size());
    }
    BOOST_TEST((got == put));
  }
}

}  // namespace
}  // namespace skein::connection
