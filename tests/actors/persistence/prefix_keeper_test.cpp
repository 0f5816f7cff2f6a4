// Shows that prompts go on from the longest prefix that is known, in RAM or on disk, with the state that belongs to it;
// over a real database.
#include "actors/persistence/keeper/prefix_keeper.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/actors/persistence/keeper_bench.hpp"
#include "tests/support/random_cases.hpp"

using namespace skein;
using namespace skein::test;

namespace {

using tokens_t = std::vector<token_id>;

struct prefix_bench : keeper_bench {
  prefix_bench() { open(); }
  explicit prefix_bench(std::size_t ram_states) {
    options.prefix_states.ram_bytes_max = ram_states * bench_floats * sizeof(float) + 65536;
    options.prefix_states.ram_states_max = static_cast<std::uint32_t>(ram_states);
    open();
  }
  prefix_found find(const tokens_t& tokens, std::uint32_t system = 0, const tenant_id& tenant = default_tenant,
                    const std::string& initial = {}) {
    find_prefix q;
    q.reply = {0, ++tickets};
    q.tenant = tenant;
    q.model = model;
    q.initial_state = initial;
    q.tokens = std::make_shared<const tokens_t>(tokens);
    q.system_tokens = system;
    prefixes->handle(std::move(q));
    pump();
    auto found = take<prefix_found>();
    BOOST_REQUIRE_EQUAL(found.reply.number, tickets);
    BOOST_REQUIRE_LT(found.position, std::max<std::size_t>(tokens.size(), 1));
    if (found.position > 0)
      BOOST_REQUIRE(*found.state == *state_after(std::span(tokens).first(found.position)));
    else
      BOOST_REQUIRE(found.state == nullptr);
    return found;
  }
  /// The prompt runs, and the device sends what was wanted.
  void run(const tokens_t& tokens, const prefix_found& found) {
    for (const auto& copy : found.keep)
      prefixes->handle(state_kept{copy.key, state_after(std::span(tokens).first(copy.position))});
    pump();
  }
};

tokens_t count_to(std::size_t n, token_id from = 0) {
  tokens_t t(n);
  for (std::size_t i = 0; i < n; ++i) t[i] = static_cast<token_id>((from + static_cast<token_id>(i)) % 1000);
  return t;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_second_prompt_with_the_same_system_text_feeds_only_the_rest) {
  prefix_bench b;
  tokens_t first = count_to(40), second = count_to(40);
  first.insert(first.end(), {500, 501});
  second.insert(second.end(), {600, 601, 602});
  const auto cold = b.find(first, 40);
  BOOST_TEST(cold.position == 0u);
  BOOST_TEST(cold.keep.size() == 6u);  // 8, 16, 24, 32, 40, 42
  b.run(first, cold);
  const auto warm = b.find(second, 40);
  BOOST_TEST(warm.position == 40u);
  BOOST_REQUIRE(warm.keep.size() == 1u);
  BOOST_TEST(warm.keep[0].position == 43u);
  // It is not shared with another tenant or another initial state.
  BOOST_TEST(b.find(second, 40, "other").position == 0u);
  BOOST_TEST(b.find(second, 40, default_tenant, "tuned").position == 0u);
  b.prefixes->publish();
  BOOST_TEST(b.counters.prefix_hits == 1u);
  BOOST_TEST(b.counters.prefix_misses == 3u);
  BOOST_TEST(b.counters.prefix_tokens == 40u);
}

BOOST_AUTO_TEST_CASE(prefixes_survive_an_orderly_end_and_are_read_when_they_are_wanted) {
  prefix_bench b;
  const tokens_t prompt = count_to(30);
  b.run(prompt, b.find(prompt));
  b.end();
  b.open();
  const auto warm = b.find(prompt);
  BOOST_TEST(warm.position == 24u);  // not 30: one token must be left
  BOOST_TEST(warm.keep.empty());
  b.prefixes->publish();
  BOOST_TEST(b.counters.prefixes.loads == 1u);
  b.end();
  b.model = "model-b";
  b.open();
  const auto foreign = b.find(prompt);
  BOOST_TEST(foreign.position == 0u);
  b.run(prompt, foreign);
  b.end();
  b.model = "model-a";
  b.open();
  BOOST_TEST(b.find(prompt).position == 24u);
}

BOOST_AUTO_TEST_CASE(a_prompt_does_not_wait_for_the_disk_where_that_saves_it_little) {
  prefix_bench b;
  const tokens_t prompt = count_to(30);
  b.run(prompt, b.find(prompt));
  b.end();
  b.options.prefix_wait_tokens = 25;
  b.open();
  BOOST_TEST(b.find(prompt).position == 0u);   // 24 would be there
  BOOST_TEST(b.find(prompt).position == 24u);  // it was read for prompts to come
  b.prefixes->publish();
  BOOST_TEST(b.counters.prefixes.loads == 1u);
  tokens_t longer = prompt;  // 30 is on disk, 24 in RAM
  longer.push_back(999);
  BOOST_TEST(b.find(longer).position == 24u);
  BOOST_TEST(b.find(longer).position == 30u);
  b.end();
  b.options.prefix_wait_tokens = 24;
  b.open();
  BOOST_TEST(b.find(prompt).position == 24u);  // that is worth it
}

BOOST_AUTO_TEST_CASE(a_state_that_does_not_come_is_wanted_again) {
  prefix_bench b;
  const tokens_t prompt = count_to(7);
  const auto first = b.find(prompt);
  BOOST_REQUIRE(first.keep.size() == 1u);
  BOOST_TEST(b.find(prompt).keep.empty());  // on its way
  b.prefixes->handle(state_kept{first.keep[0].key, nullptr});
  const auto again = b.find(prompt);
  BOOST_REQUIRE(again.keep.size() == 1u);
  b.prefixes->handle(state_kept{first.keep[0].key, state_after(tokens_t{9})});  // has no owner
  b.run(prompt, again);
  BOOST_TEST(b.find(count_to(8)).position == 7u);
}

BOOST_AUTO_TEST_CASE(short_ram_sends_the_least_used_to_disk_and_a_damaged_one_is_forgotten) {
  prefix_bench b(2);
  std::vector<tokens_t> prompts;
  for (token_id i = 0; i < 6; ++i) {
    prompts.push_back(count_to(7, i * 100));
    b.run(prompts.back(), b.find(prompts.back()));
    b.pass(10ms);
  }
  b.prefixes->publish();
  BOOST_TEST(b.counters.prefixes.ram == 2u);
  BOOST_TEST(b.counters.prefixes.disk >= 4u);
  for (const auto& prompt : prompts) {
    tokens_t more = prompt;
    more.push_back(999);
    BOOST_TEST(b.find(more).position == 7u);
  }
  const auto stored = b.states->list_prefixes();
  for (const auto& p : *stored) BOOST_REQUIRE(b.states->remove(p.key));  // behind its back
  tokens_t more = prompts[0];
  more.push_back(999);
  BOOST_TEST(b.find(more).position == 0u);
  BOOST_TEST(b.find(prompts[0]).keep.size() + b.find(more).keep.size() <= 2u);
}

// States that were made in chunks are kept apart from others, and serve a session that is fed again within its first
// prompt.
BOOST_AUTO_TEST_CASE(states_made_in_chunks_serve_at_their_ends_and_within_a_prompt) {
  prefix_bench b;
  const auto ask = [&](const tokens_t& tokens, std::uint32_t chunk, std::uint32_t first_part) {
    find_prefix q;
    q.reply = {0, 1};
    q.tokens = std::make_shared<const tokens_t>(tokens);
    q.model = b.model;
    q.chunk_tokens = chunk, q.first_part = first_part;
    b.prefixes->handle(std::move(q));
    b.pump();
    return b.take<prefix_found>();
  };
  const tokens_t prompt = count_to(200);
  const auto cold = ask(prompt, 64, 200);
  BOOST_REQUIRE(!cold.keep.empty());
  for (const auto& copy : cold.keep) BOOST_TEST(copy.position % 64 == 0u);
  BOOST_TEST(cold.keep.back().position == 192u);
  b.run(prompt, cold);
  BOOST_TEST(ask(prompt, 64, 200).position == 192u);
  BOOST_TEST(ask(prompt, 64, 193).position == 192u);
  BOOST_TEST(ask(prompt, 64, 192).position == 128u);  // the part's last token was fed another way
  BOOST_TEST(ask(prompt, 64, 0).position == 0u);
  BOOST_TEST(ask(prompt, 0, 0).position == 0u);
}

// Builds before the one that computes prompts in chunks wrote prefixes of any engine under the model and tuned state.
BOOST_AUTO_TEST_CASE(prefixes_of_older_builds_are_not_found) {
  prefix_bench b;
  const tokens_t prompt = count_to(30), part = count_to(24);
  BOOST_REQUIRE(
      b.states->put_prefix({b.model, default_tenant, {0, 7}, part.size()}, part, b.model + ' ', *state_after(part)));
  b.end();
  b.open();
  const auto cold = b.find(prompt);
  BOOST_TEST(cold.position == 0u);
  b.run(prompt, cold);
  BOOST_TEST(b.find(prompt).position == 24u);
}

BOOST_AUTO_TEST_CASE(switched_off_it_answers_and_wants_nothing) {
  keeper_bench b;
  b.options.prefixes.enabled = false;
  b.open();
  find_prefix q;
  q.reply = {0, 1};
  q.tokens = std::make_shared<const tokens_t>(count_to(100));
  b.prefixes->handle(std::move(q));
  const auto found = b.take<prefix_found>();
  BOOST_TEST(found.position == 0u);
  BOOST_TEST(found.keep.empty());
  b.prefixes->handle(find_prefix{{0, 2}, default_tenant, {}, {}, nullptr, 0, 0});  // no tokens at all
  BOOST_TEST(b.take<prefix_found>().position == 0u);
}

BOOST_AUTO_TEST_CASE(seeded_prompts_always_get_the_state_of_their_own_tokens) {
  test::random_cases random;
  prefix_bench b(5);
  b.options.prefix_states.disk_bytes_max = 20 * b.states->record_bytes(b.model);
  b.end();
  b.open();
  for (int step = 0; step < 600; ++step) {
    tokens_t prompt(random.below(40));
    for (auto& t : prompt) t = static_cast<token_id>(random.below(2));
    const auto found = b.find(prompt, random.below(40), random.below(3) ? "default" : "b");
    for (const auto& copy : found.keep) {
      const bool comes = random.below(5) != 0;
      b.prefixes->handle(
          state_kept{copy.key, comes ? state_after(std::span<const token_id>(prompt).first(copy.position)) : nullptr});
    }
    b.pump();
    b.prefixes->publish();
    BOOST_REQUIRE_LE(b.counters.prefixes.disk, 20u);
    BOOST_REQUIRE_LE(b.counters.prefix_token_bytes, b.options.prefix_states.ram_bytes_max);
    if (random.below(100) == 0) {
      b.end();
      b.open();
    }
  }
}
