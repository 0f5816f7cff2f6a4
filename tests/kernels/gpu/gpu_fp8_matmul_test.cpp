// Products of fp8 weights and inputs that are rounded to fp8: in the emulator as if on sm_90a, with as few
// multiprocessors as make blocks take several tiles; on a card that has them, with its own.
#include <boost/test/unit_test.hpp>

#include "kernels/gpu/gemm/hopper/matmul_hopper.hpp"
#include "kernels/gpu/gemm/round_rows.hpp"
#include "kernels/weights/file_blocks.hpp"
#include "tests/kernels/gpu/for_seeds.hpp"
#include "tests/kernels/gpu/fp8_rows_case.hpp"
#include "tests/kernels/gpu/late_inputs.hpp"
#include "tests/kernels/gpu/low_rank_case.hpp"

using namespace skein;
using namespace skein::test;
using namespace skein::kernels::gpu;
using values = std::vector<float>;

namespace {

#if defined(SKEIN_GPU_EMULATOR)
emulator::other_device hopper(int sm_count) {
  return emulator::other_device({.sm_count = sm_count, .compute_capability_major = 9});
}
#else
struct hopper {
  explicit hopper(int) {}
  ~hopper() {}  // as the emulator's: not trivial, so that it counts as used
};
#endif

boost::test_tools::assertion_result multiplies_fp8(boost::unit_test::test_unit_id) {
  [[maybe_unused]] const auto device = hopper(1);
  const auto rounds = rounds_inputs_of_fp8(0, element::bf16);
  return rounds && *rounds;
}

/// From each way of work: up to 8, 16, 32, 64, 128 rows, and more, in tiles of all widths.
std::uint32_t some_rows(random_numbers& random) {
  constexpr std::uint32_t most[] = {2, 8, 16, 32, 64, 128, 330};
  const std::uint32_t which = random.below(std::size(most));
  const std::uint32_t least = which == 0 ? 0 : most[which - 1];
  return least + 1 + random.below(most[which] - least);
}

/// What a launch rounds a row to, as floats: codes, then the scale.
values rounded_on_device(const values& row, element type) {
  random_numbers random(1);
  const stream in;
  const auto width = static_cast<std::uint32_t>(row.size());
  fp8_rows_case c(random, type, 1, 1, width, store_f32);
  const device_values x(gemm_case::tiled(row, 1, width, 1), type);
  c.p.in = x.data();
  const row_count count(1);
  require(round_rows(in, type, {&c.p, 1}, count.data(), 1));
  pinned_buffer<std::byte> codes(c.rounded_memory.size());
  require(copy_to_host(codes.data(), c.rounded_memory.data(), codes.size(), in));
  values all;
  const float scale = c.rounded_scales.read(in).front();
  for (const std::byte code : codes.all()) all.push_back(kernels::e4m3_to_f32(static_cast<std::uint8_t>(code)) * scale);
  all.push_back(scale);
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fp8_products, *boost::unit_test::precondition(multiplies_fp8))

BOOST_AUTO_TEST_CASE(rows_are_rounded_to_e4m3_with_a_power_of_two) {
  for_seeds(12, [](random_numbers& random) {
    [[maybe_unused]] const auto device = hopper(2);
    const element type = pick_16_bits(random);
    const std::uint32_t width = 1 + random.below(random.below(2) == 0 ? 300 : 9000);
    const float size = std::ldexp(1.0f, static_cast<int>(random.below(20)) - 10);
    const values row = rounded(random_values(random, width, size), type);
    values expected = rounded_row(row);
    const values got = rounded_on_device(row, type);
    int exponent = 0;
    BOOST_TEST(std::frexp(got.back(), &exponent) == 0.5f);
    for (std::uint32_t i = 0; i + 1 < got.size(); ++i) BOOST_REQUIRE(got[i] == (i < width ? expected[i] : 0.0f));
  });
}

BOOST_AUTO_TEST_CASE(rows_that_are_not_finite_stay_so) {
  [[maybe_unused]] const auto device = hopper(2);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  BOOST_TEST(rounded_on_device(values(70, 0.0f), element::bf16).front() == 0.0f);
  for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
    values row(70, 1.0f);
    row[65] = bad;
    const values got = rounded_on_device(row, element::bf16);
    BOOST_TEST((std::isnan(got[65]) || std::isnan(got.back())));
  }
}

BOOST_AUTO_TEST_CASE(fp8_gemms_are_the_gemms_of_rounded_numbers) {
  for_seeds(40, [](random_numbers& random) {
    [[maybe_unused]] const auto device = hopper(1 + static_cast<int>(random.below(6)));
    const stream in;
    const element type = pick_16_bits(random);
    const std::uint32_t rows = some_rows(random);
    const row_count count(rows);
    std::deque<fp8_rows_case> cases;
    std::deque<gemm_case> others;  // that keep their inputs
    std::vector<gemm> launch;
    for (std::uint32_t i = 1 + random.below(rows > 64 ? 2 : 4); i > 0; --i) {
      const std::uint32_t outputs = 1 + random.below(150), inputs = 1 + random.below(300);
      launch.push_back(cases.emplace_back(random, type, rows, outputs, inputs, pick_epilogue(random)).p);
      if (random.below(3) == 0)
        launch.push_back(others.emplace_back(random, type, rows, outputs, inputs, pick_epilogue(random)).p);
    }
    require(by_fp8.run(in, type, launch, count.data(), rows));
    for (const auto& c : cases) {
      c.check_result(in);
      const values after = c.out_memory.read(in);
      for (std::size_t at = 0; at < after.size(); ++at)
        if (at % c.p.out_stride >= c.p.matrix.outputs) BOOST_REQUIRE(after[at] == c.before[at]);
    }
    for (const auto& c : others) c.check_result(in);
  });
}

BOOST_AUTO_TEST_CASE(gemms_of_one_input_round_it_once) {
  [[maybe_unused]] const auto device = hopper(2);
  random_numbers random(5);
  const stream in;
  fp8_rows_case one(random, element::bf16, 6, 100, 200, store_f32), other(random, element::bf16, 6, 80, 200, store_f32);
  other.p.in = one.p.in, other.p.in_stride = one.p.in_stride, other.p.rounded = one.p.rounded;
  other.plain.x = one.plain.x, other.plain.out = other.before;
  other.plain.expect(6);
  const row_count count(6);
  require(by_fp8.run(in, element::bf16, std::array{one.p, other.p}, count.data(), 6));
  one.check_result(in);
  other.check_result(in);
}

// However many rows, in tiles of whatever width, in parts or added up.
BOOST_AUTO_TEST_CASE(a_row_of_an_fp8_gemm_has_the_bits_that_it_has_alone) {
  for (const std::uint32_t segments : {1u, 2u, 4u}) {
    const stream in;
    random_numbers random(segments);
    const element type = pick_16_bits(random);
    constexpr std::uint32_t rows_max = 1024, outputs = 136;
    fp8_rows_case c(random, type, rows_max, outputs, segments == 1 ? 1500 : 2700, store_f32);
    c.p.segments = segments;
    values all;
    for (const std::uint32_t rows : {rows_max, 1u, 3u, 8u, 13u, 25u, 32u, 40u, 100u, 130u, 192u, 300u, 520u, 960u})
      BOOST_TEST_CONTEXT(rows << " rows in " << segments << " segments") {
        [[maybe_unused]] const auto device = hopper(1 + static_cast<int>(rows % 5) * 3);
        const values now = sums_of(c.p, by_fp8, type, rows, in);
        if (all.empty()) all = now;
        BOOST_TEST(same_bits(now, values(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(now.size()))));
      }
  }
}

BOOST_AUTO_TEST_CASE(a_pair_of_blocks_gives_the_bits_of_one_in_fp8) {
  constexpr std::uint32_t outputs = 136, sm_count = 12, inputs = 6600, rows = 520;  // 52 tiles of 128 inputs
  const stream in;
  random_numbers random(rows);
  fp8_rows_case c(random, element::bf16, rows, outputs, inputs, store_f32);
  c.p.segments = 4;
  const values alone = [&] {
    [[maybe_unused]] const auto device = hopper(3);
    return sums_of(c.p, by_fp8, element::bf16, rows, in);
  }();
  [[maybe_unused]] const auto device = hopper(sm_count);
#if defined(SKEIN_GPU_EMULATOR)
  BOOST_TEST(hopper_pairs({&c.p, 1}, rows, sm_count));
#endif
  BOOST_TEST(same_bits(sums_of(c.p, by_fp8, element::bf16, rows, in), alone));
}

BOOST_AUTO_TEST_CASE(low_rank_pairs_share_a_launch_with_fp8_gemms) {
  for (const std::uint32_t rows : {7u, 40u, 65u, 100u, 128u, 200u}) BOOST_TEST_CONTEXT(rows << " rows") {
      [[maybe_unused]] const auto device = hopper(12);
      const stream in;
      random_numbers random(rows);
      const element type = pick_16_bits(random);
      const low_rank_case pairs(random, type, rows, 600, in);
      const fp8_rows_case c(random, type, rows, 136, 700, store_f32);
      const values alone = pairs.run(by_fp8, {}, rows, in);
      late_inputs late;
      for (const gemm_case& first : pairs.firsts) late.add(first.x_memory);
      late.add(c.plain.x_memory);
      for (unsigned again = 0; again < 2; ++again) {
        c.forget_rounded(in);
        late.begin(in);
        BOOST_TEST(same_bits(pairs.run(by_fp8, {&c.p, 1}, rows, in), alone));
        BOOST_TEST(pairs.counters_are_zero(in));
        c.check_result(in);
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()
