// Shows that a sequence's tokens and log-probabilities depend on nothing but the sequence: random crowds with random
// batches, chunks, slots, parking and lag get, bit for bit, what each sequence gets alone. A failing run prints its
// seed; SKEIN_SEED=n repeats it.
#include <algorithm>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <deque>
#include <optional>
#include <random>

#include "tests/engine/engine_fixture.hpp"
#include "tests/support/random_cases.hpp"

namespace {

using namespace skein;
using namespace skein::engine;
using namespace skein::test;
namespace data = boost::unit_test::data;

using generator = std::mt19937_64;

std::uint32_t up_to(generator& random, std::uint32_t last) {
  return std::uniform_int_distribution<std::uint32_t>(0, last)(random);
}
bool one_in(generator& random, std::uint32_t n) { return up_to(random, n - 1) == 0; }

struct sequence {
  std::vector<token_id> prompt;
  sampling::sampling_params params;
  generated_text expected, got;
  std::size_t fed = 0;  // tokens of the prompt
  std::optional<slot_id> slot;
  bool started = false;
  parked_sequence parked;  // valid while started without a slot

  [[nodiscard]] bool finished() const { return got.stopped != stop_cause::none; }
};

sequence random_sequence(generator& random, std::uint32_t vocab) {
  sequence s;
  s.prompt.resize(1 + up_to(random, 30));
  for (token_id& t : s.prompt) t = static_cast<token_id>(up_to(random, vocab - 1));
  s.params = one_in(random, 3) ? greedy(1 + up_to(random, 20)) : seeded(random(), 1 + up_to(random, 20));
  s.params.row = up_to(random, 3);
  s.params.logprobs = one_in(random, 2);
  if (one_in(random, 2)) s.params.top_k = 5;
  for (std::uint32_t i = up_to(random, 3); i > 0; --i)
    s.params.stop_ids.push_back(static_cast<token_id>(up_to(random, vocab - 1)));
  return s;
}

/// Drives a crowd of sequences over an engine with fewer slots, one tick behind, by throwing dice.
class crowd {
 public:
  crowd(skein::engine::engine& e, std::vector<sequence>& sequences, generator& random)
      : engine_(e), sequences_(sequences), random_(random) {}

  void run() {
    while (!std::ranges::all_of(sequences_, &sequence::finished)) {
      place_and_park();
      submit();
      while (engine_.ticks_in_flight() == engine_.info().ticks_in_flight_max) collect();
      if (one_in(random_, 3)) collect();
    }
    while (engine_.ticks_in_flight() > 0) collect();
  }

 private:
  void place_and_park() {
    for (sequence& s : sequences_) {
      if (s.finished()) {
        if (s.slot && one_in(random_, 2)) engine_.clear(*s.slot);
        s.slot.reset();
      } else if (s.slot && one_in(random_, 6)) {
        engine_.park(*s.slot, s.parked);
        if (one_in(random_, 2)) engine_.clear(*s.slot);
        s.slot.reset();
      } else if (!s.slot && one_in(random_, 3)) {
        place(s);
      }
    }
  }

  void place(sequence& s) {
    std::vector<slot_id> free;
    for (slot_id slot = 0; slot < engine_.info().slots; ++slot)
      if (std::ranges::none_of(sequences_, [&](const sequence& other) { return other.slot == slot; }))
        free.push_back(slot);
    if (free.empty()) return;
    s.slot = free[up_to(random_, static_cast<std::uint32_t>(free.size()) - 1)];
    if (s.started)
      engine_.unpark(*s.slot, s.params, s.parked);  // perhaps before the park has run: order is enough
    else
      engine_.start(*s.slot, s.params);
    s.started = true;
  }

  void submit() {
    tick_plan plan;
    std::vector<sequence*> rows;
    std::uint32_t room = engine_.info().max_tick_tokens;
    for (sequence& s : sequences_) {
      if (!s.slot || one_in(random_, 4) || room == 0 || rows.size() == engine_.info().max_tick_rows) continue;
      if (s.fed < s.prompt.size()) {
        const auto left = std::span(s.prompt).subspan(s.fed);
        const auto chunk = left.first(std::min<std::size_t>(left.size(), 1 + up_to(random_, room - 1)));
        row& r = add_prefill(plan, *s.slot, chunk, chunk.size() == left.size());
        if (one_in(random_, 4)) r.kind = row_kind::score;
        if (one_in(random_, 4)) r.logits = logits_wanted::all;
        s.fed += chunk.size();
        room -= static_cast<std::uint32_t>(chunk.size());
      } else {
        add_decode(plan, *s.slot);
        room -= 1;
      }
      rows.push_back(&s);
    }
    BOOST_REQUIRE(engine_.submit(plan).has_value());
    in_flight_.push_back(rows);
  }

  void collect() {
    const auto done = engine_.collect();
    BOOST_REQUIRE(done.has_value());
    for (std::size_t i = 0; i < in_flight_.front().size(); ++i) {
      sequence& s = *in_flight_.front()[i];
      const row_result& r = (*done)->rows[i];
      BOOST_TEST(r.frozen == s.finished());
      if (!r.sampled) continue;
      s.got.tokens.push_back(r.token);
      if (s.params.logprobs) s.got.logprobs.push_back(r.logprobs.logprob);
      s.got.stopped = r.stopped;
    }
    in_flight_.pop_front();
  }

  skein::engine::engine& engine_;
  std::vector<sequence>& sequences_;
  generator& random_;
  std::deque<std::vector<sequence*>> in_flight_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(engine_batch)

BOOST_DATA_TEST_CASE(batch_composition_changes_nothing, data::make(engines_under_test())) {
  const std::uint64_t first_seed = given_seed().value_or(1);
  for (std::uint64_t seed = first_seed; seed < first_seed + (sample.emulated ? 4 : 25); ++seed) {
    generator random(seed);
    const auto alone = sample.make({.slots = 1, .max_tick_tokens = 64, .max_tick_rows = 1});
    const auto shared = sample.make({.slots = 2 + up_to(random, 3),
                                     .max_tick_tokens = 3 + up_to(random, 20),
                                     .max_tick_rows = 2 + up_to(random, 6)});
    std::vector<sequence> sequences;
    for (int i = 0; i < 8; ++i) {
      sequence& s = sequences.emplace_back(random_sequence(random, alone->info().vocab));
      s.expected = generate_alone(*alone, 0, s.prompt, s.params, s.prompt.size());
    }
    crowd(*shared, sequences, random).run();
    for (std::size_t i = 0; i < sequences.size(); ++i)
      BOOST_TEST(sequences[i].got == sequences[i].expected, "SKEIN_SEED=" << seed << " sequence " << i << ": got "
                                                                          << sequences[i].got << ", expected "
                                                                          << sequences[i].expected);
  }
}

BOOST_AUTO_TEST_SUITE_END()
