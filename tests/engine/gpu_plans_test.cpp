// Shows that the GPU's engine does what the reference does with any plans: seeded scripts of commands and ticks of all
// kinds of rows run on both, one tick behind, and every result, parked sequence and state is compared. A failing run
// prints its seed; SKEIN_SEED=n repeats it.
#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <deque>

#include "tests/engine/engine_fixture.hpp"
#include "tests/support/random_cases.hpp"
#include "tests/support/thorough.hpp"

namespace {

using namespace skein;
using namespace skein::engine;
using namespace skein::test;

constexpr slot_id slots = 9;
constexpr std::uint32_t tokens_max = 96, rows_max = 8;
constexpr float tolerance = 1e-3f;  // fp32 in another order of sums, over a few hundred tokens

/// Largest difference in terms of the largest value.
float difference(std::span<const float> got, std::span<const float> expected) {
  if (got.size() != expected.size()) return INFINITY;
  float most = 0, largest = 1e-6f;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(got[i])) return INFINITY;
    most = std::max(most, std::abs(got[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  return most / largest;
}

void compare(const sampling::token_logprobs& got, const sampling::token_logprobs& expected) {
  BOOST_TEST(std::abs(got.logprob - expected.logprob) < 10 * tolerance);
  BOOST_TEST(got.count == expected.count);
  for (std::uint32_t i = 0; i < std::min(got.count, expected.count); ++i)
    BOOST_TEST(std::abs(got.top[i].logprob - expected.top[i].logprob) < 10 * tolerance);
}

void compare(const row_result& got, const row_result& expected) {
  BOOST_TEST(got.slot == expected.slot);
  BOOST_TEST(got.frozen == expected.frozen);
  BOOST_TEST(got.sampled == expected.sampled);
  BOOST_TEST(got.token == expected.token);
  BOOST_CHECK(got.stopped == expected.stopped);
  BOOST_TEST(got.awaits_sample == expected.awaits_sample);
  compare(got.logprobs, expected.logprobs);
  BOOST_TEST(got.scores.size() == expected.scores.size());
  for (std::size_t i = 0; i < std::min(got.scores.size(), expected.scores.size()); ++i)
    compare(got.scores[i], expected.scores[i]);
  BOOST_TEST(difference(got.logits, expected.logits) < tolerance);
}

void compare(const parked_sequence& got, const parked_sequence& expected) {
  BOOST_TEST(got.last_tokens == expected.last_tokens, boost::test_tools::per_element());
  BOOST_TEST(got.frozen == expected.frozen);
  BOOST_TEST(got.sampler.generated == expected.sampler.generated);
  BOOST_TEST(difference(floats_of(got.state), floats_of(expected.state)) < tolerance);
  const auto &some = got.sampler.penalties, &all = expected.sampler.penalties;
  BOOST_REQUIRE(some.size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    BOOST_TEST(some[i].token == all[i].token);
    BOOST_TEST(std::abs(some[i].penalty - all[i].penalty) < tolerance);
  }
}

/// What leaves a slot on each of the two.
template <typename T>
struct of_both {
  T gpu, judge;
};

/// One script. It knows enough of each slot to plan only what engine.hpp allows.
class script {
 public:
  explicit script(std::uint64_t seed)
      : random_(seed),
        gpu_(make_gpu_fp32({slots, tokens_max, rows_max})),
        judge_(make_reference_of_gpu({slots, tokens_max, rows_max})) {
    for (slot_id s = 0; s < slots; ++s) start(s);
  }

  void run(int ticks) {
    for (int i = 0; i < ticks; ++i) {
      for (std::uint32_t n = below(3); n > 0; --n) command();
      tick();
    }
    while (gpu_->ticks_in_flight() > 0) collect();
    for (slot_id s = 0; s < slots; ++s) BOOST_TEST(difference(state_of(*gpu_, s), state_of(*judge_, s)) < tolerance);
    BOOST_REQUIRE(gpu_->finish().has_value());
    BOOST_REQUIRE(judge_->finish().has_value());
    for (const auto& p : parked_) compare(p.sequence.gpu, p.sequence.judge);
  }

 private:
  struct known_slot {
    bool decodes = false;  // has drawn last, or is frozen
    bool stops = true;     // its sampler may freeze it
  };
  struct parked {
    of_both<parked_sequence> sequence;
    sampling::sampling_params params;
    known_slot known;
  };

  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(random_() % end); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
  slot_id any_slot() { return below(slots); }
  token_id any_token() { return static_cast<token_id>(below(gpu_->info().vocab)); }

  template <typename Call>
  void both(const Call& call) {
    call(*gpu_);
    call(*judge_);
  }

  sampling::sampling_params any_params(known_slot& known) {
    known.stops = !one_in(3);
    auto params = one_in(3) ? greedy(1000) : seeded(random_(), 1000);
    if (known.stops) params.max_tokens = below(5);
    if (known.stops && one_in(2)) params.stop_ids = {any_token(), any_token()};
    if (one_in(3)) params.logit_bias = {{any_token(), 2.0f}, {any_token(), -3.0f, 1, 3}};
    if (one_in(3)) params.top_k = 1 + static_cast<std::int32_t>(below(20));
    if (one_in(3)) params.top_p = 0.8f;
    params.row = below(3);
    params.logprobs = one_in(2);
    params.top_logprobs = below(4);
    return params;
  }

  void start(slot_id s) {
    known_[s] = {};
    const auto params = any_params(known_[s]);
    both([&](skein::engine::engine& e) { e.start(s, params); });
  }

  void command() {
    const slot_id s = any_slot(), other = (s + 1 + below(slots - 1)) % slots;
    switch (below(8)) {
      case 0: return start(s);
      case 1: {
        known_[s].decodes = false;  // frozen without a last token it would have none to feed now
        const auto params = any_params(known_[s]);
        return both([&](skein::engine::engine& e) { e.restart_sampler(s, params); });
      }
      case 2: {  // whether it stops depends on its own parameters, but it may arrive frozen
        known_[other].decodes = known_[s].decodes;
        known_[other].stops |= known_[s].stops;
        return both([&](skein::engine::engine& e) { e.copy_state(s, other); });
      }
      case 3: {
        known_[s] = {};
        return both([&](skein::engine::engine& e) { e.clear(s); });
      }
      case 4:
      case 5: return park(s);
      case 6: return unpark(s);
      default: return move_state(s, other);
    }
  }

  void park(slot_id s) {
    parked& to = parked_.emplace_back();
    to.known = known_[s];
    to.params = any_params(to.known);
    to.known.stops |= known_[s].stops;
    gpu_->park(s, to.sequence.gpu);
    judge_->park(s, to.sequence.judge);
  }
  void unpark(slot_id s) {  // perhaps before the park has run
    if (parked_.empty()) return;
    const parked& from = parked_[below(static_cast<std::uint32_t>(parked_.size()))];
    known_[s] = from.known;
    gpu_->unpark(s, from.params, from.sequence.gpu);
    judge_->unpark(s, from.params, from.sequence.judge);
  }
  void move_state(slot_id from, slot_id to) {
    auto& state = states_.emplace_back();
    state.gpu = {gpu_->info().state, std::vector<std::byte>(gpu_->info().state.bytes())};
    state.judge = {judge_->info().state, std::vector<std::byte>(judge_->info().state.bytes())};
    gpu_->read_state(from, state.gpu);
    judge_->read_state(from, state.judge);
    gpu_->write_state(to, state.gpu);
    judge_->write_state(to, state.judge);
  }

  void tick() {
    plan_.clear();
    bool syncs = false;
    std::uint32_t room = tokens_max;
    std::vector<slot_id> order(slots);
    for (slot_id s = 0; s < slots; ++s) order[s] = s;
    std::ranges::shuffle(order, random_);
    const bool only_decodes = one_in(3), grouped = !only_decodes && one_in(3);
    for (const slot_id s : order) {
      if (plan_.rows.size() == rows_max || room == 0) break;
      if (one_in(4) || (only_decodes && !known_[s].decodes)) continue;
      row& r = known_[s].decodes && (only_decodes || !one_in(3)) ? add_decode(plan_, s) : add_feed(s, room);
      room -= std::max(r.tokens, 1u);
      if (!only_decodes) vary(r, grouped);
      syncs |= r.sync;
      known_[s].decodes = r.sample && !r.sync;
    }
    both([&](skein::engine::engine& e) { BOOST_REQUIRE(e.submit(plan_).has_value()); });
    while (gpu_->ticks_in_flight() == gpu_->info().ticks_in_flight_max) collect();
    while (gpu_->ticks_in_flight() > 0 && (syncs || one_in(3))) collect();
  }

  row& add_feed(slot_id s, std::uint32_t room) {
    std::vector<token_id> tokens(1 + below(one_in(3) ? room : std::min(room, 12u)));
    for (token_id& t : tokens) t = any_token();
    row& r = add_prefill(plan_, s, tokens, !one_in(3));
    if (!one_in(4)) return r;
    r.kind = row_kind::score;
    r.score_top = below(4);
    if (one_in(2)) r.score_next = any_token();
    return r;
  }

  void vary(row& r, bool grouped) {
    if (one_in(8)) r.logits = one_in(2) ? logits_wanted::last : logits_wanted::all;
    if (!r.sample) return;
    if (grouped && !known_[r.slot].stops) {  // a group stops as one: take those that do not
      r.group = 1 + below(2);
      r.weight = 1.0f + static_cast<float>(below(3));
    } else if (one_in(8)) {
      r.sync = true;
    }
  }

  void collect() {
    const auto got = gpu_->collect(), expected = judge_->collect();
    BOOST_REQUIRE(got.has_value());
    BOOST_REQUIRE(expected.has_value());
    BOOST_REQUIRE((*got)->rows.size() == (*expected)->rows.size());
    std::vector<slot_id> awaiting;
    for (std::size_t i = 0; i < (*got)->rows.size(); ++i) {
      compare((*got)->rows[i], (*expected)->rows[i]);
      if ((*expected)->rows[i].awaits_sample) awaiting.push_back((*expected)->rows[i].slot);
    }
    for (const slot_id s : awaiting) {  // no other tick is in flight behind one with sync rows
      std::vector<std::uint32_t> mask((gpu_->info().vocab + 31) / 32);
      for (int i = 0; i < 5; ++i) {
        const auto token = static_cast<std::uint32_t>(any_token());
        mask[token / 32] |= 1u << (token % 32);
      }
      if (one_in(3)) mask.clear();
      const auto sampled = gpu_->sample(s, mask), by_judge = judge_->sample(s, mask);
      BOOST_REQUIRE(sampled.has_value());
      BOOST_REQUIRE(by_judge.has_value());
      compare(*sampled, *by_judge);
      known_[s].decodes = true;
    }
  }

  std::mt19937_64 random_;
  std::array<known_slot, slots> known_;
  std::deque<parked> parked_;  // deques: what a command writes must not move
  std::deque<of_both<model::state_value>> states_;
  tick_plan plan_;
  const std::unique_ptr<skein::engine::engine> gpu_, judge_;  // last: they write to the above until they end
};

}  // namespace

BOOST_AUTO_TEST_CASE(any_plan_gives_what_the_reference_gives) {
  const std::uint64_t first = given_seed().value_or(1), count = given_seed() ? 1u : rounds(6u);
  for (std::uint64_t seed = first; seed < first + count; ++seed) BOOST_TEST_CONTEXT("SKEIN_SEED=" << seed) {
      script(seed).run(40);
    }
}
