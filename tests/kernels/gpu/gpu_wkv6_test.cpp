// The time-mix kernels of versions 5 and 6, run by the emulator or on a card, against the equations in fp64: token
// after token, and in chunks; for these also as if tensor cores did not round, where only the algebra is left to be
// wrong.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <optional>

#include "kernels/gpu/time_mix/chunks/wkv6_chunks.hpp"
#include "tests/kernels/gpu/wkv6_case.hpp"
#include "tests/kernels/stage_runs.hpp"
#include "tests/support/random_cases.hpp"
#if defined(SKEIN_GPU_EMULATOR)
#include "tests/kernels/gpu/unrounded_operands.hpp"
#endif

using namespace skein;
using namespace skein::test;
using namespace skein::kernels::gpu;
using values = std::vector<float>;

namespace {

constexpr slot_id wkv6_slots = 7;

/// Runs of these lengths in scattered slots; with `chunked`, each as the plan divides a prompt.
std::vector<kernels::sequence_run> runs_of(const std::vector<std::uint32_t>& lengths, bool chunked) {
  std::vector<kernels::sequence_run> runs;
  std::uint32_t row = 0;
  for (const std::uint32_t rows : lengths) {
    kernels::sequence_run run{static_cast<slot_id>(runs.size() * 3 % wkv6_slots), row, rows};
    const std::uint32_t rest = rows % chunk_tokens;
    if (chunked) run.chunked = rest < chunked_rows_min ? rows - rest : rows;
    runs.push_back(run);
    row += rows;
  }
  return runs;
}

/// A tick, which may be fed to several devices.
class wkv6_tick {
 public:
  explicit wkv6_tick(std::vector<kernels::sequence_run> given)
      : runs(std::move(given)),
        rows(runs.back().first_row + runs.back().rows),
        upload_(rows, static_cast<std::uint32_t>(runs.size()), 1) {}

  void feed(const wkv6_case& given, const wkv6_on_device& on, const stream& in) { feed(given, on, runs, in); }
  void feed(const wkv6_case& given, const wkv6_on_device& on, std::span<const kernels::sequence_run> some,
            const stream& in) {
    const std::vector<token_id> ids(rows, 0);
    require(upload_.send_rows({ids, some}, in));
    const bool chunked = std::ranges::any_of(some, [](const auto& run) { return run.chunked > 0; });
    bool others = true;
    if (chunked) {
      if (!chunks_) chunks_.emplace(given.width, given.of.type, rows, static_cast<std::uint32_t>(runs.size()));
      require(chunks_->plan(in, upload_.on_device(), some));
      require(chunks_->run(in, given.of.state_type, on.of));
      others = chunks_->has_other_rows();
    }
    if (others)
      require(wkv6(in, upload_.on_device(), given.of.type, given.of.state_type, on.of, kernels::gpu::head_size));
    require(in.synchronize());
  }

  const std::vector<kernels::sequence_run> runs;
  const std::uint32_t rows;

 private:
  batch_upload upload_;
  std::optional<chunked_wkv6> chunks_;
};

struct errors {
  float y = 0, state = 0;
};

/// Of the largest value; each state by itself. What storing costs is in it.
errors errors_of(random_numbers& random, const wkv6_shape& shape, const std::vector<std::uint32_t>& lengths,
                 bool chunked) {
  const stream in;
  wkv6_tick tick(runs_of(lengths, chunked));
  wkv6_case given(random, shape, tick.rows, wkv6_slots);
  const wkv6_on_device device(given, random, wkv6_slots, in);
  const values before = given.states;
  tick.feed(given, device, in);
  values expected(given.r.size());
  std::vector<bool> touched(wkv6_slots, false);
  for (const auto& run : tick.runs) {
    touched[run.slot] = true;
    for (std::uint32_t t = run.first_row; t < run.first_row + run.rows; ++t) given.take_token(run.slot, t, expected);
  }
  errors found{difference(device.y(in), expected), 0};
  const std::size_t floats = given.states.size() / wkv6_slots;
  for (slot_id s = 0; s < wkv6_slots; ++s) {
    const auto part = [&](const values& all) {
      return values(all.begin() + static_cast<std::ptrdiff_t>(s * floats),
                    all.begin() + static_cast<std::ptrdiff_t>((s + 1) * floats));
    };
    const values got = device.state_of(s, in);
    if (touched[s])
      found.state = std::max(found.state, difference(got, part(given.states)));
    else
      BOOST_TEST(same_bits(got, part(before)));
  }
  BOOST_TEST_MESSAGE("type " << static_cast<int>(shape.type) << ", states " << static_cast<int>(shape.state_type)
                             << ", errors: y " << found.y << ", states " << found.state);
  return found;
}

/// Every combination of a gate, token decays and usual or extreme inputs, in turn.
template <typename Body>
void for_shapes(std::uint64_t count, const Body& body) {
  for (std::uint64_t seed = random_cases::seed(); seed < random_cases::seed() + count; ++seed) {
    emulator::block_runner::of_this_thread().reseed(seed);
    random_numbers random(seed);
    wkv6_shape shape;
    shape.type = std::array{element::f32, element::f16, element::bf16}[seed % 3];
    shape.state_type = seed % 2 == 0 ? element::f32 : element::f16;
    shape.has_gate = seed / 2 % 2 == 0, shape.has_w_out = seed / 4 % 2 == 0;
    shape.inputs = seed / 3 % 2 == 0 ? wkv6_inputs::extreme : wkv6_inputs::usual;
    BOOST_TEST_CONTEXT("SKEIN_SEED=" << seed) { body(random, shape, seed); }
  }
}

/// What rounding to the types costs, and the states of fp16 after each token.
float cost_of_storing(const wkv6_shape& shape) {
  const float of_type = shape.type == element::f32 ? 0 : shape.type == element::f16 ? 1e-3f : 8e-3f;
  return std::max(of_type, shape.state_type == element::f16 ? 5e-3f : 0);
}

}  // namespace

BOOST_AUTO_TEST_CASE(wkv6_is_what_the_paper_says) {
  for_shapes(12, [](random_numbers& random, const wkv6_shape& shape, std::uint64_t) {
    const errors found = errors_of(random, shape, {1, 40, 1, 3}, false);
    BOOST_TEST(found.y < std::max(1e-5f, cost_of_storing(shape)));
    BOOST_TEST(found.state < std::max(1e-5f, cost_of_storing(shape)));
  });
}

// Operands of 11 bits: measured with fp32 are up to 1.0e-3 for y and 7e-4 for states, of the largest, in 192 cases.
BOOST_AUTO_TEST_CASE(wkv6_chunks_are_what_the_paper_says_but_for_their_rounding) {
  if (!chunked_wkv6::available()) return;  // warps of 64
  constexpr std::uint32_t lengths[] = {32, 33, 63, 64, 65, 200};
  for_shapes(24, [&](random_numbers& random, const wkv6_shape& shape, std::uint64_t seed) {
    const errors found = errors_of(random, shape, {1, lengths[seed % 6], 1, lengths[seed / 6 % 6]}, true);
    BOOST_TEST(found.y < std::max(2e-3f, cost_of_storing(shape)));
    BOOST_TEST(found.state < std::max(1.5e-3f, shape.state_type == element::f16 ? 5e-3f : 0));
  });
}

#if defined(SKEIN_GPU_EMULATOR)
BOOST_AUTO_TEST_CASE(wkv6_chunks_without_their_rounding_are_what_the_paper_says) {
  if (!chunked_wkv6::available()) return;
  const unrounded_operands unrounded;
  constexpr std::uint32_t lengths[] = {32, 33, 63, 64, 65, 200};
  for_shapes(12, [&](random_numbers& random, wkv6_shape shape, std::uint64_t seed) {
    shape.type = shape.state_type = element::f32;
    const errors found = errors_of(random, shape, {lengths[seed % 6], 1, lengths[seed / 2 % 6]}, true);
    BOOST_TEST(found.y < 5e-6f);
    BOOST_TEST(found.state < 5e-6f);
  });
}
#endif

// All values as large as fp16 allows, with decays from 0 to 1: neither infinities nor NaN.
BOOST_AUTO_TEST_CASE(huge_values_stay_finite_in_chunks) {
  if (!chunked_wkv6::available()) return;
  for_shapes(6, [](random_numbers& random, wkv6_shape shape, std::uint64_t) {
    shape.inputs = wkv6_inputs::huge;
    const stream in;
    wkv6_tick tick(runs_of({130, 40}, true));
    wkv6_case given(random, shape, tick.rows, wkv6_slots);
    const wkv6_on_device device(given, random, wkv6_slots, in);
    tick.feed(given, device, in);
    const auto is_finite = [](float value) { return std::isfinite(value); };
    BOOST_TEST(std::ranges::all_of(device.y(in), is_finite));
    for (const auto& run : tick.runs) BOOST_TEST(std::ranges::all_of(device.state_of(run.slot, in), is_finite));
  });
}

BOOST_AUTO_TEST_CASE(wkv6_chunks_depend_on_no_other_run) {
  if (!chunked_wkv6::available()) return;
  for_shapes(2, [](random_numbers& random, const wkv6_shape& shape, std::uint64_t) {
    const stream in;
    wkv6_tick tick(runs_of({1, 100, 1, 64, 40}, true));
    wkv6_case given(random, shape, tick.rows, wkv6_slots);
    const wkv6_on_device together(given, random, wkv6_slots, in), alone(given, random, wkv6_slots, in);
    tick.feed(given, together, in);
    for (const auto& run : tick.runs) tick.feed(given, alone, {&run, 1}, in);  // the others' rows are not listed
    for (const auto& run : tick.runs)
      BOOST_TEST(same_bits(alone.state_of(run.slot, in), together.state_of(run.slot, in)));
    BOOST_TEST(same_bits(alone.y(in), together.y(in)));
  });
}

// Where ticks end between chunks, and behind them, changes no bit: neither of fp32 states nor of those in fp16.
BOOST_AUTO_TEST_CASE(cuts_between_wkv6_chunks_change_no_bit) {
  if (!chunked_wkv6::available()) return;
  for_shapes(6, [](random_numbers& random, const wkv6_shape& shape, std::uint64_t) {
    const stream in;
    wkv6_tick tick(runs_of({3 * chunk_tokens + random.below(chunk_tokens)}, true));
    const kernels::sequence_run all = tick.runs[0];
    wkv6_case given(random, shape, all.rows, wkv6_slots);
    const wkv6_on_device whole(given, random, wkv6_slots, in), cut(given, random, wkv6_slots, in);
    tick.feed(given, whole, in);
    for (std::uint32_t row = 0, rows; row < all.rows; row += rows) {
      const std::uint32_t chunked_left = all.chunked > row ? all.chunked - row : 0;
      rows = std::min((1 + random.below(2)) * chunk_tokens, chunked_left);
      const std::uint32_t in_chunks = rows;
      if (rows == chunked_left && row + rows < all.rows) rows += 1 + random.below(all.rows - row - rows);
      const kernels::sequence_run part{all.slot, row, rows, in_chunks};
      tick.feed(given, cut, {&part, 1}, in);
    }
    BOOST_TEST(same_bits(cut.y(in), whole.y(in)));
    BOOST_TEST(same_bits(cut.state_of(all.slot, in), whole.state_of(all.slot, in)));
  });
}

// 540 heads of one token each have small blocks, and a third of them has those of any run.
BOOST_AUTO_TEST_CASE(small_wkv6_blocks_change_no_bit) {
  constexpr std::uint32_t crowd = 60, piece = 20;
  for_shapes(4, [](random_numbers& random, wkv6_shape shape, std::uint64_t) {
    const stream in;
    shape.heads = 9;
    wkv6_case given(random, shape, crowd, crowd);
    const wkv6_on_device together(given, random, crowd, in), apart(given, random, crowd, in);
    const auto runs = one_token_runs(crowd);
    const std::vector<token_id> ids(crowd, 0);
    const auto feed = [&](const wkv6_on_device& on, std::span<const kernels::sequence_run> some) {
      batch_upload upload(crowd, static_cast<std::uint32_t>(some.size()), 1);
      require(upload.send_rows({ids, some}, in));
      device_batch batch = upload.on_device();
      batch.room.rows = batch.room.runs = static_cast<std::uint32_t>(some.size());
      require(wkv6(in, batch, shape.type, shape.state_type, on.of, kernels::gpu::head_size));
      require(in.synchronize());
    };
    feed(together, runs);
    for (std::uint32_t first = 0; first < crowd; first += piece) feed(apart, std::span(runs).subspan(first, piece));
    BOOST_TEST(same_bits(together.y(in), apart.y(in)));
    for (slot_id s = 0; s < crowd; ++s) BOOST_TEST(same_bits(together.state_of(s, in), apart.state_of(s, in)));
  });
}

// The kernel for many runs of one token, with room for more rows than there are: the bits of the plain kernel.
BOOST_AUTO_TEST_CASE(many_wkv6_runs_of_one_token_have_the_same_bits) {
  constexpr std::uint32_t crowd = 46, room = 50;
  for_shapes(6, [](random_numbers& random, wkv6_shape shape, std::uint64_t) {
    const stream in;
    shape.heads = 5;
    wkv6_case given(random, shape, crowd, crowd);
    const wkv6_on_device plain(given, random, crowd, in), many(given, random, crowd, in);
    const auto runs = one_token_runs(crowd);
    const std::vector<token_id> ids(crowd, 0);
    batch_upload upload(room, room, 1);
    require(upload.send_rows({ids, runs}, in));
    device_batch batch = upload.on_device();
    require(wkv6(in, batch, shape.type, shape.state_type, plain.of, kernels::gpu::head_size));
    batch.room.rows = batch.room.runs = room;
    const auto done = wkv6_many(in, batch, shape.type, shape.state_type, many.of);
    if (!done && done.error().kind == error_kind::unsupported) {  // and the model uses the plain kernel
      BOOST_REQUIRE(!runtime_is_emulated);
      BOOST_TEST_MESSAGE("skipped: " << done.error().message);
      return;
    }
    require(done);
    BOOST_TEST(same_bits(plain.y(in), many.y(in)));
    for (slot_id s = 0; s < crowd; ++s) BOOST_TEST(same_bits(plain.state_of(s, in), many.state_of(s, in)));
  });
}
