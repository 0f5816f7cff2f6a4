// The life of a sequence and of its request: every legal change of place, stage and phase is accepted, and every other
// one ends the process, because only a bug in the scheduler makes one.
#include <boost/test/unit_test.hpp>
#include <set>
#include <utility>

#include "actors/device/sequence.hpp"
#include "tests/support/aborts.hpp"

namespace {

using namespace skein;
using namespace skein::device;
using skein::test::aborts;
using kind = sequence_place::kind;

constexpr kind all_places[] = {kind::nowhere, kind::waiting, kind::slot, kind::parked, kind::returning, kind::left};

BOOST_AUTO_TEST_CASE(a_sequence_moves_between_places_as_its_life_allows) {
  const std::set<std::pair<kind, kind>> legal = {
      {kind::nowhere, kind::waiting},  {kind::nowhere, kind::slot},   {kind::nowhere, kind::parked},
      {kind::nowhere, kind::left},     {kind::waiting, kind::slot},   {kind::waiting, kind::left},
      {kind::slot, kind::parked},      {kind::slot, kind::left},      {kind::parked, kind::slot},
      {kind::parked, kind::returning}, {kind::parked, kind::left},    {kind::returning, kind::slot},
      {kind::returning, kind::parked}, {kind::returning, kind::left},
  };
  for (const kind from : all_places)
    for (const kind to : all_places)
      BOOST_TEST(sequence_place::leads(from, to) == legal.contains({from, to}),
                 "from " << static_cast<int>(from) << " to " << static_cast<int>(to));
}

BOOST_AUTO_TEST_CASE(a_place_holds_a_slot_or_a_copy) {
  outside_states outside(4);
  sequence_place place;
  BOOST_TEST(!place.queued());
  place.wait();
  BOOST_TEST((place.where() == kind::waiting && place.queued() && !place.is_parked()));
  place.take(3);
  BOOST_TEST(place.slot() == 3u);
  place.park(outside.hold());
  BOOST_TEST((place.is_parked() && !place.has_slot() && outside.held() == 1));
  place.wait();
  BOOST_TEST((place.where() == kind::returning && place.copy()));
  place.stop_waiting();
  BOOST_TEST((place.where() == kind::parked && place.copy()));
  place.take(1);
  BOOST_TEST((place.slot() == 1u && outside.held() == 0));
  place.leave();
  BOOST_TEST((place.where() == kind::left));
}

BOOST_AUTO_TEST_CASE(illegal_changes_of_place_abort) {
  BOOST_TEST(!aborts([] { sequence_place().take(1); }));
  BOOST_TEST(aborts([] { (void)sequence_place().slot(); }));
  BOOST_TEST(aborts([] {
    sequence_place place;
    place.wait();
    place.wait();
  }));
  BOOST_TEST(aborts([] {
    sequence_place place;
    place.wait();
    place.stop_waiting();
  }));
  BOOST_TEST(aborts([] {
    sequence_place place;
    place.take(1);
    place.take(2);
  }));
  BOOST_TEST(aborts([] {
    sequence_place place;
    place.leave();
    place.take(1);
  }));
}

BOOST_AUTO_TEST_CASE(a_row_takes_one_stage_after_the_other) {
  sequence row;
  BOOST_TEST(!row.over());
  row.advance(row_stage::ended);
  BOOST_TEST((row.over() && !row.settling()));
  row.advance(row_stage::decided);
  BOOST_TEST((row.settling() && !row.feeds_text()));
  row.advance(row_stage::feeding);
  BOOST_TEST((row.settling() && row.feeds_text()));
  BOOST_TEST(aborts([&] { row.advance(row_stage::ended); }));
  BOOST_TEST(aborts([] { sequence().advance(row_stage::decided); }));
}

request_record of_rows(std::size_t rows, std::size_t mixture = 0) {
  request_record r;
  r.rows.resize(rows);
  r.message.prompt = {1, 2, 3};
  r.message.mixture.resize(mixture);
  return r;
}

BOOST_AUTO_TEST_CASE(only_rows_of_one_prompt_share_it_until_they_fork) {
  request_record many = of_rows(3);
  BOOST_TEST((!many.admitted() && !many.forked()));
  many.enter(request_phase::sharing);
  BOOST_TEST((many.admitted() && !many.forked() && many.feed_limit() == 2));
  many.enter(request_phase::running);
  BOOST_TEST((many.forked() && many.feed_limit() == 3));
  many.enter(request_phase::ended);
  BOOST_TEST(aborts([&] { many.enter(request_phase::ended); }));

  request_record one = of_rows(1);
  BOOST_TEST((one.forked() && one.feed_limit() == 3));
  BOOST_TEST(aborts([] { of_rows(1).enter(request_phase::sharing); }));
  one.enter(request_phase::running);
  BOOST_TEST(aborts([&] { one.enter(request_phase::running); }));
  BOOST_TEST(aborts([&] { one.enter(request_phase::queued); }));

  request_record mixture = of_rows(2, 2);
  mixture.enter(request_phase::running);
  BOOST_TEST((!mixture.forked() && mixture.feed_limit() == 2));
  BOOST_TEST(aborts([] { of_rows(2).enter(request_phase::running); }));
  BOOST_TEST(aborts([] { of_rows(2, 2).enter(request_phase::sharing); }));
}

}  // namespace
