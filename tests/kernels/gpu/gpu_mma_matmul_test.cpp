// The GEMM by mma.sync in the emulator, which does asynchronous copies at any time that the hardware may, under the
// profiles of cards with much and little shared memory. On a card gpu_matmul_bench makes the same comparisons with the
// sizes of real models.
#include <boost/test/unit_test.hpp>

#include "kernels/gpu/gemm/mma/even_share.hpp"
#include "kernels/gpu/gemm/mma/matmul_mma.hpp"
#include "kernels/gpu/gemm/streamed_weights.hpp"
#include "kernels/gpu/gemm/tile_probe.hpp"
#include "tests/kernels/gpu/for_seeds.hpp"
#include "tests/kernels/gpu/gemm_checks.hpp"

using namespace skein;
using namespace skein::test;
using namespace skein::kernels::gpu;
using values = std::vector<float>;

namespace {

/// With one SM, only launches of one block have deep rings.
constexpr const char* cards[] = {"a100", "a100:1", "rtx4090", "t4", "rtx5090"};

constexpr matmul_functions by_mma{"mma", matmul_mma, mma_splits, true};

/// For each shape of tiles: up to 8, 16, 32, 64, 128 and 256 rows, and more.
std::uint32_t some_rows(random_numbers& random) {
  constexpr std::uint32_t most[] = {8, 16, 32, 64, 128, 256, 330};
  const std::uint32_t which = random.below(std::size(most));
  const std::uint32_t least = which == 0 ? 0 : most[which - 1];
  return least + 1 + random.below(most[which] - least);
}

}  // namespace

BOOST_AUTO_TEST_CASE(gemms_by_mma_are_the_gemms_of_each_of_their_matrices) {
  for_seeds(25, [](random_numbers& random) {
    const imposed_card card(cards[random.below(std::size(cards))]);
    const element type = pick_16_bits(random);
    const std::uint32_t rows = some_rows(random);
    check_random_launch(random, by_mma, type, rows, rows, rows > 64 ? 2 : 4, 600);
  });
}

// However many rows, in tiles of whatever shape, in parts or added up, on each card.
BOOST_AUTO_TEST_CASE(a_row_of_a_gemm_by_mma_has_the_bits_that_it_has_alone) {
  for (const std::uint32_t segments : {1u, 2u, 4u}) {
    const stream in;
    random_numbers random(segments);
    const element type = pick_16_bits(random);
    constexpr std::uint32_t rows_max = 330, outputs = 136;
    gemm_case c(random, type, rows_max, outputs, segments == 1 ? 300 : 600, store_f32);
    c.p.segments = segments;
    row_bits bits;
    for (const char* const name : cards)
      for (const std::uint32_t rows : {rows_max, 1u, 8u, 13u, 25u, 64u, 100u, 130u})
        BOOST_TEST_CONTEXT(rows << " rows in " << segments << " segments, " << name) {
          const imposed_card card(name);
          bits.check(c, by_mma, rows, in);
        }
  }
}

// As the consumer of partial sums does (gemm_rows::adds_each).
BOOST_AUTO_TEST_CASE(the_sum_of_each_segment_is_added_by_itself) {
  for (const char* const name : cards)
    for (const std::uint32_t rows : {140u, 513u}) BOOST_TEST_CONTEXT(name << ", " << rows << " rows") {
        const imposed_card card(name);
        const stream in;
        random_numbers random(rows);
        constexpr std::uint32_t outputs = 136, segments = 4, few = 8;
        gemm_case c(random, element::f16, rows, outputs, 500, add_f32);
        c.p.segments = segments;
        values x = random_values(random, rows * outputs);
        const device_values out(x, element::f32), parts(values(std::size_t{segments} * few * outputs), element::f32);
        c.p.out = out.data(), c.p.out_stride = outputs;
        auto profile = *find_profile(name);
        profile.sm_count = 1;  // with more, partial sums would be stored
        impose_profile(profile);
        BOOST_REQUIRE(!mma_splits({&c.p, 1}, rows));
        require(matmul_mma(in, element::f16, {&c.p, 1}, nullptr, rows));
        const values after = out.read(in);
        c.p.how = store_parts, c.p.out = parts.data(), c.p.part_stride = few * outputs;
        require(matmul_mma(in, element::f16, {&c.p, 1}, nullptr, few));
        const values each = parts.read(in);
        for (std::uint32_t i = 0; i < few * outputs; ++i) {
          for (std::uint32_t s = 0; s < segments; ++s) x[i] += each[s * few * outputs + i];
          BOOST_REQUIRE(after[i] == x[i]);
        }
      }
}

BOOST_AUTO_TEST_CASE(second_gemms_by_mma_wait_for_the_first) {
  for_seeds(6, [](random_numbers& random) {
    const imposed_card card(cards[random.below(std::size(cards))]);
    const element type = pick_16_bits(random);
    const std::uint32_t rows = 1 + random.below(80);
    check_second_gemms(random, by_mma, type, rows, 256);
  });
}

// Longer than the rings of their tiles (low_rank.cuh), with a last stage that is not whole.
BOOST_AUTO_TEST_CASE(long_first_gemms_of_few_rows_have_the_bits_of_others) {
  const imposed_card card("a100");
  random_numbers random(1);
  for (const std::uint32_t rows : {1u, 2u, 3u, 8u, 9u, 32u}) BOOST_TEST_CONTEXT(rows << " rows") {
      check_second_gemms(random, by_mma, known_type(rows % 2 == 0 ? element::f16 : element::bf16), rows, 2368);
    }
}

BOOST_AUTO_TEST_CASE(a_profile_decides_which_gemm_runs) {
  const auto chosen = [](element type) {
    const auto functions = choose_matmul(0, type, stored_as(type));
    BOOST_REQUIRE(functions);
    return functions->run;
  };
  const auto hopper_device =
      emulator::other_device({.sm_count = 132, .compute_capability_major = 9, .shared_bytes_per_block = 227 << 10});
  const auto usual = chosen(element::bf16);
  for (const char* const name : {"a100", "rtx3090", "rtx4090", "l4", "rtx5090"}) BOOST_TEST_CONTEXT(name) {
      impose_profile(find_profile(name));
      BOOST_TEST((chosen(element::bf16) == &matmul_mma));
      BOOST_TEST((chosen(element::f16) == &matmul_mma));
      BOOST_TEST((chosen(element::f32) == plain_matmul().run));
    }
  impose_profile(find_profile("t4"));
  BOOST_TEST((chosen(element::f16) == &matmul_mma));
  BOOST_TEST((chosen(element::bf16) == plain_matmul().run));
  impose_profile(find_profile("h100"));
  BOOST_TEST((chosen(element::bf16) == usual));
  BOOST_TEST((usual != &matmul_mma));
  impose_profile({});
  BOOST_TEST(find_profile("a100:132")->sm_count == 132u);
  device_profile own = *find_profile("h100");
  own.streamed_bytes_max = 1 << 27;
  BOOST_TEST(limit_profile(own, *find_profile("a100")).streamed_bytes_max == own.streamed_bytes_max);
  BOOST_TEST(limit_profile(own, *find_profile("t4")).streamed_bytes_max == 0u);
  for (const char* const none : {"rtx9999", "", "a100:", "a100:0", "a100:x", "a100:1x", "a100:99999999999"})
    BOOST_TEST(!find_profile(none).has_value(), none);
}

BOOST_AUTO_TEST_CASE(each_shape_of_tiles_that_fits_is_timed) {
  const stopwatch a_millisecond = [](stream_handle, const auto& work) -> result<double> {
    if (const auto done = work(); !done) return done.error();
    return 1e-3;
  };
  const tile_probe probe{256, 128, 300};
  for (const char* const name : cards) BOOST_TEST_CONTEXT(name) {
      const imposed_card card(name);
      const auto profile = current_profile();
      BOOST_REQUIRE(profile.has_value());
      const auto times = measure_tiles(0, element::f16, probe, a_millisecond);
      BOOST_REQUIRE(times.has_value());
      for (std::size_t i = 0; i < tile_names.size(); ++i) {
        const auto tiles =
            mma_tiles(static_cast<mma_shape>(static_cast<std::size_t>(mma_shape::small) + i), *profile, 256, 300);
        const std::uint32_t sms = profile->sm_count;
        BOOST_TEST((*times)[i] == (tiles ? 1000.0 / ((*tiles + sms - 1) / sms) / 2 : 0.0), tile_names[i]);
      }
      BOOST_TEST((*times)[0] > 0);
    }
  const imposed_card turing("t4");
  BOOST_TEST((measure_tiles(0, element::bf16, probe, a_millisecond).value() == tile_times{}));
  impose_profile({});
  const emulator::other_device hopper({.compute_capability_major = 9});
  BOOST_TEST((measure_tiles(0, element::f16, probe, a_millisecond).value() == tile_times{}));
}

// Tiles of 256 rows cannot add up segments, so whether to store partial sums depends on which shape is fast.
BOOST_AUTO_TEST_CASE(measured_times_decide_between_shapes) {
  const imposed_card card("a100");
  gemm p;
  p.matrix.outputs = 4096, p.matrix.inputs = 4096, p.segments = 4;
  const gemm both[] = {p, p};
  set_tile_times(0, {1, 1, 1, 1, 1e-3});
  BOOST_TEST(mma_splits(both, 512));
  set_tile_times(0, {1, 1e-3, 1, 1, 1});
  BOOST_TEST(!mma_splits(both, 512));
  set_tile_times(0, {});
}

BOOST_AUTO_TEST_CASE(blocks_request_their_share_of_an_sm) {
  using mma::share_of_sm;
  const auto space = [](std::size_t bytes, const device_profile& device) {  // of an SM, in blocks
    return (device.shared_bytes_per_block + 1024) / ((bytes + 127) / 128 * 128 + 1024);
  };
  constexpr std::size_t bytes = 45 << 10;
  const device_profile h100 = *find_profile("h100"), a100 = *find_profile("a100");
  BOOST_TEST(share_of_sm(bytes, 300, true, a100) == bytes);
  BOOST_TEST(space(bytes, h100) == 4u);
  // PDL
  BOOST_TEST(space(share_of_sm(bytes, 100, true, h100), h100) == 2u);
  BOOST_TEST(space(share_of_sm(bytes, 264, true, h100), h100) == 2u);
  BOOST_TEST(space(share_of_sm(bytes, 265, true, h100), h100) == 3u);
  BOOST_TEST(share_of_sm(bytes, 2000, true, h100) >= bytes);
  BOOST_TEST(space(share_of_sm(bytes, 2000, true, h100), h100) == 4u);
  BOOST_TEST(share_of_sm(bytes, 100, false, h100) == bytes);
  for (std::uint32_t each = 2; each < 8; ++each)
    BOOST_TEST(space(share_of_sm(20 << 10, 132 * each, true, h100), h100) == each);
  BOOST_TEST(share_of_sm(h100.shared_bytes_per_block, 100, true, h100) == h100.shared_bytes_per_block);
  // imposed profiles
  for (const auto& [card, blocks] : {std::pair("a100", 3u), std::pair("rtx4090", 2u), std::pair("t4", 1u)}) {
    const device_profile imposed = limit_profile(h100, *find_profile(card));
    BOOST_TEST(space(share_of_sm(bytes, 1000, true, imposed), h100) == blocks, card);
    BOOST_TEST(space(share_of_sm(bytes, 1000, false, imposed), h100) == blocks, card);
  }
}

// Only addresses are compared.
BOOST_AUTO_TEST_CASE(a_launch_of_few_rows_streams_its_weights) {
  static std::byte memory[4 << 20];
  device_profile profile = *find_profile("a100");
  profile.streamed_bytes_max = 2 << 20;
  gemm launch[2];
  const auto place = [&](gemm& p, std::size_t at, std::uint32_t outputs) {
    p.matrix = {memory + at, outputs, 1024, {kernels::weight_element::f16}};
  };
  const auto streamed = [&](std::uint32_t rows) { return streamed_weights(launch, rows, profile); };
  const auto is = [](std::span<const std::byte> range, std::size_t at, std::size_t bytes) {
    return range.data() == memory + at && range.size() == bytes;
  };
  constexpr std::size_t row = 2048;
  place(launch[0], 300 * row, 100), place(launch[1], 0, 256);  // in any order; 128 rows, padded
  BOOST_TEST(is(streamed(1), 0, 428 * row));
  BOOST_TEST(is(streamed(64), 0, 428 * row));
  BOOST_TEST(streamed(65).empty());
  place(launch[0], 900 * row, 100);  // far apart
  BOOST_TEST(is(streamed(8), 0, 256 * row));
  place(launch[0], 256 * row, 1100);  // more than the limit
  BOOST_TEST(is(streamed(8), 256 * row, profile.streamed_bytes_max));
  launch[0].matrix.format = {kernels::weight_element::int4, 64};
  BOOST_TEST(is(streamed(8), 0, 256 * row + bytes_of(launch[0].matrix)));
  BOOST_TEST(bytes_of(launch[0].matrix) == 1152 * (512 + 1024 / 64 * 2u));
  profile.has_pdl = true;
  BOOST_TEST(streamed(8).empty());
  profile = *find_profile("t4");
  BOOST_TEST(streamed(8).empty());
}
