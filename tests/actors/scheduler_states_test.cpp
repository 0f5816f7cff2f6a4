// States that come and go: sequences that begin with one, copies of what a prompt made of it, settled states and the
// slots that keep them; stepped by hand against the model of an engine (scheduler_world). Every state that the sink
// gets must be the hash of exactly the tokens that it stands for, and every key is answered once.
#include <boost/test/unit_test.hpp>
#include <limits>

#include "tests/actors/scheduler_world.hpp"

namespace {

using namespace skein;
using namespace skein::test;

device::beginning begin_with(std::uint64_t hash) { return {state_of(hash), {}}; }

/// Runs until the row has that many tokens.
void run_until(world& w, request_id id, std::size_t tokens) {
  for (int i = 0; i < 2000 && w.clients[id].rows[0].got.size() < tokens; ++i) w.turn();
  BOOST_REQUIRE_EQUAL(w.clients[id].rows[0].got.size(), tokens);
}

}  // namespace

BOOST_AUTO_TEST_CASE(sequences_begin_with_a_state) {
  world w(small(2));
  const auto one = w.send({.prompt = {1, 2, 3}, .beginning = 77, .from = begin_with(77)});
  const auto rows = w.send({.prompt = {4, 5}, .n = 5, .beginning = 88, .from = begin_with(88)});
  const auto short_rows = w.send({.prompt = {6}, .n = 3, .beginning = 99, .from = begin_with(99)});
  w.run_dry();
  w.judge();
  for (const auto id : {one, rows, short_rows}) BOOST_TEST(w.clients[id].over());
}

BOOST_AUTO_TEST_CASE(a_state_of_another_size_is_rejected) {
  world w(small(2));
  const auto id = w.send({.prompt = {1},
                          .from = {std::make_shared<const model::state_value>(
                                       model::state_value{{{.layers = 1, .embd = 3}}, std::vector<std::byte>(24)}),
                                   {}},
                          .copies = {1},
                          .settles = true});
  w.run_dry();
  BOOST_TEST((w.clients[id].refused == error_kind::internal));
  w.judge_keys();
}

// The limit of parked bytes counts the bytes of the engine's type.
BOOST_AUTO_TEST_CASE(parked_fp16_states_count_half) {
  for (const dtype type : {dtype::f32, dtype::f16}) {
    auto o = small(2);
    o.state = {state_layout, type};
    o.parked_bytes_max = 2 * state_bytes;
    world w(o);
    for (int i = 0; i < 12; ++i) w.send(endless_prompt(), 1, 40, false, std::string(1, static_cast<char>('a' + i)));
    std::size_t most_bytes = 0;
    std::uint32_t most = 0;
    while (w.turn()) {
      const auto counts = w.schedule.counts();
      BOOST_REQUIRE_EQUAL(counts.parked_bytes, counts.parked * o.state.bytes());
      most_bytes = std::max(most_bytes, counts.parked_bytes), most = std::max(most, counts.parked);
    }
    BOOST_TEST(most == (type == dtype::f16 ? 4u : 2u));
    BOOST_TEST(most_bytes == 2 * state_bytes);
    w.judge();
  }
}

// A state in another type fits: the engine converts it.
BOOST_AUTO_TEST_CASE(a_state_of_another_type_is_accepted) {
  auto o = small(1);
  o.state = {state_layout, dtype::f16};
  world w(o);
  const auto id = w.send({.prompt = {1, 2}, .beginning = 77, .from = begin_with(77)});  // fp32
  w.run_dry();
  w.judge();
  BOOST_TEST(w.clients[id].over());
}

BOOST_AUTO_TEST_CASE(copies_are_taken_where_they_are_wanted) {
  world w(small(2));
  std::vector<token_id> prompt(40);
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<token_id>(i);
  w.send({.prompt = prompt, .beginning = 5, .from = begin_with(5), .copies = {1, 2, 16, 17, 39, 40, 40}});
  w.send({.prompt = prompt, .n = 3, .copies = {3, 39, 40}});
  w.send({.prompt = prompt, .budget = 0, .copies = {40}});
  w.run_dry();
  w.judge();
  w.judge_keys();
  for (const auto& [key, a] : w.asked) BOOST_TEST(a.state != nullptr);
  BOOST_TEST(w.schedule.counts().copies_taken == 11u);
  BOOST_TEST(w.schedule.counts().copies_refused == 0u);
}

BOOST_AUTO_TEST_CASE(copies_above_their_ceiling_are_refused_at_once) {
  scheduler_options o = small(4);
  o.copies_max = 2;
  world w(o);
  for (int i = 0; i < 4; ++i) w.send({.prompt = {1, 2}, .copies = {2}});
  w.run_dry();
  w.judge_keys();
  std::size_t taken = 0;
  for (const auto& [key, a] : w.asked) taken += a.state != nullptr;
  BOOST_TEST(taken == 2u);
  BOOST_TEST(w.schedule.counts().copies_refused == 2u);
  for (int i = 0; i < 2; ++i) w.send({.prompt = {1, 2}, .copies = {2}});  // the others have arrived
  w.run_dry();
  BOOST_TEST(w.schedule.counts().copies_taken == 4u);
}

BOOST_AUTO_TEST_CASE(ticks_do_not_wait_for_downloads) {
  scheduler_options o = small(6);
  o.leaving_max = 2;
  world w(o);
  w.engine.leaving_max = 2;
  std::size_t moves = 0;
  w.engine.moves_at_once = [&] { return moves; };
  std::vector<request_id> ids;
  for (token_id i = 0; i < 4; ++i) ids.push_back(w.send({.prompt = {1, i}, .copies = {2}}));
  const auto settles = w.send({.prompt = {9}, .settles = true});
  for (int i = 0; i < 40; ++i) w.turn();
  for (const auto id : ids) BOOST_TEST(w.clients[id].over());
  BOOST_TEST(w.schedule.counts().copies_taken == 2u);
  BOOST_TEST(w.schedule.counts().copies_refused == 2u);
  w.settle(settles, static_cast<std::uint32_t>(w.clients[settles].rows[0].got.size()));
  for (int i = 0; i < 40; ++i) w.turn();
  BOOST_TEST(!w.settled(settles).answered);
  BOOST_TEST(w.schedule.waits_for_states());
  moves = 1;
  w.run_dry();
  w.judge();
  w.judge_keys();
  BOOST_TEST(w.settled(settles).state != nullptr);
}

BOOST_AUTO_TEST_CASE(ticks_do_not_wait_for_uploads) {
  scheduler_options o = small(5);
  o.coming_max = 1;
  world w(o);
  w.engine.coming_max = 1;
  std::size_t moves = 0;
  w.engine.moves_at_once = [&] { return moves; };
  const auto runs = w.send({.prompt = endless_prompt(), .budget = endless});
  run_until(w, runs, 2);
  std::vector<request_id> ids;
  for (std::uint64_t i = 1; i <= 3; ++i) ids.push_back(w.send({.prompt = {3}, .beginning = i, .from = begin_with(i)}));
  const auto fresh = w.send({.prompt = {4}});
  for (int i = 0; i < 40; ++i) w.turn();
  BOOST_TEST(w.clients[fresh].over());
  BOOST_TEST(w.clients[ids[0]].admitted);
  BOOST_TEST(!w.clients[ids[1]].admitted);
  BOOST_TEST(w.clients[ids[0]].rows[0].got.empty());
  moves = 1;
  for (int i = 0; i < 40; ++i) w.turn();
  for (const auto id : ids) BOOST_TEST(w.clients[id].over());
  w.judge();
}

BOOST_AUTO_TEST_CASE(a_position_outside_the_prompt_is_answered_with_nothing) {
  world w(small(1));
  submit s;
  s.id = 1;
  s.reply_to = 1;
  s.prompt = {1, 2};
  s.rows.resize(1);
  s.rows[0].max_tokens = 2;
  s.queue_deadline = s.total_deadline = w.time.now() + 1h;
  s.copies = {{w.ask(0, 0), 0}, {w.ask(0, 0), 3}};
  w.clients[1].rows.resize(1);
  w.clients[1].wish = {.prompt = {1, 2}, .budget = 2};
  w.schedule.handle(std::move(s), w.time.now());
  w.run_dry();
  w.judge();
  w.judge_keys();
}

BOOST_AUTO_TEST_CASE(a_cancelled_prompt_answers_for_its_copies) {
  world w(small(1));
  const auto id = w.send({.prompt = std::vector<token_id>(100, 3), .copies = {5, 90}});
  const auto queued = w.send({.prompt = {1}, .copies = {1}, .settles = true});
  for (int i = 0; i < 3; ++i) w.turn();
  w.cancel(id);
  w.cancel(queued);
  w.run_dry();
  w.judge_keys();
  std::size_t taken = 0;
  for (const auto& [key, a] : w.asked) taken += a.state != nullptr;
  BOOST_TEST(taken == 1u);
}

BOOST_AUTO_TEST_CASE(a_row_that_is_over_is_settled) {
  for (const std::uint32_t budget : {0u, 1u, 6u, endless}) {
    world w(small(2));
    const auto id = w.send({.prompt = {1, 2, 3}, .budget = budget, .settles = true});
    w.run_dry();
    BOOST_REQUIRE(w.clients[id].over());
    BOOST_TEST(w.schedule.counts().slots_used == 1u);  // waits for its text
    w.settle(id, static_cast<std::uint32_t>(w.clients[id].rows[0].got.size()), {10, 11});
    w.run_dry();
    w.judge();
    w.judge_keys();
    BOOST_TEST(w.settled(id).state != nullptr);
    BOOST_TEST(w.schedule.counts().settles == 1u);
    BOOST_TEST(w.schedule.counts().settles_back == 0u);
    BOOST_TEST(w.schedule.counts().slots_used == 0u);
    BOOST_TEST(w.schedule.counts().requests == 0u);
    BOOST_TEST(w.kept.contains(w.clients[id].settles_as));
  }
}

BOOST_AUTO_TEST_CASE(a_text_cut_below_what_was_swallowed_goes_back) {
  for (const bool may_cut : {true, false})
    for (const std::size_t undo_states : {std::size_t{0}, std::size_t{1}}) {
      scheduler_options o = small(2);
      o.undo_bytes_max = undo_states * state_bytes;
      world w(o);
      const auto id = w.send({.prompt = endless_prompt(),
                              .budget = endless,
                              .beginning = 9,
                              .from = begin_with(9),
                              .settles = true,
                              .may_cut = may_cut});
      run_until(w, id, 12);
      BOOST_TEST(w.schedule.counts().undo_bytes == (may_cut ? undo_states * state_bytes : 0u));
      w.settle(id, 7, {500});
      w.read_events();
      BOOST_TEST((w.clients[id].rows[0].end == finish_cause::cancelled));  // at once
      w.run_dry();
      w.judge();
      w.judge_keys();
      BOOST_TEST(w.settled(id).state != nullptr);
      BOOST_TEST(w.schedule.counts().settles_back == 1u);
      BOOST_TEST(w.schedule.counts().undo_bytes == 0u);
    }
}

BOOST_AUTO_TEST_CASE(a_text_cut_below_an_end_that_found_no_memory_is_not_settled) {
  scheduler_options o = small(2);
  o.undo_bytes_max = state_bytes;
  world w(o);
  const auto id = w.send({.prompt = endless_prompt(), .budget = endless, .settles = true, .may_cut = true});
  w.engine.no_memory = true;
  run_until(w, id, 12);
  w.engine.no_memory = false;
  BOOST_TEST(w.schedule.counts().undo_bytes == state_bytes);
  w.settle(id, 7, {500});
  w.run_dry();
  w.judge();
  w.judge_keys();
  BOOST_TEST(w.settled(id).state == nullptr);
  BOOST_TEST(w.schedule.counts().undo_bytes == 0u);
  BOOST_TEST(w.schedule.counts().slots_used == 0u);
}

BOOST_AUTO_TEST_CASE(what_was_swallowed_and_is_in_the_text_stays) {
  world w(small(1));
  const auto id = w.send({.prompt = endless_prompt(), .budget = endless, .settles = true});
  run_until(w, id, 12);
  const auto& got = w.clients[id].rows[0].got;
  w.settle(id, 8, {got.begin() + 8, got.end()});  // the same tokens, said otherwise
  w.run_dry();
  w.judge_keys();
  BOOST_TEST(w.settled(id).state != nullptr);
  BOOST_TEST(w.schedule.counts().settles_back == 0u);
}

BOOST_AUTO_TEST_CASE(a_cut_to_nothing_settles_the_prompt) {
  world w(small(1));
  const auto id = w.send({.prompt = endless_prompt(), .budget = endless, .settles = true});
  run_until(w, id, 5);
  w.settle(id, 0);
  w.settle(id, 3);  // a second one is ignored
  w.run_dry();
  w.judge_keys();
  BOOST_TEST(w.settled(id).state != nullptr);
}

BOOST_AUTO_TEST_CASE(a_text_decided_before_the_prompt_was_fed_is_settled_too) {
  world w(small(1));
  const auto id = w.send({.prompt = std::vector<token_id>(60, 4), .copies = {30, 60}, .settles = true});
  w.turn();
  w.turn();
  w.settle(id, 0, {8, 9});
  w.run_dry();
  w.judge_keys();
  for (const auto& [key, a] : w.asked) BOOST_TEST(a.state != nullptr);
}

BOOST_AUTO_TEST_CASE(a_parked_row_is_settled) {
  world w(small(1));
  const auto id = w.send({.prompt = endless_prompt(), .budget = endless, .who = "a", .settles = true});
  run_until(w, id, 4);
  w.schedule.handle(device::pause{id}, w.time.now());
  const auto other = w.send({.prompt = endless_prompt(), .budget = 4, .who = "b"});
  w.run_dry();
  BOOST_TEST(w.schedule.counts().parked == 1u);
  BOOST_TEST(w.clients[other].over());
  w.settle(id, 3, {1});  // though its reader is slow
  w.run_dry();
  w.judge();
  w.judge_keys();
  BOOST_TEST(w.settled(id).state != nullptr);
  BOOST_TEST(w.schedule.counts().parked == 0u);
}

BOOST_AUTO_TEST_CASE(a_row_that_ran_out_of_time_waits_for_its_text) {
  world w(small(1));
  const auto id = w.send({.prompt = endless_prompt(), .budget = endless, .settles = true, .life = 10ms});
  for (int i = 0; i < 20; ++i) w.turn();
  BOOST_TEST((w.clients[id].rows[0].end == finish_cause::timeout));
  BOOST_TEST(w.schedule.counts().requests == 1u);
  w.settle(id, static_cast<std::uint32_t>(w.clients[id].rows[0].got.size()));
  w.run_dry();
  w.judge_keys();
  BOOST_TEST(w.settled(id).state != nullptr);
  BOOST_TEST(w.schedule.counts().settles_back == 0u);
}

// So the answer can be continued from a state that is there: its last token is fed again.
BOOST_AUTO_TEST_CASE(the_state_of_a_row_that_was_cut_off_lacks_its_last_token) {
  for (const bool drains : {true, false}) {
    world w(small(2));
    const auto id =
        w.send({.prompt = endless_prompt(), .budget = endless, .settles = true, .life = drains ? 1h : 10ms});
    w.turn();
    if (drains) w.schedule.handle(device::shutdown{w.time.now() + 10ms}, w.time.now());
    for (int i = 0; i < 20; ++i) w.turn();
    BOOST_TEST((w.clients[id].rows[0].end == (drains ? finish_cause::shutdown : finish_cause::timeout)));
    BOOST_TEST(!w.schedule.finished());
    w.settle(id, static_cast<std::uint32_t>(w.clients[id].rows[0].got.size()) - 1);
    w.run_dry();
    w.judge_keys();
    BOOST_TEST(w.settled(id).state != nullptr);
    BOOST_TEST(w.schedule.counts().settles_back == 0u);
    BOOST_TEST(w.schedule.finished() == drains);
  }
}

BOOST_AUTO_TEST_CASE(a_cut_off_row_that_is_not_settled_ends_soon_after_a_shutdown) {
  world w(small(1));
  const auto id = w.send({.prompt = endless_prompt(), .budget = endless, .settles = true});
  w.turn();
  w.schedule.handle(device::shutdown{w.time.now()}, w.time.now());
  w.run_dry();
  BOOST_TEST((w.clients[id].rows[0].end == finish_cause::shutdown));
  BOOST_TEST(!w.schedule.finished());
  w.time.advance(2s);
  w.run_dry();
  BOOST_TEST(w.schedule.finished());
  w.judge_keys();
  BOOST_TEST(w.settled(id).state == nullptr);
}

BOOST_AUTO_TEST_CASE(a_cancel_ends_the_wait_for_a_text) {
  world w(small(1));
  const auto id = w.send({.prompt = {1}, .budget = 3, .settles = true});
  w.run_dry();
  w.cancel(id);
  w.run_dry();
  w.judge_keys();
  BOOST_TEST(w.settled(id).state == nullptr);
  BOOST_TEST(w.schedule.counts().slots_used == 0u);
  w.settle(id, 0);  // late, and harmless
}

BOOST_AUTO_TEST_CASE(shutdown_waits_for_settling_until_its_deadline) {
  for (const bool in_time : {true, false}) {
    world w(small(1));
    const auto id = w.send({.prompt = {1}, .budget = 3, .settles = true});
    w.run_dry();
    w.schedule.handle(device::shutdown{w.time.now() + 1s}, w.time.now());
    w.run_dry();
    BOOST_TEST(!w.schedule.finished());
    if (in_time)
      w.settle(id, 1);
    else
      w.time.advance(2s);
    w.run_dry();
    BOOST_TEST(w.schedule.finished());
    w.judge_keys();
    BOOST_TEST((w.settled(id).state != nullptr) == in_time);
  }
}

BOOST_AUTO_TEST_CASE(without_a_sink_nothing_waits) {
  scheduler_options o = small(1);
  o.keeps_states = false;
  world w(o);
  const auto ended = w.send({.prompt = {1}, .budget = 3, .copies = {1}, .settles = true});
  w.run_dry();
  BOOST_TEST(w.schedule.counts().requests == 0u);
  const auto cut = w.send({.prompt = endless_prompt(), .budget = endless, .settles = true});
  run_until(w, cut, 4);
  w.settle(cut, 2);  // stands for cancel_row
  w.run_dry();
  BOOST_TEST(w.clients[ended].over());
  BOOST_TEST((w.clients[cut].rows[0].end == finish_cause::cancelled));
  BOOST_TEST(w.schedule.counts().slots_kept == 0u);
  for (const auto& [key, a] : w.asked) BOOST_TEST(!a.answered);
}

BOOST_AUTO_TEST_CASE(a_kept_slot_is_taken_up_without_a_copy) {
  world w(small(3));
  std::vector<token_id> whole = {1, 2, 3};
  std::uint64_t hash = 0;
  device::beginning from;
  for (int turn = 0; turn < 20; ++turn) {
    const auto id = w.send({.prompt = whole, .budget = 4, .beginning = hash, .from = from, .settles = true});
    w.run_dry();
    w.settle(id, static_cast<std::uint32_t>(w.clients[id].rows[0].got.size()));
    w.run_dry();
    const asked_state& settled = w.settled(id);
    BOOST_REQUIRE(settled.state);
    BOOST_TEST(w.kept.size() == 1u);
    hash = *settled.hash;
    from = {turn % 2 ? settled.state : nullptr, w.clients[id].settles_as};  // the slot has it in any case
    whole = {static_cast<token_id>(turn)};
  }
  w.judge();
  BOOST_TEST(w.schedule.counts().kept_hits == 19u);
}

BOOST_AUTO_TEST_CASE(the_state_kept_longest_goes_first) {
  scheduler_options o = small(3);
  o.vram_states_max = 2;
  world w(o);
  std::vector<request_id> ids;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(w.send({.prompt = {1, static_cast<token_id>(i)}, .budget = 2, .settles = true}));
    w.run_dry();
    w.settle(ids.back(), 1);
    w.run_dry();
  }
  const auto key = [&](int i) { return w.clients[ids[static_cast<std::size_t>(i)]].settles_as; };
  BOOST_TEST((w.kept == std::set<state_key>{key(1), key(2)}));
  const auto others = [&](int n) {
    for (int i = 0; i < n; ++i) w.send({.prompt = endless_prompt(), .budget = endless});
    w.turn();
  };
  others(1);  // there is an empty slot
  BOOST_TEST(w.kept.size() == 2u);
  others(1);
  BOOST_TEST((w.kept == std::set<state_key>{key(2)}));
  const auto gone = w.send({.prompt = {1}, .from = {nullptr, key(1)}, .settles = true});
  w.turn();
  BOOST_TEST((w.clients[gone].refused == error_kind::unavailable));
  BOOST_TEST(w.asked.at(w.clients[gone].settles_as).answered);
}

BOOST_AUTO_TEST_CASE(a_forgotten_owner_leaves_nothing_in_slots) {
  world w(small(4));
  std::vector<request_id> ids;  // owners 2, 3, 4 and 5
  for (int i = 0; i < 4; ++i) {
    ids.push_back(w.send({.prompt = {1, static_cast<token_id>(i)}, .budget = 2, .settles = true}));
  }
  w.run_dry();
  for (int i = 0; i < 3; ++i) w.settle(ids[static_cast<std::size_t>(i)], 1);
  w.run_dry();
  BOOST_TEST(w.kept.size() == 3u);
  const auto owner = [&](std::size_t i) { return w.clients[ids[i]].settles_as.owner; };
  w.schedule.handle(forget{owner(0)}, w.time.now());
  w.schedule.handle(forget{owner(3)}, w.time.now());  // still to be settled
  w.settle(ids[3], 1);
  w.run_dry();
  BOOST_TEST(w.kept.size() == 2u);
  BOOST_TEST(w.settled(ids[3]).state != nullptr);
  std::uint32_t zero = 0;
  for (slot_id i = 0; i < 4; ++i) zero += w.engine.zeroed(i);
  BOOST_TEST(zero == 2u);
}

BOOST_AUTO_TEST_CASE(a_mixture_samples_as_one) {
  for (const std::size_t length : {1u, 2u, 40u})
    for (const std::uint32_t budget : {0u, 1u, 20u}) {
      world w(small(4));
      const std::vector<token_id> prompt(length, 3);
      const auto id = w.send({.prompt = prompt, .budget = budget, .mixture = {{11, 1}, {0, 2}, {13, 0.5f}}});
      const auto other = w.send({.prompt = prompt, .budget = budget, .mixture = {{11, 1}}});
      const auto alone = w.send({.prompt = prompt, .budget = budget, .beginning = 11, .from = begin_with(11)});
      w.run_dry();
      w.judge();
      for (const auto one : {id, other, alone}) BOOST_TEST(w.clients[one].over());
      BOOST_TEST(w.schedule.counts().slots_used == 0u);
    }
}

BOOST_AUTO_TEST_CASE(a_mixture_gets_its_ticks_when_not_all_fit) {
  scheduler_options o = small(5);
  o.max_tick_rows = 4;
  world w(o);
  for (int i = 0; i < 2; ++i) w.send({.prompt = endless_prompt(), .budget = endless});
  for (int i = 0; i < 3; ++i) w.turn();
  const auto id = w.send({.prompt = endless_prompt(), .budget = 9, .mixture = {{1, 1}, {2, 1}, {3, 1}}});
  for (int i = 0; i < 40; ++i) w.turn();
  BOOST_TEST(w.clients[id].over());
  w.judge();
}

BOOST_AUTO_TEST_CASE(a_share_of_nothing_takes_no_slot) {
  world w(small(1));
  const auto id = w.send({.prompt = {1, 2}, .mixture = {{11, 0}, {12, 1}, {13, 0}}});
  w.clients[id].wish.mixture = {{12, 1}};
  w.run_dry();
  w.judge();
  BOOST_TEST(w.clients[id].over());
  BOOST_TEST(!w.clients[id].refused);
}

BOOST_AUTO_TEST_CASE(a_mixture_gives_way_and_comes_back_whole) {
  scheduler_options o = small(3);
  o.parked_bytes_max = 3 * state_bytes;
  world w(o);
  const auto mixture =
      w.send({.prompt = endless_prompt(), .budget = 60, .who = "a", .mixture = {{1, 1}, {2, 1}, {3, 1}}});
  for (int i = 0; i < 12; ++i) w.turn();
  const auto other = w.send({.prompt = {2}, .budget = 3, .who = "b"});
  std::uint32_t most = 0;
  for (int i = 0; i < 12; ++i) {
    w.turn();
    most = std::max(most, w.schedule.counts().parked);
  }
  BOOST_TEST(most == 3u);
  BOOST_TEST(w.clients[other].over());
  BOOST_TEST(!w.clients[mixture].over());
  w.run_dry();
  w.judge();
  BOOST_TEST(w.clients[mixture].over());
}

BOOST_AUTO_TEST_CASE(impossible_mixtures_are_refused) {
  const float none = std::numeric_limits<float>::quiet_NaN(), all = std::numeric_limits<float>::max();
  const auto refusal = [](scheduler_options o, order wish) {
    world w(o);
    const auto id = w.send(std::move(wish));
    w.run_dry();
    w.judge_keys();
    return w.clients[id].refused;
  };
  using enum error_kind;
  BOOST_TEST(
      (refusal(small(4), {.prompt = {1}, .copies = {1}, .settles = true, .mixture = {{1, 0}}}) == invalid_argument));
  BOOST_TEST((refusal(small(4), {.prompt = {1}, .mixture = {{1, -1}, {2, 3}}}) == invalid_argument));
  BOOST_TEST((refusal(small(4), {.prompt = {1}, .mixture = {{1, none}}}) == invalid_argument));
  BOOST_TEST((refusal(small(4), {.prompt = {1}, .mixture = {{1, all}, {2, all}}}) == invalid_argument));
  BOOST_TEST((refusal(small(2), {.prompt = {1}, .mixture = {{1, 1}, {2, 1}, {3, 1}}}) == too_large));
  BOOST_TEST((refusal(small(4), {.prompt = {1}, .n = 2, .mixture = {{1, 1}}}) == unsupported));
  BOOST_TEST((refusal(small(4), {.prompt = {1}, .scored = true, .mixture = {{1, 1}}}) == unsupported));
  scheduler_options o = small(4);
  o.mixture_max = 1;
  BOOST_TEST((refusal(o, {.prompt = {1}, .mixture = {{1, 1}, {2, 1}}}) == too_large));
  // Its keys are answered at once, with nothing.
  BOOST_TEST((!refusal(small(4), {.prompt = {1}, .copies = {1}, .settles = true, .mixture = {{1, 1}}})));
}

BOOST_AUTO_TEST_CASE(a_refusal_without_memory_is_sent_once) {
  world w(small(1));
  w.send({.prompt = endless_prompt(), .budget = 6});
  w.turn();
  for (int i = 0; i < 2; ++i)  // one finds room for the answers to its keys
    w.send({.prompt = std::vector<token_id>(200, 1),
            .patience = 5ms,
            .copies = std::vector<std::uint32_t>(200, 7),
            .settles = true});
  w.time.advance(1s);
  w.fails_from = 8000;
  BOOST_CHECK_THROW(w.turn(), std::bad_alloc);
  w.fails_from = 0;
  w.lose_device();
  w.judge_keys();
  for (auto& [id, c] : w.clients) BOOST_TEST(c.over());
}

BOOST_AUTO_TEST_CASE(a_lost_device_answers_every_key) {
  world w(small(3));
  const auto kept = w.send({.prompt = {1}, .budget = 2, .settles = true});
  w.run_dry();
  w.settle(kept, 1);
  w.run_dry();
  BOOST_TEST(w.kept.size() == 1u);
  for (int i = 0; i < 9; ++i)
    w.send({.prompt = std::vector<token_id>(20, i), .budget = 3, .copies = {5, 6, 20}, .settles = true});
  for (int i = 0; i < 4; ++i) w.turn();
  w.lose_device();
  w.judge_keys();
  BOOST_TEST(w.kept.empty());
  for (auto& [id, c] : w.clients) BOOST_TEST(c.over());
  w.send({.prompt = {1}, .copies = {1}, .settles = true});
  w.read_events();
  w.judge_keys();
}
