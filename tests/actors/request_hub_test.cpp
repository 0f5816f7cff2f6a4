// Shows how replies of the persistence actor find the call that asked, by ticket, that what must not be lost is kept
// while the mailbox is full, and that events of the device travel in the same memory again and again.
#include "actors/request/shared/request_hub.hpp"

#include <boost/test/unit_test.hpp>
#include <set>

#include "actors/request/shared/event_router.hpp"
#include "actors/request/shared/reply_router.hpp"

using namespace skein;

namespace {

struct asking_call final : request::persistence_client {
  void on_reply(persistence::reply& r) override { got.push_back(std::move(r)); }
  std::vector<persistence::reply> got;
};

struct hub_bench {
  device::mailbox device{4, 4};
  persistence::mailbox sessions{1, 1};
  request::request_hub hub{3, &sessions};
  std::vector<persistence::message_in> arrived() {
    std::vector<persistence::message_in> out;
    sessions.drain(out);
    return out;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_reply_goes_to_its_caller_and_is_dropped_once_the_caller_left) {
  hub_bench b;
  asking_call first, second;
  const auto one = b.hub.open_ticket(first), two = b.hub.open_ticket(second);
  BOOST_TEST(one.io_thread == 3u);
  BOOST_TEST(one.number != two.number);
  std::vector<persistence::reply> replies;
  replies.emplace_back(persistence::turn_committed{two, 7, persistence::durability::process});
  replies.emplace_back(persistence::refused{one, {error_kind::conflict, "busy", ""}});
  b.hub.dispatch(std::move(replies));
  BOOST_REQUIRE(first.got.size() == 1u);
  BOOST_REQUIRE(second.got.size() == 1u);
  BOOST_TEST(std::get<persistence::turn_committed>(second.got[0]).version == 7u);

  b.hub.close_ticket(one.number);
  replies.clear();
  replies.emplace_back(persistence::refused{one, {error_kind::conflict, "late", ""}});
  b.hub.dispatch(std::move(replies));
  BOOST_TEST(first.got.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_full_mailbox_refuses_questions_and_keeps_what_must_not_be_lost) {
  hub_bench b;
  asking_call call;
  const auto reply = b.hub.open_ticket(call);
  BOOST_TEST(b.hub.ask(persistence::tiers_status{reply, "a"}));
  BOOST_TEST(!b.hub.ask(persistence::tiers_status{reply, "b"}));
  for (persistence::lease_id lease = 1; lease <= 3; ++lease) b.hub.tell(persistence::release{reply, lease});
  auto got = b.arrived();
  BOOST_REQUIRE(got.size() == 2u);
  BOOST_TEST(std::get<persistence::release>(got[1]).lease == 1u);

  // One of the two that are left fits beside what was asked; the question behind them has to wait its turn.
  BOOST_TEST(!b.hub.ask(persistence::tiers_status{reply, "c"}));
  got = b.arrived();
  BOOST_REQUIRE(got.size() == 2u);
  BOOST_TEST(std::get<persistence::release>(got[0]).lease == 2u);
  BOOST_TEST(std::get<persistence::release>(got[1]).lease == 3u);
  BOOST_TEST(b.hub.ask(persistence::tiers_status{reply, "d"}));
}

BOOST_AUTO_TEST_CASE(prefixes_that_were_wanted_of_who_has_left_are_given_up) {
  hub_bench b;
  asking_call call;
  const auto reply = b.hub.open_ticket(call);
  b.hub.close_ticket(reply.number);
  persistence::prefix_found found;
  found.reply = reply;
  found.keep = {{{0, 7}, 3}, {{0, 8}, 5}};
  std::vector<persistence::reply> replies;
  replies.emplace_back(found);
  b.hub.dispatch(std::move(replies));
  const auto got = b.arrived();
  BOOST_REQUIRE(got.size() == 2u);
  BOOST_TEST(std::get<persistence::state_kept>(got[0]).key.number == 7u);
  BOOST_TEST(!std::get<persistence::state_kept>(got[1]).state);
}

BOOST_AUTO_TEST_CASE(without_the_actor_nothing_is_asked_or_kept) {
  request::request_hub hub(0);
  asking_call call;
  const auto reply = hub.open_ticket(call);
  BOOST_TEST(!hub.ask(persistence::tiers_status{reply, "a"}));
  hub.tell(persistence::release{reply, 1});
  hub.dispatch(std::vector<persistence::reply>{});
}

BOOST_AUTO_TEST_CASE(messages_wait_for_a_full_device_and_not_for_one_that_has_ended) {
  request::request_hub hub(0);
  const auto first = std::make_shared<device::mailbox>(0, 1), second = std::make_shared<device::mailbox>(0, 1);
  for (request_id id = 1; id <= 3; ++id) hub.tell(first, device::cancel{id});
  hub.tell(second, device::cancel{4});
  BOOST_TEST(first->size() == 1u);
  BOOST_TEST(second->size() == 1u);
  BOOST_TEST(first.use_count() == 2);  // what waits keeps the mailbox
  BOOST_TEST(second.use_count() == 1);
  first->close();
  hub.tick(steady_time());
  BOOST_TEST(first.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(a_hung_device_delays_no_message_to_another_and_each_gets_its_own_in_order) {
  request::request_hub hub(0);
  const auto hung = std::make_shared<device::mailbox>(0, 1), other = std::make_shared<device::mailbox>(0, 2);
  for (request_id id = 1; id <= 3; ++id) hub.tell(hung, device::cancel{id});
  const auto ids_of = [](device::mailbox& inbox) {
    std::vector<device::message> got;
    inbox.drain(got);
    std::vector<request_id> ids;
    for (const auto& m : got) ids.push_back(std::get<device::cancel>(m).id);
    return ids;
  };
  hub.tell(other, device::cancel{4});
  hub.tell(other, device::cancel{5});
  hub.tell(other, device::cancel{6});  // full too
  BOOST_TEST(ids_of(*other) == (std::vector<request_id>{4, 5}), boost::test_tools::per_element());
  hub.tick(steady_time());
  BOOST_TEST(ids_of(*other) == (std::vector<request_id>{6}), boost::test_tools::per_element());
  for (request_id id = 1; id <= 3; ++id) {
    BOOST_TEST(ids_of(*hung) == (std::vector<request_id>{id}), boost::test_tools::per_element());
    hub.tick(steady_time());
  }
}

BOOST_AUTO_TEST_CASE(events_travel_in_memory_that_is_used_again) {
  request::request_hub hub(0);
  request::event_router router(1, 100, [](std::uint32_t) {});
  device::events batch;
  std::set<const void*> places;
  for (request_id tick = 1; tick <= 50; ++tick) {
    for (std::uint32_t row = 0; row < 20; ++row) batch.items.push_back(device::row_finished{tick, row});
    router.deliver(0, std::move(batch));
    batch.items.clear();
    if (tick % 3 == 0) continue;  // an io thread that is behind
    auto taken = router.take(0);
    BOOST_TEST(std::get<device::row_finished>(taken.back()).id == tick);
    places.insert(taken.data());
    router.give_back(0, hub.dispatch(std::move(taken)));
  }
  BOOST_TEST(places.size() <= 5u);  // three vectors go round, two of which grew once
  BOOST_TEST(router.take(0).empty());
}

BOOST_AUTO_TEST_CASE(events_that_cannot_be_announced_stay_with_the_sender) {
  bool fails = true;
  std::vector<std::uint32_t> woken;
  request::event_router router(1, 100, [&](std::uint32_t i) {
    if (std::exchange(fails, false)) throw std::bad_alloc();
    woken.push_back(i);
  });
  device::events batch;
  batch.items.push_back(device::row_finished{7, 0});
  BOOST_CHECK_THROW(router.deliver(0, std::move(batch)), std::bad_alloc);
  BOOST_TEST(router.take(0).empty());
  BOOST_REQUIRE(batch.items.size() == 1u);
  router.deliver(0, std::move(batch));
  BOOST_TEST(woken.size() == 1u);  // the io thread hears of them
  BOOST_TEST(router.take(0).size() == 1u);
}

BOOST_AUTO_TEST_CASE(the_router_wakes_an_io_thread_once_and_keeps_the_order) {
  std::vector<std::uint32_t> woken;
  request::reply_router router(2, [&](std::uint32_t i) { woken.push_back(i); });
  for (persistence::version_id v = 1; v <= 3; ++v)
    router.deliver(persistence::turn_committed{{1, 10 + v}, v, persistence::durability::memory});
  BOOST_TEST(woken == std::vector<std::uint32_t>{1}, boost::test_tools::per_element());
  BOOST_TEST(router.take(0).empty());
  const auto taken = router.take(1);
  BOOST_REQUIRE(taken.size() == 3u);
  BOOST_TEST(std::get<persistence::turn_committed>(taken[2]).version == 3u);
  router.deliver(persistence::turn_committed{{1, 1}, 4, persistence::durability::memory});
  BOOST_TEST(woken.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_reply_that_cannot_be_announced_stays_with_the_sender) {
  bool fails = true;
  std::vector<std::uint32_t> woken;
  request::reply_router router(1, [&](std::uint32_t i) {
    if (std::exchange(fails, false)) throw std::bad_alloc();
    woken.push_back(i);
  });
  persistence::reply r = persistence::refused{{0, 7}, {error_kind::conflict, "a message of more than a few bytes", ""}};
  BOOST_CHECK_THROW(router.deliver(std::move(r)), std::bad_alloc);
  BOOST_TEST(router.take(0).empty());
  router.deliver(std::move(r));
  BOOST_TEST(woken.size() == 1u);
  const auto taken = router.take(0);
  BOOST_REQUIRE(taken.size() == 1u);
  BOOST_TEST(std::get<persistence::refused>(taken[0]).why.message == "a message of more than a few bytes");
}
