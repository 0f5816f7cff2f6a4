// The products of sm_90a in the emulator, which does what the copy engine and the matrix instructions do at any time
// that the hardware may. For as few multiprocessors as make blocks take several tiles. On a card gpu_matmul_bench makes
// the same comparisons with the sizes of real models.
#include <boost/test/unit_test.hpp>

#include "kernels/gpu/gemm/hopper/matmul_hopper.hpp"
#include "tests/kernels/gpu/for_seeds.hpp"
#include "tests/kernels/gpu/gemm_checks.hpp"

using namespace skein;
using namespace skein::test;
using namespace skein::kernels::gpu;
using values = std::vector<float>;

namespace {

emulator::other_device hopper(int sm_count = 4) {
  return emulator::other_device({.sm_count = sm_count, .compute_capability_major = 9});
}

constexpr matmul_functions by_hopper{"hopper", matmul_hopper, hopper_splits};

/// From each way of work: up to 8, 16, 32, 64, 128 rows, and more, in tiles of all widths.
std::uint32_t some_rows(random_numbers& random) {
  constexpr std::uint32_t most[] = {2, 8, 16, 32, 64, 128, 330};
  const std::uint32_t which = random.below(std::size(most));
  const std::uint32_t least = which == 0 ? 0 : most[which - 1];
  return least + 1 + random.below(most[which] - least);
}

}  // namespace

BOOST_AUTO_TEST_CASE(hopper_gemms_are_the_gemms_of_each_of_their_matrices) {
  for_seeds(40, [](random_numbers& random) {
    const auto device = hopper(1 + static_cast<int>(random.below(6)));
    const element type = pick_16_bits(random);
    const std::uint32_t rows = some_rows(random);
    check_random_launch(random, by_hopper, type, rows, rows, rows > 64 ? 2 : 4, 300);
  });
}

// Blocks of few rows that are few and long have half the outputs of a matrix instruction; the other half must not be
// written. Adding to results also shows writes that a later block would overwrite.
BOOST_AUTO_TEST_CASE(a_narrow_block_writes_its_own_outputs_alone) {
  const auto device = hopper(3);
  const stream in;
  random_numbers random(1);
  for (std::size_t how = 0; how < epilogues.size(); ++how)
    for (const std::uint32_t rows : {1u, 7u, 14u, 30u}) BOOST_TEST_CONTEXT(rows << " rows, epilogue " << how) {
        const gemm_case c(random, pick_16_bits(random), rows, 136, 600, epilogues[how]);
        require(matmul_hopper(in, c.type, {&c.p, 1}, nullptr, rows));
        c.check_result(in);
      }
}

// However many rows, in tiles of whatever width, in parts or added up.
BOOST_AUTO_TEST_CASE(a_row_of_a_hopper_gemm_has_the_bits_that_it_has_alone) {
  for (const std::uint32_t segments : {1u, 2u, 4u}) {
    const stream in;
    random_numbers random(segments);
    const element type = pick_16_bits(random);
    constexpr std::uint32_t rows_max = 1024, outputs = 136;
    gemm_case c(random, type, rows_max, outputs, segments == 1 ? 1500 : 2700, store_f32);
    c.p.segments = segments;
    row_bits bits;
    const auto one_device = hopper(1);  // four tiles of 256 rows
    bits.check(c, by_hopper, rows_max, in);
    for (const std::uint32_t rows : {1u, 3u, 5u, 8u, 13u, 15u, 25u, 32u, 40u, 100u, 130u, 192u, 300u, 520u, 960u})
      BOOST_TEST_CONTEXT(rows << " rows in " << segments << " segments") {
        const auto device = hopper(1 + static_cast<int>(rows % 5) * 3);  // one: wide blocks; tiles of 240 for 960
        bits.check(c, by_hopper, rows, in);
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
        const element type = pick_16_bits(random);
        gemm_case c(random, type, rows, outputs, inputs, store_f32);
        c.p.segments = 4;
        values alone = [&] {
          const auto device = hopper(3);
          BOOST_TEST(!hopper_pairs({&c.p, 1}, rows, 3));
          return sums_of(c.p, by_hopper, type, rows, in);
        }();
        const auto device = hopper(sm_count);
        BOOST_TEST(hopper_pairs({&c.p, 1}, rows, sm_count));
        BOOST_TEST(same_bits(sums_of(c.p, by_hopper, type, rows, in), alone));
        const values x = random_values(random, rows * outputs);
        const device_values added(x, element::f32);
        c.p.how = add_f32, c.p.out = added.data(), c.p.out_stride = outputs;
        require(matmul_hopper(in, type, {&c.p, 1}, nullptr, rows));
        for (std::size_t i = 0; i < x.size(); ++i) alone[i] += x[i];
        BOOST_TEST(same_bits(added.read(in), alone));
      }
}

// Receptance and value projection of RWKV-6 7B in one launch, and the value projection of RWKV-7 7.2B alone.
BOOST_AUTO_TEST_CASE(segments_have_tiles_of_their_own_where_that_takes_less_time) {
  const auto of = [](std::uint32_t inputs, std::uint32_t segments) {
    gemm p{};
    p.matrix.outputs = 4096, p.matrix.inputs = inputs, p.segments = segments, p.how = store_f32;
    return p;
  };
  const gemm together[] = {of(4096, 1), of(14336, 3)}, alone[] = {of(16384, 4)};
  const auto device = hopper(132);
  for (const std::uint32_t rows : {1u, 128u, 192u, 256u, 320u}) BOOST_TEST_CONTEXT(rows << " rows") {
      BOOST_TEST(hopper_splits(together, rows));
      BOOST_TEST(hopper_splits(alone, rows));
    }
  BOOST_TEST(!hopper_splits(alone, 512));  // 126 us, and 111 us with 23 us for partial sums
  BOOST_TEST(!hopper_splits(together, split_rows_max + 1));
}

// As in a wide model.
BOOST_AUTO_TEST_CASE(second_hopper_gemms_wait_for_the_first) {
  for_seeds(4, [](random_numbers& random) {
    const auto device = hopper();
    const element type = pick_16_bits(random);
    const std::uint32_t rows = 1 + random.below(32);
    check_second_gemms(random, by_hopper, type, rows, 4096);
  });
}
