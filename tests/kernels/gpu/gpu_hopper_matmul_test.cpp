// The products of sm_90a in the emulator, which does what the copy engine and the matrix instructions do at any time
// that the hardware may. For as few multiprocessors as make blocks take several tiles. On a card gpu_matmul_bench makes
// the same comparisons with the sizes of real models.
#include <boost/test/unit_test.hpp>
#include <deque>

#include "kernels/gpu/gemm/matmul_hopper.hpp"
#include "tests/kernels/gpu/for_seeds.hpp"
#include "tests/kernels/gpu/gemm_case.hpp"

using namespace skein;
using namespace skein::test;
using namespace skein::kernels::gpu;
using values = std::vector<float>;

namespace {

emulator::other_device hopper(int sm_count = 4) {
  return emulator::other_device({.sm_count = sm_count, .compute_capability_major = 9});
}

element pick(random_numbers& random) { return random.below(2) == 0 ? element::f16 : element::bf16; }

/// From each way of work: up to 8, 16, 32, 64, 128 rows, and more, in tiles of all widths.
std::uint32_t some_rows(random_numbers& random) {
  constexpr std::uint32_t most[] = {2, 8, 16, 32, 64, 128, 330};
  const std::uint32_t which = random.below(std::size(most));
  const std::uint32_t least = which == 0 ? 0 : most[which - 1];
  return least + 1 + random.below(most[which] - least);
}

/// The sums [rows, outputs] of a GEMM in fp32, with its partial sums added by the kernel or here.
values sums_of(gemm p, element type, std::uint32_t rows, const stream& in) {
  const bool in_parts = p.segments > 1 && hopper_splits({&p, 1}, rows);
  const std::size_t size = std::size_t{rows} * p.outputs;
  const device_values out(values(size * (in_parts ? p.segments : 1)), element::f32);
  p.out = out.data(), p.out_stride = p.outputs;
  p.how = in_parts ? epilogue::store_parts : epilogue::store_f32, p.part_stride = in_parts ? size : 0;
  require(matmul_hopper(in, type, {&p, 1}, nullptr, rows));
  values sums = out.read(in);
  for (std::size_t i = size; i < sums.size(); ++i) sums[i % size] += sums[i];
  sums.resize(size);
  return sums;
}

}  // namespace

BOOST_AUTO_TEST_CASE(hopper_gemms_are_the_gemms_of_each_of_their_matrices) {
  for_seeds(40, [](random_numbers& random) {
    const auto device = hopper(1 + static_cast<int>(random.below(6)));
    const stream in;
    const element type = pick(random);
    const std::uint32_t rows = some_rows(random);
    std::deque<gemm_case> cases;
    std::vector<gemm> launch;
    std::vector<values> before;
    for (std::uint32_t i = 1 + random.below(rows > 64 ? 2 : 4); i > 0; --i) {
      const std::uint32_t outputs = 1 + random.below(150), inputs = 1 + random.below(300);
      const auto& made =
          cases.emplace_back(random, type, rows, outputs, inputs, static_cast<epilogue>(random.below(7)));
      launch.push_back(made.p);
      before.push_back(made.out_memory.read(in));
    }
    require(matmul_hopper(in, type, launch, nullptr, rows));
    for (std::size_t i = 0; i < cases.size(); ++i) {
      cases[i].check_result(in);
      const values after = cases[i].out_memory.read(in);
      for (std::size_t at = 0; at < after.size(); ++at)  // between the rows
        if (at % launch[i].out_stride >= launch[i].outputs) BOOST_REQUIRE(after[at] == before[i][at]);
    }
  });
}

// Blocks of few rows that are few and long have half the outputs of a matrix instruction; the other half must not be
// written. Adding to results also shows writes that a later block would overwrite.
BOOST_AUTO_TEST_CASE(a_narrow_block_writes_its_own_outputs_alone) {
  const auto device = hopper(3);
  const stream in;
  random_numbers random(1);
  for (const epilogue how : {epilogue::store, epilogue::sigmoid, epilogue::tanh, epilogue::relu_squared,
                             epilogue::add_f32, epilogue::store_f32, epilogue::store_f16})
    for (const std::uint32_t rows : {1u, 7u, 14u, 30u})
      BOOST_TEST_CONTEXT(rows << " rows, finish " << static_cast<int>(how)) {
        const gemm_case c(random, pick(random), rows, 136, 600, how);
        require(matmul_hopper(in, c.type, {&c.p, 1}, nullptr, rows));
        c.check_result(in);
      }
}

// However many rows, in tiles of whatever width, in parts or added up.
BOOST_AUTO_TEST_CASE(a_row_of_a_hopper_gemm_has_the_bits_that_it_has_alone) {
  for (const std::uint32_t segments : {1u, 2u, 4u}) {
    const stream in;
    random_numbers random(segments);
    const element type = pick(random);
    constexpr std::uint32_t rows_max = 1024, outputs = 136;
    gemm_case c(random, type, rows_max, outputs, segments == 1 ? 1500 : 2700, epilogue::store_f32);
    c.p.segments = segments;
    const auto one_device = hopper(1);  // four tiles of 256 rows
    const values all = sums_of(c.p, type, rows_max, in);
    for (const std::uint32_t rows : {1u, 3u, 5u, 8u, 13u, 15u, 25u, 32u, 40u, 100u, 130u, 192u, 300u, 520u, 960u})
      BOOST_TEST_CONTEXT(rows << " rows in " << segments << " segments") {
        const auto device = hopper(1 + static_cast<int>(rows % 5) * 3);  // one: wide blocks; tiles of 240 for 960
        BOOST_TEST(same_bits(sums_of(c.p, type, rows, in),
                             values(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(rows * outputs))));
      }
  }
}

// As the value matrix of 1.5B with 960 rows: two blocks a tile pass each other sums of segments.
BOOST_AUTO_TEST_CASE(a_pair_of_blocks_gives_the_bits_of_one) {
  constexpr std::uint32_t outputs = 136, sm_count = 12;
  for (const std::uint32_t inputs : {3328u, 3250u})  // segments of 13 tiles of 64 inputs; the last of 12
    for (const std::uint32_t rows : {520u, 700u}) BOOST_TEST_CONTEXT(inputs << " inputs, " << rows << " rows") {
        const stream in;
        random_numbers random(rows);
        const element type = pick(random);
        gemm_case c(random, type, rows, outputs, inputs, epilogue::store_f32);
        c.p.segments = 4;
        values alone = [&] {
          const auto device = hopper(3);
          BOOST_TEST(!hopper_pairs({&c.p, 1}, rows, 3));
          return sums_of(c.p, type, rows, in);
        }();
        const auto device = hopper(sm_count);
        BOOST_TEST(hopper_pairs({&c.p, 1}, rows, sm_count));
        BOOST_TEST(same_bits(sums_of(c.p, type, rows, in), alone));
        const values x = random_values(random, rows * outputs);
        const device_values added(x, element::f32);
        c.p.how = epilogue::add_f32, c.p.out = added.data(), c.p.out_stride = outputs;
        require(matmul_hopper(in, type, {&c.p, 1}, nullptr, rows));
        for (std::size_t i = 0; i < x.size(); ++i) alone[i] += x[i];
        BOOST_TEST(same_bits(added.read(in), alone));
      }
}

// As in a wide model: pairs whose first halves' inputs the second halves overwrite, and a product beside them.
BOOST_AUTO_TEST_CASE(second_hopper_gemms_wait_for_the_first) {
  for_seeds(4, [](random_numbers& random) {
    const auto device = hopper();
    const stream in;
    const element type = pick(random);
    constexpr std::uint32_t width = 4096, outputs = 100;
    const std::uint32_t rows = 1 + random.below(32);
    const std::uint32_t ranks[] = {70, 200, 9};
    std::deque<gemm_case> down, up;
    for (const std::uint32_t rank : ranks) {
      down.emplace_back(random, type, rows, rank, width, rank == 9 ? epilogue::tanh : epilogue::store);
      up.emplace_back(random, type, rows, outputs, rank, epilogue::sigmoid);
    }
    const gemm_case beside(random, type, rows, 130, width, epilogue::store);
    const device_buffer<std::uint32_t> done(2);
    require(fill_with_zeros(done.data(), done.bytes(), in));
    const auto outcome = [&](bool together) {
      std::deque<device_values> between, mixed;
      std::vector<gemm> launch, second;
      for (std::size_t i = 0; i < std::size(ranks); ++i) {
        gemm first = down[i].p, then = up[i].p;
        const values x = gemm_case::tiled(down[i].x, rows, width, rows);
        first.in = mixed.emplace_back(x, type).data();
        first.out_stride = padded(ranks[i]);
        then.in = first.out = between.emplace_back(values(rows * padded(ranks[i])), type).data();
        then.out = mixed.back().data(), then.out_stride = width;
        if (together) first.when = turn::first, then.when = turn::second, then.done = done.data();
        launch.push_back(first);
        second.push_back(then);
      }
      launch.push_back(beside.p);
      if (together) launch.insert(launch.end(), second.begin(), second.end());
      require(matmul_hopper(in, type, launch, nullptr, rows));
      if (!together) require(matmul_hopper(in, type, second, nullptr, rows));
      const pinned_buffer<std::uint32_t> counts(2);
      require(copy_to_host(counts.data(), done.data(), done.bytes(), in));
      require(in.synchronize());
      BOOST_TEST(counts.data()[0] == 0u);  // for the next launch
      BOOST_TEST(counts.data()[1] == 0u);
      values all = beside.out_memory.read(in);
      for (const device_values& m : mixed) {
        const values more = m.read(in);
        all.insert(all.end(), more.begin(), more.end());
      }
      return all;
    };
    const values apart = outcome(false);
    beside.check_result(in);
    for (int i = 0; i < 2; ++i) BOOST_TEST(same_bits(outcome(true), apart));
  });
}
