// Shows the policy of the tiers: seeded lives of states in RAM and on a disk that the test plays, against what must
// always hold: ceilings, nothing in use is dropped, what is said to be on disk is there, heads are safe first.
#include "actors/persistence/states/tiered_cache.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <deque>

#include "actors/persistence/sessions/session_book.hpp"
#include "actors/persistence/states/thinning.hpp"
#include "tests/support/random_cases.hpp"

using namespace skein;
using namespace skein::persistence;
using namespace std::chrono_literals;

namespace {

constexpr model::state_layout layout{.layers = 1, .embd = 8};
constexpr std::size_t floats = 16, state_bytes = floats * sizeof(float);

state_buffer content_of(const state_key& key) {
  return std::make_shared<const model::state_value>(
      model::state_of(layout, std::vector<float>(floats, static_cast<float>(key.owner * 1000 + key.number))));
}

tier_limits small_limits() {
  tier_limits l;
  l.ram_bytes_max = 6 * state_bytes;
  l.disk_bytes_max = 12 * state_bytes;
  l.dirty_bytes_max = 3 * state_bytes;
  l.writes_max = 2;
  return l;
}

/// A cache with a disk that takes its time and may fail.
struct played_disk {
  explicit played_disk(const tier_limits& l) : limits(l), cache(l) {}

  void plan(bool flush = false) {
    auto d = cache.plan(now, ms, works, flush);
    for (const auto& key : d.write) {
      BOOST_REQUIRE(works);
      BOOST_REQUIRE(cache.buffer(key) != nullptr);
      writing.push_back(key);
    }
    for (const auto& key : d.drop_disk) BOOST_REQUIRE(disk.erase(key) == 1);
    for (const auto& key : d.lost) BOOST_REQUIRE(!cache.readable(key));
  }
  void finish_write(bool well) {
    const state_key key = writing.front();
    writing.pop_front();
    if (well) disk.insert(key);
    if (!cache.written(key, well, state_bytes, now)) disk.erase(key);
  }
  void put(const state_key& key, bool writable = true) {
    cache.put(key, content_of(key), {default_tenant, key.number, "m"}, writable, now, ms);
  }
  void check_all() {
    const auto wrong = cache.self_check();
    BOOST_REQUIRE_MESSAGE(!wrong, wrong.value_or(""));
    const auto c = cache.count();
    BOOST_REQUIRE_EQUAL(c.disk, disk.size());
    for (const auto& key : disk) BOOST_REQUIRE(cache.readable(key));
    BOOST_REQUIRE_LE(writing.size(), limits.writes_max);
  }

  tier_limits limits;
  tiered_cache cache;
  steady_time now{1h};
  std::int64_t ms = 1'000'000;
  bool works = true;
  std::set<state_key> disk;
  std::deque<state_key> writing;
};

}  // namespace

BOOST_AUTO_TEST_CASE(old_versions_thin_to_powers_of_two) {
  std::vector<version_id> present;
  for (version_id head = 1; head <= 3000; ++head) {
    present.push_back(head);
    for (auto may_go = thinnable(present, head); !may_go.empty(); may_go = thinnable(present, head))
      std::erase(present, may_go.front());
    BOOST_REQUIRE(present.back() == head);
    BOOST_REQUIRE_LE(present.size(), 3 + 2 * std::log2(head));
    // Every version is rebuilt from one that is no farther from it than it is from the head.
    for (version_id v = 1; v <= head; ++v) {
      const auto above = std::ranges::upper_bound(present, v);
      const version_id nearest = above == present.begin() ? 0 : *std::prev(above);
      BOOST_REQUIRE_LE(v - nearest, std::max(1u, head - v));
    }
  }
}

BOOST_AUTO_TEST_CASE(after_a_roll_back_what_lies_ahead_goes_first) {
  const std::vector<version_id> present{3, 5, 6, 7};
  BOOST_TEST((thinnable(present, 5) == std::vector<version_id>{6, 7}));
  BOOST_TEST(thinnable(std::vector<version_id>{9}, 9).empty());
  BOOST_TEST(thinnable(std::vector<version_id>{}, 9).empty());
}

BOOST_AUTO_TEST_CASE(seeded_lives_keep_what_must_hold) {
  test::random_cases random;
  for (int life = 0; life < 200; ++life) {
    played_disk p(small_limits());
    std::map<session_uid, version_id> last;
    std::map<state_key, state_buffer> lent;
    std::map<state_key, device_id> slots;
    for (int step = 0; step < 200; ++step) {
      const session_uid owner = 1 + random.below(4);
      switch (random.below(12)) {
        case 0:
        case 1:
        case 2: {
          const state_key key{owner, ++last[owner]};
          p.put(key, random.below(8) != 0);
          p.cache.set_head(owner, last[owner]);
          break;
        }
        case 3:
          if (!p.writing.empty()) p.finish_write(random.below(5) != 0);
          break;
        case 4: {
          const auto key = p.cache.find(owner, 1 + random.below(last[owner] + 1));
          if (!key) break;
          if (auto state = p.cache.lend(*key, p.ms)) {
            BOOST_REQUIRE(*state == *content_of(*key));
            lent[*key] = state;
          } else {
            BOOST_REQUIRE(p.disk.contains(*key));
            p.cache.loaded(*key, content_of(*key), {default_tenant, key->number, "m"});
          }
          break;
        }
        case 5:
          if (!lent.empty()) lent.erase(lent.begin());
          break;
        case 6: p.works = random.below(4) != 0; break;
        case 7: p.now += std::chrono::milliseconds(random.below(1500)), p.ms += 700; break;
        case 8: p.cache.may_write({owner, last[owner]}); break;
        case 9: {
          const state_key key{owner, 1 + random.below(last[owner] + 1)};
          const auto on = static_cast<device_id>(random.below(3));
          if (random.below(2)) {
            p.cache.slot_kept(key, on), slots[key] = on;
          } else {
            p.cache.slot_dropped(key, on);
            if (const auto at = slots.find(key); at != slots.end() && at->second == on) slots.erase(at);
          }
          break;
        }
        case 10:
          if (random.below(10) == 0) {
            // The session is removed: the disk loses its states as the store does, those in flight too.
            p.cache.forget_owner(owner, [](const auto&) { return true; });
            std::erase_if(p.disk, [&](const state_key& k) { return k.owner == owner; });
            std::erase_if(lent, [&](const auto& one) { return one.first.owner == owner; });
            std::erase_if(slots, [&](const auto& slot) {
              if (slot.first.owner == owner) p.cache.slot_dropped(slot.first, slot.second);
              return slot.first.owner == owner;
            });
          }
          break;
        case 11: p.plan(random.below(6) == 0); break;
      }
      p.plan();
      p.check_all();
      const auto c = p.cache.count();
      BOOST_REQUIRE_EQUAL(c.vram, slots.size());
      for (const auto& [key, on] : slots) BOOST_REQUIRE(p.cache.device_of(key) == on);
      for (const auto& [key, state] : lent) BOOST_REQUIRE(p.cache.buffer(key) != nullptr);
      const std::size_t unavoidable = (lent.size() + p.writing.size()) * state_bytes;
      BOOST_REQUIRE_LE(c.ram_bytes, p.limits.ram_bytes_max + p.limits.dirty_bytes_max + unavoidable);
      BOOST_REQUIRE_LE(c.disk_bytes, p.limits.disk_bytes_max);
    }
    lent.clear();
    p.works = true;
    for (int i = 0; i < 200 && (i == 0 || !p.writing.empty()); ++i) {
      p.plan(true);
      while (!p.writing.empty()) p.finish_write(true);
      p.plan(true);
    }
    BOOST_REQUIRE_EQUAL(p.cache.count().dirty, 0u);
    BOOST_REQUIRE_LE(p.cache.count().ram_bytes, p.limits.ram_bytes_max);
    p.check_all();
  }
}

BOOST_AUTO_TEST_CASE(states_are_written_within_their_delay_heads_first) {
  auto limits = small_limits();
  limits.ram_bytes_max = limits.disk_bytes_max = limits.dirty_bytes_max = 100 * state_bytes;
  limits.writes_max = 1;
  played_disk p(limits);
  p.put({1, 1});
  p.put({1, 2});
  p.cache.set_head(1, 2);
  p.now += 1ms;
  p.put({2, 1});
  p.plan();
  BOOST_TEST(p.writing.empty());
  BOOST_TEST((p.cache.next_write() == steady_time(1h) + 1s));
  p.now = p.cache.next_write() + 1ms;
  std::vector<state_key> order;
  for (int i = 0; i < 3; ++i) {
    p.plan();
    BOOST_REQUIRE(p.writing.size() == 1u);
    order.push_back(p.writing.front());
    p.finish_write(true);
  }
  BOOST_TEST((order == std::vector<state_key>{{1, 2}, {2, 1}, {1, 1}}));
  BOOST_TEST(p.cache.count().dirty == 0u);
  BOOST_TEST((p.cache.next_write() == steady_time::max()));
}

BOOST_AUTO_TEST_CASE(many_dirty_bytes_are_not_waited_for) {
  auto limits = small_limits();
  limits.ram_bytes_max = limits.disk_bytes_max = 100 * state_bytes;
  played_disk p(limits);
  for (session_uid s = 1; s <= 3; ++s) p.put({s, 1});
  p.plan();
  BOOST_TEST(p.writing.empty());
  p.put({4, 1});
  p.plan();
  BOOST_TEST(p.writing.size() == 1u);  // then three wait, which they may
}

BOOST_AUTO_TEST_CASE(what_would_be_thinned_at_once_is_not_written) {
  auto limits = small_limits();
  limits.ram_bytes_max = limits.disk_bytes_max = limits.dirty_bytes_max = 1000 * state_bytes;
  played_disk p(limits);
  for (version_id v = 1; v <= 64; ++v) p.put({1, v});
  p.cache.set_head(1, 64);
  p.now += 2s;
  for (int i = 0; i < 100; ++i) {
    p.plan();
    while (!p.writing.empty()) p.finish_write(true);
  }
  BOOST_TEST(p.disk.contains({1, 64}));
  BOOST_TEST(p.disk.size() < 16u);
  BOOST_TEST(p.disk.size() >= 5u);
  BOOST_TEST(p.cache.count().dirty == 0u);
  BOOST_TEST(p.cache.count().ram == 64u);
}

BOOST_AUTO_TEST_CASE(a_full_disk_loses_old_versions_before_any_head) {
  auto limits = small_limits();
  limits.ram_bytes_max = 0;
  played_disk p(limits);
  for (session_uid s = 1; s <= 6; ++s)
    for (version_id v = 1; v <= 12; ++v) {
      p.put({s, v});
      p.cache.set_head(s, v);
      p.now += 2s;
      for (int i = 0; i < 3; ++i) {
        p.plan();
        while (!p.writing.empty()) p.finish_write(true);
      }
      p.plan();
      p.check_all();
      for (session_uid earlier = 1; earlier < s; ++earlier) BOOST_REQUIRE(p.disk.contains({earlier, 12}));
    }
  BOOST_TEST(p.disk.size() == 12u);
  // With no room for more than four states, the heads go that were not used for longest.
  limits.disk_bytes_max = 4 * state_bytes;
  played_disk tight(limits);
  for (session_uid s = 1; s <= 6; ++s)
    tight.cache.found({s, 1}, state_bytes, static_cast<std::int64_t>(s)), tight.disk.insert({s, 1});
  tight.plan();
  BOOST_TEST((tight.disk == std::set<state_key>{{3, 1}, {4, 1}, {5, 1}, {6, 1}}));
}

BOOST_AUTO_TEST_CASE(counts_and_ages_are_ceilings_too) {
  auto limits = small_limits();
  limits.ram_bytes_max = limits.disk_bytes_max = 100 * state_bytes;
  limits.ram_states_max = 2;
  limits.disk_states_max = 3;
  limits.disk_age_ms = 10'000;
  played_disk p(limits);
  for (session_uid s = 1; s <= 5; ++s)
    p.cache.found({s, 1}, state_bytes, p.ms + static_cast<std::int64_t>(s)), p.disk.insert({s, 1});
  p.plan();
  BOOST_TEST((p.disk == std::set<state_key>{{3, 1}, {4, 1}, {5, 1}}));
  for (session_uid s = 3; s <= 5; ++s) p.cache.loaded({s, 1}, content_of({s, 1}), {default_tenant, 1, "m"});
  p.plan();
  BOOST_TEST(p.cache.count().ram == 2u);
  p.ms += 9'000;
  p.cache.touch({4, 1}, p.ms);
  p.ms += 5'000;
  p.plan();
  BOOST_TEST((p.disk == std::set<state_key>{{4, 1}}));
}

BOOST_AUTO_TEST_CASE(without_a_disk_ram_is_the_last_tier) {
  auto limits = small_limits();
  limits.disk_bytes_max = 0;
  played_disk p(limits);
  for (version_id v = 1; v <= 10; ++v) p.put({1, v}), p.plan();
  BOOST_TEST(p.writing.empty());
  BOOST_TEST(p.cache.count().ram == 6u);
  BOOST_TEST(!p.cache.find(1, 4));
  BOOST_TEST(p.cache.find(1, 5).has_value());
}

BOOST_AUTO_TEST_CASE(a_write_that_ends_after_the_removal_leaves_nothing) {
  played_disk p(small_limits());
  p.put({1, 1});
  p.plan(true);
  BOOST_REQUIRE(p.writing.size() == 1u);
  p.cache.forget_owner(1, [](const auto&) { return true; });
  BOOST_TEST(!p.cache.written({1, 1}, true, state_bytes, p.now));
  BOOST_TEST(p.cache.count().disk == 0u);
  BOOST_TEST(!p.cache.self_check());
}
