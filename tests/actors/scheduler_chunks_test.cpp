// Which tokens of a prompt go in which chunk is said by the prompt alone: whatever else is planned, a plan carries
// whole chunks, and what a row is told of its chunks is what engine/prompt_parts.hpp says. In this world the end of a
// chunk is a part of the state (scheduler_world.hpp), so every other chunk shows as another answer.
#include <boost/test/unit_test.hpp>
#include <random>

#include "tests/actors/scheduler_world.hpp"

namespace {

using namespace skein;
using namespace skein::test;
using engine::prompt_part;

scheduler_options in_chunks_of(std::uint32_t chunk, std::uint32_t slots) {
  scheduler_options o = small(slots);
  o.chunk_tokens = chunk;
  return o;
}

std::vector<token_id> prompt_of(std::size_t tokens) {
  std::vector<token_id> prompt = endless_prompt();
  prompt.resize(tokens, 3);
  return prompt;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(scheduler_chunks)

BOOST_AUTO_TEST_CASE(all_but_the_last_token_goes_in_chunks_of_half_the_size_at_least) {
  const auto chunked = [](std::uint32_t tokens) { return engine::chunked_tokens(tokens, 64); };
  for (const std::uint32_t few : {0u, 1u, 2u, 32u}) BOOST_TEST(chunked(few) == 0u);
  BOOST_TEST(chunked(33) == 32u);
  BOOST_TEST(chunked(64) == 63u);
  BOOST_TEST(chunked(65) == 64u);
  BOOST_TEST(chunked(66) == 64u);
  BOOST_TEST(chunked(96) == 64u);
  BOOST_TEST(chunked(97) == 96u);
  BOOST_TEST(chunked(512) == 511u);
  BOOST_TEST(engine::chunked_tokens(512, 0) == 0u);
  BOOST_TEST(engine::chunked_tokens(prompt_part{512, true}, 64) == 0u);
}

BOOST_AUTO_TEST_CASE(a_state_is_copied_between_chunks_only) {
  const prompt_part parts[] = {{100, false}, {30, true}, {70, false}};
  std::vector<std::uint32_t> inside;
  for (std::uint32_t at = 0; at <= 200; ++at)
    if (!engine::may_cut(parts, 64, at)) inside.push_back(at);
  std::vector<std::uint32_t> expected;
  for (std::uint32_t at = 1; at < 99; ++at)
    if (at != 64) expected.push_back(at);
  for (std::uint32_t at = 131; at < 194; ++at) expected.push_back(at);
  BOOST_TEST(inside == expected, boost::test_tools::per_element());
  for (std::uint32_t at = 0; at <= 200; ++at) BOOST_TEST(engine::may_cut(parts, 0, at));
}

BOOST_AUTO_TEST_CASE(pieces_are_whole_chunks_and_then_single_tokens) {
  const prompt_part parts[] = {{100, false}, {30, true}, {7, false}, {70, false}};
  const auto piece = [&](std::uint32_t from, std::uint32_t room, std::uint32_t end = 207) {
    const auto [tokens, chunked] = engine::next_piece(parts, 64, from, end, room);
    return std::pair(tokens, chunked);
  };
  using pair = std::pair<std::uint32_t, std::uint32_t>;
  BOOST_CHECK(piece(0, 63) == pair(0, 0));
  BOOST_CHECK(piece(0, 98) == pair(64, 64));
  BOOST_CHECK(piece(0, 99) == pair(99, 99));
  BOOST_CHECK(piece(0, 120) == pair(120, 99));
  BOOST_CHECK(piece(0, 1000) == pair(137, 99));  // chunks are the first tokens of a row
  BOOST_CHECK(piece(0, 1000, 64) == pair(64, 64));
  BOOST_CHECK(piece(64, 34) == pair(0, 0));
  BOOST_CHECK(piece(64, 35) == pair(35, 35));
  BOOST_CHECK(piece(99, 5) == pair(5, 0));
  BOOST_CHECK(piece(137, 1000) == pair(70, 64));
  BOOST_CHECK(piece(137, 1000, 206) == pair(69, 64));
  BOOST_CHECK(piece(206, 1000) == pair(1, 0));
}

/// Answers are what prompts alone say, with any neighbours, n, copies and beginnings in slots; and plans never end
/// inside a chunk, which the world sees as another answer.
BOOST_AUTO_TEST_CASE(batch_composition_changes_no_chunk) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    scheduler_options o = in_chunks_of(2 * (1 + seed % 4), 1 + seed % 5);
    o.max_tick_tokens = o.chunk_tokens + 1 + static_cast<std::uint32_t>(random() % 10);
    o.prefill_chunk_tokens = 1 + static_cast<std::uint32_t>(random() % 12);
    world w(o);
    for (int i = 0; i < 40; ++i) {
      order wish{.prompt = random_prompt(random, 50)};
      wish.n = 1 + static_cast<std::uint32_t>(random() % 3);
      wish.budget = 1 + static_cast<std::uint32_t>(random() % 12);
      wish.copies = {1 + static_cast<std::uint32_t>(random() % wish.prompt.size())};
      w.send(std::move(wish));
      for (auto turns = random() % 3; turns > 0; --turns) w.turn();
    }
    w.run_dry();
    w.judge();
    w.judge_keys();
    for (auto& [id, c] : w.clients) BOOST_REQUIRE(c.over());
  }
}

BOOST_AUTO_TEST_CASE(a_copy_inside_a_chunk_is_refused_and_cuts_nothing) {
  world w(in_chunks_of(4, 1));
  w.send({.prompt = prompt_of(15), .budget = 3, .copies = {3, 4, 6, 8, 14, 15}});
  w.run_dry();
  w.judge();
  w.judge_keys();
  std::vector<bool> taken;
  for (const auto& [key, a] : w.asked) taken.push_back(a.state != nullptr);
  BOOST_TEST(taken == (std::vector<bool>{false, true, false, true, true, true}), boost::test_tools::per_element());
}

// Ticks that are full of decode rows leave room for a chunk.
BOOST_AUTO_TEST_CASE(prompts_do_not_wait_until_answers_end) {
  scheduler_options o = in_chunks_of(8, 12);
  o.max_tick_tokens = o.max_tick_rows = 11;
  world w(o);
  for (int i = 0; i < 11; ++i) w.send(endless_prompt(), 1, endless);
  for (int i = 0; i < 20; ++i) w.turn();
  const request_id late = w.send(prompt_of(30), 1, 2);
  for (int i = 0; i < 30; ++i) w.turn();
  BOOST_TEST(w.clients[late].over());
}

BOOST_AUTO_TEST_SUITE_END()
