// Shows that the tree of prefixes finds what a search through a plain list finds, in seeded lives of wants, arrivals
// and removals, and where it wants states.
#include "actors/persistence/prefixes/prefix_tree.hpp"
#include "actors/persistence/prefixes/seen_prefixes.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/random_cases.hpp"

using namespace skein;
using namespace skein::persistence;
using namespace std::chrono_literals;

namespace {

using tokens_t = std::vector<token_id>;

struct listed {
  tenant_id tenant;
  std::string initial;
  tokens_t tokens;
  bool ready = false;
};

prefix_tree_options small_options() {
  prefix_tree_options o;
  o.min_tokens = 2;
  o.every_tokens = 4;
  o.copies_max = 8;
  o.wants_max = 1000;
  return o;
}

tokens_t random_tokens(test::random_cases& random) {
  tokens_t t(random.below(20));
  for (auto& token : t) token = static_cast<token_id>(random.below(2));  // much in common
  return t;
}

}  // namespace

BOOST_AUTO_TEST_CASE(it_finds_what_a_list_finds) {
  test::random_cases random;
  for (int life = 0; life < 100; ++life) {
    prefix_tree tree(small_options());
    std::map<std::uint64_t, listed> list;
    const steady_time now{1h};
    for (int step = 0; step < 120; ++step) {
      const tenant_id tenant = random.below(2) ? "a" : "b";
      const std::string initial = random.below(2) ? "" : "tuned";
      const tokens_t tokens = random_tokens(random);
      const auto found = tree.find(tenant, initial, tokens);
      std::vector<std::pair<std::size_t, std::uint64_t>> expected, got;
      for (const auto& [number, l] : list)
        if (l.ready && l.tenant == tenant && l.initial == initial && l.tokens.size() < tokens.size() &&
            std::equal(l.tokens.begin(), l.tokens.end(), tokens.begin()))
          expected.emplace_back(l.tokens.size(), number);
      std::ranges::sort(expected);
      for (const auto& f : found) got.emplace_back(f.position, f.key.number);
      BOOST_REQUIRE(got == expected);

      const auto size = static_cast<std::uint32_t>(tokens.size());
      const auto from = found.empty() ? 0 : found.back().position;
      for (const auto& copy :
           tree.want(tenant, initial, tokens, random.below(size + 2), random.below(size + 2), from, now)) {
        BOOST_REQUIRE(copy.position > from);
        BOOST_REQUIRE(copy.position <= size);
        const tokens_t prefix(tokens.begin(), tokens.begin() + copy.position);
        for (const auto& [number, l] : list)  // it is neither stored nor requested yet
          BOOST_REQUIRE((l.tenant != tenant || l.initial != initial || l.tokens != prefix));
        list[copy.key.number] = {tenant, initial, prefix, false};
      }
      if (!list.empty()) {
        const auto it = std::next(list.begin(), random.below(static_cast<std::uint32_t>(list.size())));
        const state_key key{0, it->first};
        BOOST_REQUIRE(tree.describe(key)->tokens == it->second.tokens);
        BOOST_REQUIRE(tree.describe(key)->tenant == it->second.tenant);
        if (random.below(3) == 0) {
          tree.erase(key);
          list.erase(it);
        } else {
          const bool there = random.below(4) != 0, was_ready = it->second.ready;
          BOOST_REQUIRE_EQUAL(tree.kept(key, there), there && !was_ready);
          if (!was_ready && there) it->second.ready = true;
          if (!was_ready && !there) list.erase(it);
        }
      }
      const auto wrong = tree.self_check();
      BOOST_REQUIRE_MESSAGE(!wrong, wrong.value_or(""));
    }
    while (!list.empty()) {
      tree.erase({0, list.begin()->first});
      list.erase(list.begin());
    }
    BOOST_REQUIRE_EQUAL(tree.bytes(), 0u);
    BOOST_REQUIRE_EQUAL(tree.wanted(), 0u);
  }
}

BOOST_AUTO_TEST_CASE(states_are_kept_at_the_ends_and_at_the_interval) {
  prefix_tree_options o;
  const auto at = [&](std::uint32_t size, std::uint32_t system, std::uint32_t turn, std::uint32_t from,
                      std::uint32_t again = 0) { return prefix_positions(o, size, system, turn, from, 0, again); };
  using list = std::vector<std::uint32_t>;
  BOOST_TEST((at(31, 0, 0, 0) == list{}));  // too short
  BOOST_TEST((at(32, 0, 0, 0) == list{32}));
  BOOST_TEST((at(1100, 100, 1090, 0) == list{100, 512, 1024, 1090, 1100}));
  BOOST_TEST((at(1100, 100, 1090, 512) == list{1024, 1090, 1100}));
  BOOST_TEST((at(1024, 512, 1024, 0) == list{512, 1024}));
  BOOST_TEST((at(1100, 5000, 20, 0) == list{512, 1024, 1100}));
  BOOST_TEST((at(321, 0, 0, 0) == list{321}));
  BOOST_TEST((at(321, 0, 0, 0, 320) == list{320, 321}));  // it came before
  BOOST_TEST((at(321, 0, 0, 320, 320) == list{321}));
  BOOST_TEST((at(321, 0, 319, 0) == list{319, 321}));
  BOOST_TEST(at(0, 0, 0, 0).empty());
  const auto many = at(1u << 20, 100, 0, 0);
  BOOST_TEST(many.size() <= o.copies_max);
  BOOST_TEST(many.size() > o.copies_max / 2);
  for (const auto position : many)
    BOOST_TEST((position == 100 || position == 1u << 20 || position % o.every_tokens == 0));
  o.every_tokens = 0;
  BOOST_TEST((at(5000, 0, 0, 0) == list{5000}));
  BOOST_TEST(prefix_positions({}, 0xffffffff, 0, 0, 0xfffffffe).size() == 1u);  // no number wraps
}

BOOST_AUTO_TEST_CASE(where_prompts_go_in_chunks_states_are_wanted_between_chunks) {
  const prefix_tree_options o;
  const auto at = [&](std::uint32_t size, std::uint32_t system, std::uint32_t turn, std::uint32_t from,
                      std::uint32_t again = 0) { return prefix_positions(o, size, system, turn, from, 64, again); };
  using list = std::vector<std::uint32_t>;
  BOOST_TEST(at(64, 0, 64, 0).empty());  // the last token goes alone, so there is no whole chunk
  BOOST_TEST(at(65, 0, 0, 0).empty());   // a state before the end costs a tick: not for what may never come again
  BOOST_TEST((at(65, 0, 0, 0, 64) == list{64}));
  BOOST_TEST((at(1100, 100, 1090, 0) == list{64, 512, 1024, 1088}));
  BOOST_TEST((at(1100, 100, 1090, 1024) == list{1088}));
  BOOST_TEST((at(512, 0, 512, 0) == list{448}));
  BOOST_TEST(at(0, 0, 0, 0).empty());
}

BOOST_AUTO_TEST_CASE(ends_of_prompts_are_known_when_these_come_again_or_grow) {
  seen_prefixes seen;
  tokens_t text(1000);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<token_id>(i * i % 251);
  const auto meet = [&](std::uint32_t size, std::uint32_t from = 0, const char* tenant = "a", const char* root = "m") {
    return seen.meet(tenant, root, std::span(text).first(size), from, (size - 1) / 64 * 64, 64).value_or(0);
  };
  BOOST_TEST(meet(321) == 0u);
  BOOST_TEST(meet(321) == 320u);       // the same again
  BOOST_TEST(meet(500) == 320u);       // it grew
  BOOST_TEST(meet(900) == 448u);       // and again
  BOOST_TEST(meet(900, 832) == 896u);  // its own end
  BOOST_TEST(meet(900, 896) == 0u);    // nothing beyond what is there
  BOOST_TEST(meet(321, 0, "b") == 0u);
  BOOST_TEST(meet(321, 0, "a", "another model") == 0u);
  BOOST_TEST(meet(64) == 0u);  // shorter than a step
  text[10] = 7;
  BOOST_TEST(meet(900) == 0u);
}

BOOST_AUTO_TEST_CASE(wants_end_with_patience_and_have_a_ceiling) {
  auto o = small_options();
  o.wants_max = 3;
  o.every_tokens = 0;
  prefix_tree tree(o);
  steady_time now{1h};
  std::vector<state_key> keys;
  for (token_id t = 0; t < 5; ++t)
    for (const auto& copy : tree.want("a", "", tokens_t{t, t, t}, 0, 0, 0, now)) keys.push_back(copy.key);
  BOOST_TEST(keys.size() == 3u);
  BOOST_TEST(tree.want("a", "", tokens_t{0, 0, 0}, 0, 0, 0, now).empty());  // not twice
  tree.expire(now + o.patience - 1s);
  BOOST_TEST(tree.wanted() == 3u);
  tree.expire(now + o.patience);
  BOOST_TEST(tree.wanted() == 0u);
  const auto again = tree.want("a", "", tokens_t{0, 0, 0}, 0, 0, 0, now);
  BOOST_REQUIRE(again.size() == 1u);
  BOOST_TEST(!tree.kept(keys[0], true));  // the late one has no owner
  BOOST_TEST(tree.kept(again[0].key, true));
}

BOOST_AUTO_TEST_CASE(stored_prefixes_come_back_under_their_numbers) {
  prefix_tree tree(small_options());
  BOOST_TEST(tree.add({0, 41}, "a", "", tokens_t{1, 2, 3}));
  BOOST_TEST(!tree.add({0, 41}, "a", "", tokens_t{1, 2}));
  BOOST_TEST(!tree.add({0, 42}, "a", "", tokens_t{1, 2, 3}));
  BOOST_TEST(!tree.add({0, 43}, "a", "", tokens_t{}));
  BOOST_REQUIRE(tree.find("a", "", tokens_t{1, 2, 3, 4}).size() == 1u);
  BOOST_TEST(tree.find("b", "", tokens_t{1, 2, 3, 4}).empty());
  const auto wanted = tree.want("a", "", tokens_t{9, 9}, 0, 0, 0, {});
  BOOST_REQUIRE(wanted.size() == 1u);
  BOOST_TEST(wanted[0].key.number == 44u);
}
