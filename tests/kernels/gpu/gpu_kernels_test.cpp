// Each kernel of the GPU alone, run by the emulator, against the primitives of kernels/reference: random shapes, runs
// of 1 to 70 tokens, slots in any order, all element types. Everything that a kernel should leave alone is compared as
// well, and fibers take turns in another order for every seed.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "kernels/gpu/gemm/matmul.hpp"
#include "kernels/gpu/ops/embed.hpp"
#include "kernels/gpu/ops/token_shift.hpp"
#include "kernels/gpu/time_mix/state.hpp"
#include "kernels/gpu/time_mix/time_mix.hpp"
#include "kernels/ops.hpp"
#include "tests/kernels/gpu/for_seeds.hpp"
#include "tests/kernels/gpu/gemm_checks.hpp"
#include "tests/kernels/stage_runs.hpp"
#include "tests/support/random_cases.hpp"

using namespace skein;
using namespace skein::test;
using namespace skein::kernels::gpu;
using values = std::vector<float>;

namespace {

constexpr element elements[] = {element::f32, element::f16, element::bf16};

/// Of one kernel: the sums are fp32 in another order, and results are rounded to the element type once.
constexpr float tolerance(element type) { return type == element::f32 ? 3e-6f : type == element::f16 ? 1e-3f : 8e-3f; }

element pick(random_numbers& random) { return elements[random.below(3)]; }

std::span<const float> row_of(const values& all, std::size_t width, std::size_t index) {
  return std::span(all).subspan(index * width, width);
}
std::span<float> row_of(values& all, std::size_t width, std::size_t index) {
  return std::span(all).subspan(index * width, width);
}

/// A matrix (outputs, inputs) filled up with zeros to whole tiles.
values tiled(const values& matrix, std::uint32_t outputs, std::uint32_t inputs) {
  values all(std::size_t{padded(outputs)} * padded(inputs), 0.0f);
  for (std::uint32_t o = 0; o < outputs; ++o)
    std::ranges::copy(row_of(matrix, inputs, o), all.begin() + static_cast<std::ptrdiff_t>(o * padded(inputs)));
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(matmul_is_the_gemm_of_each_of_its_matrices) {
  for_seeds(25, [](random_numbers& random) {
    const element type = pick(random);
    const std::uint32_t rows = 1 + random.below(90), room = rows + random.below(80);
    check_random_launch(random, plain_matmul(), type, rows, room, 4, 300);
  });
}

BOOST_AUTO_TEST_CASE(a_row_of_a_gemm_hangs_on_no_other_row) {
  for_seeds(5, [](random_numbers& random) {
    const stream in;
    const element type = pick(random);
    constexpr std::uint32_t rows = 70, outputs = 65, inputs = 200;
    const device_values matrix(tiled(random_values(random, outputs * inputs), outputs, inputs), type);
    const values x = random_values(random, std::size_t{rows} * padded(inputs));
    const device_values all(x, type);
    const auto gemm_of = [&](std::uint32_t count, std::uint32_t room) {
      batch_upload upload(rows, 1, 1);
      const std::vector<token_id> ids(count, 0);
      const std::vector<kernels::sequence_run> runs{{0, 0, count}};
      require(upload.send_rows({ids, runs}, in));
      const device_values out(values(count * outputs), element::f32);
      const gemm p{{matrix.data(), outputs, inputs, row_format(type)},
                   all.data(),
                   out.data(),
                   padded(inputs),
                   outputs,
                   store_f32};
      require(matmul(in, type, {&p, 1}, &upload.on_device().counts->rows, room));
      return out.read(in);
    };
    const values whole = gemm_of(rows, rows);
    for (const auto& [count, room] : {std::pair{1u, 1u}, {1u, 64u}, {16u, 16u}, {17u, 17u}, {33u, 70u}})
      BOOST_TEST(same_bits(gemm_of(count, room), values(whole.begin(), whole.begin() + count * outputs)));
  });
}

BOOST_AUTO_TEST_CASE(parts_of_a_gemm_add_up_to_the_bits_of_the_whole) {
  for_seeds(12, [](random_numbers& random) {
    const stream in;
    const element type = pick(random);
    const std::uint32_t rows = 1 + random.below(30), outputs = 4 * (1 + random.below(40)),
                        inputs = 1 + random.below(900);
    const std::uint32_t segments = segments_of(padded(inputs) / matrix_tile, 1 + random.below(150), 264);
    BOOST_TEST(segments >= 1u);
    BOOST_TEST(segments <= 4u);
    batch_upload upload(rows, 1, 1);
    const std::vector<token_id> ids(rows, 0);
    const std::vector<kernels::sequence_run> runs{{0, 0, rows}};
    require(upload.send_rows({ids, runs}, in));
    const device_values matrix(tiled(random_values(random, outputs * inputs), outputs, inputs), type);
    const device_values x(random_values(random, std::size_t{rows} * padded(inputs)), type);
    const device_values whole(values(rows * outputs), element::f32);
    const device_values parts(values(segments * rows * outputs), element::f32);
    gemm p{{matrix.data(), outputs, inputs, row_format(type)},
           x.data(),
           whole.data(),
           padded(inputs),
           outputs,
           store_f32,
           segments};
    require(matmul(in, type, {&p, 1}, &upload.on_device().counts->rows, rows));
    p.how = store_parts, p.out = parts.data(), p.part_stride = rows * outputs;
    require(matmul(in, type, {&p, 1}, &upload.on_device().counts->rows, rows));
    const values each = parts.read(in);
    values sums(each.begin(), each.begin() + static_cast<std::ptrdiff_t>(rows * outputs));
    for (std::uint32_t s = 1; s < segments; ++s)
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += each[s * sums.size() + i];
    BOOST_TEST(same_bits(whole.read(in), sums));
  });
}

BOOST_AUTO_TEST_CASE(second_gemms_read_what_the_first_of_their_launch_write) {
  for_seeds(6, [](random_numbers& random) {
    const element type = pick(random);
    const std::uint32_t rows = 1 + random.below(90), width = 128 + 64 * random.below(3);
    check_second_gemms(random, plain_matmul(), type, rows, width);
  });
}

BOOST_AUTO_TEST_CASE(what_is_not_in_turn_is_told) {
  std::uint32_t done[2] = {};
  gemm first, any, second;
  first.when = turn::first, second.when = turn::second, second.done = done;
  const auto is_right = [](const std::vector<gemm>& list) { return is_in_turn(list); };
  BOOST_TEST(is_right({any, any}));
  BOOST_TEST(is_right({first, any, second, second}));
  BOOST_TEST(is_right({second, second}));  // what is left of a launch in two
  BOOST_TEST(!is_right({any, first, second}));
  BOOST_TEST(!is_right({first, second, any}));
  gemm other = second;
  other.matrix.outputs = 64;
  BOOST_TEST(!is_right({first, second, other}));
  other = second, other.done = nullptr;
  BOOST_TEST(!is_right({first, second, other}));
  other = second, other.segments = 2;
  BOOST_TEST(!is_right({first, other}));
  other = first, other.how = store_parts;
  BOOST_TEST(!is_right({other, second}));
  BOOST_TEST(!is_right(std::vector<gemm>(gemms_max_of_turn + 1, any)));
}

BOOST_AUTO_TEST_CASE(embed_and_norm_wanted_are_layer_norms) {
  for_seeds(10, [](random_numbers& random) {
    const stream in;
    const element type = pick(random);
    const std::uint32_t width = 64 * (1 + random.below(12)), vocab = 50;
    random_batch tick(random, 4, 20, 4, vocab, in);
    const values table = rounded(random_values(random, vocab * width), type);
    const values weight = random_values(random, width), bias = random_values(random, width);
    const device_values on_device(table, type), w(weight, element::f32), b(bias, element::f32);
    const device_values x(values(tick.rows() * width), element::f32);
    require(embed(in, tick.on_device(), type, on_device.data(), width, {w.floats(), b.floats()}, x.floats(), width));
    values expected(tick.rows() * width);
    for (std::uint32_t t = 0; t < tick.rows(); ++t)
      kernels::layer_norm(row_of(table, width, static_cast<std::size_t>(tick.ids[t])), weight, bias,
                          kernels::layer_norm_eps, row_of(expected, width, t));
    const values got = x.read(in);
    BOOST_TEST(difference(got, expected) < tolerance(element::f32));

    std::vector<std::uint32_t> wanted;
    for (std::uint32_t i = 1 + random.below(tick.rows()); i > 0; --i) wanted.push_back(random.below(tick.rows()));
    require(tick.upload.send_wanted(wanted, in));
    const std::uint32_t stride = width + 8;
    const device_values normed(values(wanted.size() * stride, 7.0f), type);
    require(norm_wanted(in, tick.on_device(), type, {x.floats(), {}}, {w.floats(), b.floats()}, normed.data(), stride,
                        width));
    values expected_normed(wanted.size() * stride, 7.0f);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      kernels::layer_norm(row_of(got, width, wanted[i]), weight, bias, kernels::layer_norm_eps,
                          row_of(expected_normed, stride, i).first(width));
    BOOST_TEST(difference(normed.read(in), expected_normed) < tolerance(type));
  });
}

namespace {

/// A batch in slots below `slots`, launched for at least `room` rows.
void check_token_shift(random_numbers& random, const random_batch& tick, std::uint32_t room, std::uint32_t slots,
                       std::uint32_t width, std::uint32_t shifts, const stream& in) {
  device_batch batch = tick.on_device();
  const bool decodes = batch.room.runs == batch.room.rows;
  batch.room.rows = std::max(batch.room.rows, room);
  if (decodes) batch.room.runs = batch.room.rows;
  const element type = pick(random), kept = random.below(2) == 0 ? element::f32 : element::f16;
  const values x = random_values(random, tick.rows() * width, 3);
  const values x_prev = rounded(random_values(random, slots * width), kept);
  const values weight = random_values(random, width), bias = random_values(random, width);
  const device_values on_device(x, element::f32), prev(x_prev, kept);
  const device_values w(weight, element::f32), b(bias, element::f32);
  token_shift_parameters of;
  // Every other time x comes in two halves: x itself and the parts of a product, which must be added in their order.
  const bool adds = random.below(2) == 0;
  const std::uint32_t parts = 1 + random.below(4);
  const values pieces = random_values(random, parts * x.size(), 2);
  const device_values addends(pieces, element::f32), sum(values(x.size()), element::f32);
  values sums = x;
  if (adds) {
    of.from.added = {addends.floats(), width, parts, x.size()};
    of.sum = sum.floats();
    for (std::size_t i = 0; i < x.size(); ++i) {
      float all = pieces[i];
      for (std::uint32_t p = 1; p < parts; ++p) all += pieces[p * x.size() + i];
      sums[i] = x[i] + all;
    }
  }
  of.from.x = on_device.floats(), of.norm = {w.floats(), b.floats()};
  const device_values spent(values(x.size() + 64, 7.0f), element::f32);
  of.discards = random.below(2) == 0;
  if (of.discards && random.below(2) == 0) of.spent = spent.data(), of.spent_bytes = width * sizeof(float);
  of.x_prev = prev.data(), of.slot_bytes = width * element_bytes(kept), of.kept_type = kept;
  of.width = of.out_stride = width, of.shifts = shifts;
  std::vector<values> mixes;
  std::vector<device_values> memory;
  memory.reserve(2 * token_shifts_max);
  for (std::uint32_t i = 0; i < shifts; ++i) {
    mixes.push_back(random_values(random, width));
    of.mix[i] = memory.emplace_back(mixes[i], element::f32).floats();
    of.out[i] = memory.emplace_back(values(tick.rows() * width), type).data();
  }
  require(token_shift(in, batch, type, of));

  values expected_prev = x_prev, now(width), before(width);
  std::vector<values> expected(shifts, values(tick.rows() * width));
  for (const auto& run : tick.runs) {
    std::ranges::copy(row_of(x_prev, width, run.slot), before.begin());
    for (std::uint32_t t = run.first_row; t < run.first_row + run.rows; ++t) {
      kernels::layer_norm(row_of(sums, width, t), weight, bias, kernels::layer_norm_eps, now);
      for (std::uint32_t i = 0; i < shifts; ++i)
        kernels::token_shift(now, before, mixes[i], row_of(expected[i], width, t));
      before = rounded(now, kept);
    }
    std::ranges::copy(before, row_of(expected_prev, width, run.slot).begin());
  }
  for (std::uint32_t i = 0; i < shifts; ++i)
    BOOST_TEST(difference(memory[2 * i + 1].read(in), expected[i]) < tolerance(type));
  BOOST_TEST(difference(prev.read(in), expected_prev) < tolerance(kept));
  if (!of.discards) BOOST_TEST(same_bits(on_device.read(in), x));
  if (!of.discards && adds) BOOST_TEST(same_bits(addends.read(in), pieces));
  const values left = spent.read(in);
  BOOST_TEST(same_bits(values(left.end() - 64, left.end()), values(64, 7.0f)));
  if (adds) BOOST_TEST(same_bits(sum.read(in), sums));
}

}  // namespace

BOOST_AUTO_TEST_CASE(token_shift_mixes_each_row_with_the_one_before) {
  for_seeds(12, [](random_numbers& random) {
    const stream in;
    const std::uint32_t width = 64 * (1 + random.below(7)), shifts = 1 + random.below(token_shifts_max);
    constexpr std::uint32_t slots = 9;
    check_token_shift(random, random_batch(random, 6, 70, slots, 5, in), 0, slots, width, shifts, in);
  });
}

// Without PDL and with SMs to spare, a row is cut into slices.
BOOST_AUTO_TEST_CASE(token_shift_does_so_in_slices) {
  const imposed_card card("a100");
  for_seeds(6, [](random_numbers& random) {
    const stream in;
    const std::uint32_t width = 1024 * (1 + random.below(5)), shifts = 1 + random.below(token_shifts_max);
    constexpr std::uint32_t slots = 6;
    check_token_shift(random, random_batch(random, 3, 4, slots, 5, in), 0, slots, width, shifts, in);
  });
}

// Then a block takes some neighbours one after the other, and runs end and begin inside it and across.
BOOST_AUTO_TEST_CASE(token_shift_does_so_for_many_rows) {
  for_seeds(4, [](random_numbers& random) {
    const stream in;
    const std::uint32_t shifts = random.below(2) == 0 ? 1 : token_shifts_max;
    constexpr std::uint32_t slots = 80;
    const random_batch tick(random, 70, 40, slots, 5, in);
    check_token_shift(random, tick, 512, slots, 64 * (1 + random.below(3)), shifts, in);
  });
}

BOOST_AUTO_TEST_CASE(token_shift_does_so_for_a_row_each_of_many_sequences) {
  for_seeds(4, [](random_numbers& random) {
    const stream in;
    const std::uint32_t shifts = random.below(2) == 0 ? 1 : token_shifts_max;
    constexpr std::uint32_t slots = 40, more_than_fit = 1200;
    const std::uint32_t width = 64 * (1 + random.below(9));
    check_token_shift(random, {random, slots, 1, slots, 5, in}, more_than_fit, slots, width, shifts, in);
  });
}

// A run that many rows of one launch hold and the same run cut in two: other kernels, the same bits.
BOOST_AUTO_TEST_CASE(token_shift_has_the_same_bits_in_any_batch) {
  for_seeds(4, [](random_numbers& random) {
    const stream in;
    const element type = pick(random), kept = random.below(2) == 0 ? element::f32 : element::f16;
    const std::uint32_t rows = 512 + random.below(40), cut = 1 + random.below(rows - 1);
    const std::uint32_t width = 64 * (9 + random.below(8));  // several warps share a row
    const device_values x(random_values(random, rows * width, 3), element::f32);
    const device_values weight(random_values(random, width), element::f32);
    const device_values bias(random_values(random, width), element::f32);
    const device_values mix(random_values(random, width), element::f32);
    token_shift_parameters of;
    of.norm = {weight.floats(), bias.floats()};
    of.slot_bytes = width * element_bytes(kept), of.kept_type = kept, of.width = of.out_stride = width;
    of.shifts = random.below(2) == 0 ? 1 : token_shifts_max;
    const auto shifted = [&](std::initializer_list<std::uint32_t> lengths) {
      const device_values x_prev(values(width), kept), out(values(rows * width), type);
      const device_values others(values(rows * width), type);
      std::uint32_t first = 0;
      for (const std::uint32_t length : lengths) {
        batch_upload upload(length, 1, length);
        const std::vector<token_id> ids(length);
        const std::vector<kernels::sequence_run> runs{{0, 0, length}};
        require(upload.send_rows({ids, runs}, in));
        of.from.x = x.floats() + first * width, of.x_prev = x_prev.data();
        for (std::uint32_t i = 0; i < of.shifts; ++i) {
          of.mix[i] = mix.floats();
          of.out[i] = static_cast<std::byte*>((i == 0 ? out : others).data()) + first * width * element_bytes(type);
        }
        require(token_shift(in, upload.on_device(), type, of));
        require(wait_for(in));
        first += length;
      }
      return std::pair(out.read(in), x_prev.read(in));
    };
    const auto [whole, prev] = shifted({rows});
    const auto [in_two, prev_in_two] = shifted({cut, rows - cut});
    BOOST_TEST(same_bits(whole, in_two));
    BOOST_TEST(same_bits(prev, prev_in_two));
  });
}

BOOST_AUTO_TEST_CASE(states_keep_their_numbers_in_both_orders) {
  for_seeds(12, [](random_numbers& random) {
    const stream in;
    const element type = random.below(2) == 0 ? element::f32 : element::f16;
    constexpr std::uint32_t head_sizes[] = {64, 64, 16, 32, 192};
    const slot_layout layout{1 + random.below(3), 2 + random.below(3), 192 * (1 + random.below(3)), type,
                             head_sizes[random.below(5)]};
    const values canonical = rounded(random_values(random, layout.layers * layout.canonical_layer_floats()), type);
    const device_values from(canonical, type), to(values(canonical.size()), type);
    const device_values states(values(layout.bytes() / sizeof(float), 7.0f), element::f32);
    const slot_id slot = random.below(layout.slots), other = (slot + 1) % layout.slots;
    require(state_from_canonical(in, layout, from.data(), states.data(), slot));
    const auto changed = [&] {
      const values all = states.read(in);
      return std::ranges::count_if(all, [](float value) { return value != 7; }) * sizeof(float);
    };
    BOOST_TEST(changed() == layout.slot_bytes());
    require(copy_state(in, layout, states.data(), slot, other));
    BOOST_TEST(changed() == 2 * layout.slot_bytes());
    for (const slot_id of : {slot, other}) {
      require(state_to_canonical(in, layout, states.data(), of, to.data()));
      BOOST_TEST(same_bits(to.read(in), canonical));
    }
  });
}
