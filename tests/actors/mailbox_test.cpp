// Shows the promises of bounded_mailbox: order, ceilings with room for urgent messages, wake-ups and closing; the last
// case runs senders and a receiver on real threads.
#include "actors/mailbox.hpp"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <new>
#include <thread>

#include "tests/support/failing_new.hpp"

namespace skein {
namespace {

using mailbox = bounded_mailbox<std::unique_ptr<int>>;

std::unique_ptr<int> letter(int value) { return std::make_unique<int>(value); }

std::chrono::steady_clock::time_point soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(10); }

BOOST_AUTO_TEST_CASE(messages_come_out_in_order) {
  mailbox box(10, 0);
  for (int i = 0; i < 3; ++i) BOOST_TEST(box.push(letter(i)));
  std::vector<std::unique_ptr<int>> out;
  box.drain(out);
  BOOST_TEST(out.size() == 3u);
  for (int i = 0; i < 3; ++i) BOOST_TEST(*out[i] == i);
  box.drain(out);
  BOOST_TEST(out.empty());
}

BOOST_AUTO_TEST_CASE(a_drain_without_memory_leaves_everything_inside) {
  mailbox box(3, 0);
  for (int i = 0; i < 3; ++i) BOOST_TEST(box.push(letter(i)));
  std::vector<std::unique_ptr<int>> out;
  bool thrown = false;
  try {
    const test::failing_new no_memory(2 * sizeof(out[0]));  // the first message would still find room
    box.drain(out);
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  BOOST_TEST(thrown);
  box.drain(out);
  BOOST_REQUIRE(out.size() == 3u);
  for (const auto& one : out) BOOST_TEST(one.get() != nullptr);
}

BOOST_AUTO_TEST_CASE(a_full_mailbox_leaves_the_message_with_its_sender) {
  mailbox box(1, 1);
  BOOST_TEST(box.push(letter(0)));
  auto refused = letter(1);
  BOOST_TEST(!box.push(refused));
  BOOST_REQUIRE(refused);
  BOOST_TEST(*refused == 1);
  BOOST_TEST(box.push_urgent(letter(2)));
  BOOST_TEST(!box.push_urgent(letter(3)));
  BOOST_TEST(box.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_closed_mailbox_takes_nothing_and_gives_what_it_has) {
  mailbox box(10, 10);
  BOOST_TEST(box.push(letter(7)));
  box.close();
  BOOST_TEST(box.closed());
  BOOST_TEST(!box.push(letter(8)));
  BOOST_TEST(!box.push_urgent(letter(8)));
  std::vector<std::unique_ptr<int>> out;
  box.wait_and_drain(out, soon());  // returns at once
  BOOST_REQUIRE(out.size() == 1u);
  BOOST_TEST(*out[0] == 7);
}

BOOST_AUTO_TEST_CASE(the_receiver_is_woken_once_for_a_run_of_messages) {
  mailbox box(10, 0);
  int woken = 0;
  box.on_first_message([&] { ++woken; });
  for (int i = 0; i < 5; ++i) BOOST_TEST(box.push(letter(i)));
  BOOST_TEST(woken == 1);
  std::vector<std::unique_ptr<int>> out;
  box.drain(out);
  BOOST_TEST(box.push(letter(5)));
  BOOST_TEST(woken == 2);
}

BOOST_AUTO_TEST_CASE(waiting_ends_at_its_time) {
  mailbox box(1, 0);
  std::vector<std::unique_ptr<int>> out{};
  box.wait_and_drain(out, std::chrono::steady_clock::now());
  BOOST_TEST(out.empty());
}

BOOST_AUTO_TEST_CASE(many_senders_lose_nothing) {
  constexpr int senders = 4, each = 2000;
  mailbox box(16, 0);
  std::vector<std::thread> threads;
  for (int s = 0; s < senders; ++s)
    threads.emplace_back([&box, s] {
      for (int i = 0; i < each; ++i) {
        auto message = letter(s * each + i);
        while (!box.push(message)) std::this_thread::yield();
      }
    });
  std::vector<int> next(senders, 0);
  std::vector<std::unique_ptr<int>> out;
  for (int got = 0; got < senders * each; got += static_cast<int>(out.size())) {
    box.wait_and_drain(out, soon());
    BOOST_REQUIRE(!out.empty());
    for (const auto& message : out) {
      int& expected = next[static_cast<std::size_t>(*message / each)];
      BOOST_REQUIRE(*message % each == expected);  // in order for each sender
      ++expected;
    }
  }
  for (auto& t : threads) t.join();
}

}  // namespace
}  // namespace skein
