// The time-mix kernels, run by the emulator, against the same steps made of the primitives of kernels/reference: random
// runs, slots and heads, sums in parts, first layers and others, states in 32 and 16 bits. Long runs go token after
// token, and in chunks; for these also as if tensor cores did not round, where only the algebra is left to be wrong.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <optional>

#include "kernels/gpu/time_mix/chunks/wkv_chunks.hpp"
#include "tests/kernels/gpu/time_mix_on_device.hpp"
#include "tests/kernels/gpu/unrounded_operands.hpp"
#include "tests/kernels/stage_runs.hpp"
#include "tests/support/random_cases.hpp"

using namespace skein;
using namespace skein::test;
using namespace skein::kernels::gpu;
using values = std::vector<float>;

namespace {

constexpr std::uint32_t slots = 7;

struct what {
  element type, state_type;
  bool first_layer, chunked, extreme;
  float of_y, of_state;  ///< tolerances in fp32; what storing costs comes on top: y once, a state up to once a token
  std::uint32_t head_size = kernels::gpu::head_size;
};

void compare(random_numbers& random, const what& how, std::uint32_t runs_max, std::uint32_t rows_each_max) {
  const stream in;
  random_batch tick(random, runs_max, rows_each_max, slots, 5, in);
  time_mix_case given(random, how.type, 1 + random.below(3), tick.rows(), slots, how.extreme, how.head_size);
  time_mix_on_device device(given, random, how.type, how.state_type, how.first_layer, slots, in);
  const values states_before = given.states;

  std::optional<chunked_time_mix> chunks;
  if (how.chunked) {
    tick.chunk_long_runs(random, in);
    chunks.emplace(given.width, how.type, tick.rows(), static_cast<std::uint32_t>(tick.runs.size()));
    require(chunks->plan(in, tick.on_device(), tick.runs));
    require(chunks->run(in, how.state_type, device.of));
  }
  if (how.head_size == head_size)
    require(time_mix(in, tick.on_device(), how.type, how.state_type, device.of));
  else
    require(time_mix_any_head(in, tick.on_device(), how.type, how.state_type, device.of, how.head_size));

  values expected(given.r.size());
  std::vector<bool> touched(slots, false);
  for (const auto& run : tick.runs) {
    touched[run.slot] = true;
    for (std::uint32_t t = run.first_row; t < run.first_row + run.rows; ++t)
      given.take_token(run.slot, t, how.first_layer, expected);
  }
  const float of_type = how.type == element::f32 ? 0 : how.type == element::f16 ? 1e-3f : 8e-3f;
  const float of_storing = how.state_type == element::f16 ? 5e-3f : 0;
  BOOST_TEST(difference(device.y(in), expected) < std::max({how.of_y, of_type, of_storing}));
  BOOST_TEST(same_bits(device.v_first(in), given.v_first));
  device.check_nothing_was_written_behind_the_states(in);
  const std::size_t floats = given.states.size() / slots;
  for (slot_id s = 0; s < slots; ++s) {
    const auto part = [&](const values& all) {
      return values(all.begin() + static_cast<std::ptrdiff_t>(s * floats),
                    all.begin() + static_cast<std::ptrdiff_t>((s + 1) * floats));
    };
    const values got = device.state_of(s, in);
    if (touched[s])
      BOOST_TEST(difference(got, part(given.states)) < std::max(how.of_state, of_storing));
    else
      BOOST_TEST(same_bits(got, part(states_before)));
  }
}

template <typename Body>
void for_types(std::uint64_t count, const Body& body) {
  for (std::uint64_t seed = random_cases::seed(); seed < random_cases::seed() + count; ++seed) {
    emulator::block_runner::of_this_thread().reseed(seed);
    random_numbers random(seed);
    const auto type = std::array{element::f32, element::f16, element::bf16}[seed % 3];
    const auto state_type = seed % 2 == 0 ? element::f32 : element::f16;
    BOOST_TEST_CONTEXT("SKEIN_SEED=" << seed) { body(random, type, state_type, seed); }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(time_mix_is_what_the_paper_says) {
  for_types(12, [](random_numbers& random, element type, element state_type, std::uint64_t seed) {
    compare(random, {type, state_type, seed % 4 == 1, false, seed % 5 == 4, 1e-5f, 1e-5f}, 5, 70);
  });
}

BOOST_AUTO_TEST_CASE(time_mix_is_so_for_heads_of_any_size) {
  constexpr std::uint32_t sizes[] = {1, 8, 24, 32, 63, 65, 100, 128, 256};
  for_types(3 * std::size(sizes), [&](random_numbers& random, element type, element state_type, std::uint64_t seed) {
    compare(random,
            {type, state_type, seed % 4 == 1, false, seed % 5 == 4, 1e-5f, 1e-5f, sizes[seed / 3 % std::size(sizes)]},
            5, 20);
  });
}

// A tick with enough one-token runs for blocks to take several heads: the same bits as in ticks of a few.
BOOST_AUTO_TEST_CASE(crowds_change_no_bit) {
  constexpr std::uint32_t heads = 9, crowd = 60, piece = 20;  // heads: one more than such a block takes; 512 in all
  for_types(2, [](random_numbers& random, element type, element state_type, std::uint64_t) {
    const stream in;
    time_mix_case given(random, type, heads, crowd, crowd);
    const time_mix_on_device together(given, random, type, state_type, false, crowd, in);
    const time_mix_on_device apart(given, random, type, state_type, false, crowd, in);
    const auto runs = one_token_runs(crowd);
    const std::vector<token_id> ids(crowd, 0);
    batch_upload upload(crowd, crowd, 1);
    require(upload.send_rows({ids, runs}, in));
    require(time_mix(in, upload.on_device(), type, state_type, together.of));
    for (std::uint32_t first = 0; first < crowd; first += piece) {
      require(in.synchronize());
      require(upload.send_rows({ids, std::span(runs).subspan(first, piece)}, in));
      require(time_mix(in, upload.on_device(), type, state_type, apart.of));
    }
    BOOST_TEST(same_bits(together.y(in), apart.y(in)));
    for (slot_id s = 0; s < crowd; s += 13) BOOST_TEST(same_bits(together.state_of(s, in), apart.state_of(s, in)));
  });
}

// The kernel for many runs, with room for more rows than there are.
BOOST_AUTO_TEST_CASE(many_runs_of_one_token_have_the_same_bits) {
  constexpr std::uint32_t heads = 5, crowd = 46, room = 50;
  for_types(6, [](random_numbers& random, element type, element state_type, std::uint64_t seed) {
    const stream in;
    time_mix_case given(random, type, heads, crowd, crowd);
    const bool first_layer = seed % 2 == 1;
    const time_mix_on_device plain(given, random, type, state_type, first_layer, crowd, in);
    const time_mix_on_device many(given, random, type, state_type, first_layer, crowd, in);
    const auto runs = one_token_runs(crowd);
    const std::vector<token_id> ids(crowd, 0);
    batch_upload upload(room, room, 1);
    require(upload.send_rows({ids, runs}, in));
    device_batch batch = upload.on_device();
    require(time_mix(in, batch, type, state_type, plain.of));
    batch.room.rows = batch.room.runs = room;
    require(time_mix_many(in, batch, type, state_type, many.of));
    BOOST_TEST(same_bits(plain.y(in), many.y(in)));
    if (first_layer) BOOST_TEST(same_bits(plain.v_first(in), many.v_first(in)));
    for (slot_id s = 0; s < crowd; ++s) BOOST_TEST(same_bits(plain.state_of(s, in), many.state_of(s, in)));
  });
}

// Operands of 11 bits: measured are up to 6e-4 for y and 8e-4 for states, of the largest.
BOOST_AUTO_TEST_CASE(chunks_are_what_the_paper_says_but_for_their_rounding) {
  if (!chunked_time_mix::available()) return;  // warps of 64
  for_types(12, [](random_numbers& random, element type, element state_type, std::uint64_t seed) {
    compare(random, {type, state_type, seed % 4 == 1, true, seed % 2 == 1, 2e-3f, 1.5e-3f}, 4, 300);
  });
}

BOOST_AUTO_TEST_CASE(chunks_without_their_rounding_are_what_the_paper_says) {
  if (!chunked_time_mix::available()) return;
  const unrounded_operands unrounded;
  for_types(8, [](random_numbers& random, element, element state_type, std::uint64_t seed) {
    compare(random, {element::f32, state_type, seed % 4 == 1, true, seed % 2 == 1, 5e-6f, 5e-6f}, 4, 300);
  });
}

BOOST_AUTO_TEST_CASE(chunks_hang_on_no_other_run) {
  if (!chunked_time_mix::available()) return;
  for_types(2, [](random_numbers& random, element type, element state_type, std::uint64_t) {
    const stream in;
    random_batch tick(random, 4, 200, slots, 5, in);
    tick.chunk_long_runs(random, in);
    time_mix_case given(random, type, 2, tick.rows(), slots);
    const time_mix_on_device together(given, random, type, state_type, false, slots, in);
    const time_mix_on_device alone(given, random, type, state_type, false, slots, in);
    chunked_time_mix chunks(given.width, type, tick.rows(), slots);
    require(chunks.plan(in, tick.on_device(), tick.runs));
    require(chunks.run(in, state_type, together.of));
    // Alone: the others' rows are not listed.
    for (const auto& run : tick.runs) {
      batch_upload upload(tick.rows(), 1, 1);
      require(upload.send_rows({tick.ids, {&run, 1}}, in));
      require(chunks.plan(in, upload.on_device(), {&run, 1}));
      require(chunks.run(in, state_type, alone.of));
      require(in.synchronize());
    }
    for (const auto& run : tick.runs)
      BOOST_TEST(same_bits(alone.state_of(run.slot, in), together.state_of(run.slot, in)));
    const values y = together.y(in), y_alone = alone.y(in);
    for (const auto& run : tick.runs) {
      if (run.chunked == 0) continue;
      const auto rows = [&](const values& all) {
        const auto at = all.begin() + static_cast<std::ptrdiff_t>(std::size_t{run.first_row} * given.width);
        return values(at, at + static_cast<std::ptrdiff_t>(std::size_t{run.chunked} * given.width));
      };
      BOOST_TEST(same_bits(rows(y_alone), rows(y)));
    }
  });
}

// Where ticks end between chunks, and behind them, changes no bit: neither of fp32 states nor of those in fp16.
BOOST_AUTO_TEST_CASE(cuts_between_chunks_change_no_bit) {
  if (!chunked_time_mix::available()) return;
  for_types(8, [](random_numbers& random, element type, element state_type, std::uint64_t) {
    const stream in;
    constexpr std::uint32_t whole_chunks = 3 * chunk_tokens;
    const std::uint32_t chunked = whole_chunks + 32 * random.below(2) + random.below(2) * random.below(32);
    kernels::sequence_run all{2, 0, chunked + random.below(20), chunked};
    if (chunked % chunk_tokens < chunked_rows_min) all.chunked = whole_chunks;
    time_mix_case given(random, type, 2, all.rows, slots);
    const time_mix_on_device whole(given, random, type, state_type, false, slots, in);
    const time_mix_on_device cut(given, random, type, state_type, false, slots, in);
    const std::vector<token_id> ids(all.rows, 0);
    chunked_time_mix chunks(given.width, type, all.rows, slots);
    batch_upload upload(all.rows, 1, 1);
    const auto feed = [&](const time_mix_on_device& on, const kernels::sequence_run& run) {
      require(upload.send_rows({ids, {&run, 1}}, in));
      require(chunks.plan(in, upload.on_device(), {&run, 1}));
      require(chunks.run(in, state_type, on.of));
      if (chunks.has_other_rows()) require(time_mix(in, upload.on_device(), type, state_type, on.of));
      require(in.synchronize());
    };
    feed(whole, all);
    for (std::uint32_t row = 0, rows; row < all.rows; row += rows) {
      const std::uint32_t chunked_left = all.chunked > row ? all.chunked - row : 0;
      rows = std::min((1 + random.below(2)) * chunk_tokens, chunked_left);
      const std::uint32_t in_chunks = rows;
      if (rows == chunked_left && row + rows < all.rows) rows += 1 + random.below(all.rows - row - rows);
      feed(cut, {all.slot, row, rows, in_chunks});
    }
    BOOST_TEST(same_bits(cut.y(in), whole.y(in)));
    BOOST_TEST(same_bits(cut.state_of(all.slot, in), whole.state_of(all.slot, in)));
  });
}
