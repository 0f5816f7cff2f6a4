// States and slot news on their way to a persistence actor whose mailbox is full.
#include "actors/supervisor/state_carrier.hpp"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace skein;
using device::state_key;

struct carrier_bench {
  /// What arrived, as "kept 1 2" or "dropped 1 2" of a slot, "state 1 2" or "lost 1 2".
  std::vector<std::string> arrived() {
    std::vector<persistence::message_in> messages;
    inbox.drain(messages);
    std::vector<std::string> words;
    for (const auto& m : messages) {
      const auto word = [&](const char* what, const state_key& key) {
        words.push_back(std::string(what) + ' ' + std::to_string(key.owner) + ' ' + std::to_string(key.number));
      };
      if (const auto* kept = std::get_if<persistence::slot_kept>(&m)) word("kept", kept->key);
      if (const auto* dropped = std::get_if<persistence::slot_dropped>(&m)) word("dropped", dropped->key);
      if (const auto* state = std::get_if<persistence::state_kept>(&m))
        word(state->state ? "state" : "lost", state->key);
    }
    return words;
  }
  void fill() {
    while (inbox.push_urgent(persistence::work_done{})) {
    }
  }

  persistence::mailbox inbox{1, 1};
  supervisor::state_carrier carrier{inbox};
  const device::state_buffer state = std::make_shared<const model::state_value>();
};

using words = std::vector<std::string>;

BOOST_AUTO_TEST_CASE(a_full_mailbox_hears_later_which_slots_hold_states) {
  carrier_bench b;
  b.carrier.slot_kept({7, 1}, 0);
  BOOST_TEST(b.arrived() == words{"kept 7 1"}, boost::test_tools::per_element());
  b.fill();
  b.carrier.slot_dropped({7, 1}, 0);
  b.carrier.slot_kept({7, 2}, 0);
  b.carrier.slot_kept({8, 1}, 0);
  b.carrier.slot_dropped({8, 1}, 0);  // that it came was not told either
  BOOST_TEST(b.arrived().empty());
  b.carrier.repeat();
  BOOST_TEST(b.arrived() == (words{"dropped 7 1", "kept 7 2"}), boost::test_tools::per_element());
  b.carrier.repeat();
  BOOST_TEST(b.arrived().empty());
}

BOOST_AUTO_TEST_CASE(a_state_without_room_is_reported_as_lost) {
  carrier_bench b;
  b.fill();
  b.carrier.state_kept({7, 1}, b.state);
  BOOST_TEST(b.arrived().empty());
  b.carrier.state_kept({7, 2}, b.state);
  BOOST_TEST(b.arrived() == (words{"state 7 2", "lost 7 1"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_waits_is_bounded_and_ends_with_the_mailbox) {
  carrier_bench b;
  b.fill();
  for (std::uint64_t turn = 1; turn <= 1000; ++turn) {
    b.carrier.slot_kept({7, turn}, 0);
    b.carrier.slot_dropped({7, turn}, 0);
  }
  b.carrier.slot_kept({7, 1001}, 0);
  BOOST_TEST(b.arrived().empty());
  b.carrier.repeat();
  BOOST_TEST(b.arrived() == words{"kept 7 1001"}, boost::test_tools::per_element());
  b.inbox.close();
  b.carrier.slot_kept({7, 1002}, 0);
  b.carrier.repeat();
  BOOST_TEST(b.arrived().empty());
}

}  // namespace
