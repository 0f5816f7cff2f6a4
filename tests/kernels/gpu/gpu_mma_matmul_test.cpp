// The GEMM by mma.sync in the emulator, which does asynchronous copies at any time that the hardware may, under the
// profiles of cards with much and little shared memory. On a card gpu_matmul_bench makes the same comparisons with the
// sizes of real models.
#include <boost/test/unit_test.hpp>
#include <deque>

#include "kernels/gpu/gemm/mma/matmul_mma.hpp"
#include "tests/kernels/gpu/for_seeds.hpp"
#include "tests/kernels/gpu/gemm_case.hpp"

using namespace skein;
using namespace skein::test;
using namespace skein::kernels::gpu;
using values = std::vector<float>;

namespace {

struct imposed {
  explicit imposed(const char* name)
      : device({.sm_count = 132, .compute_capability_major = 12, .shared_bytes_per_block = 227 << 10}) {
    const auto profile = find_profile(name);
    BOOST_REQUIRE(profile.has_value());
    impose_profile(profile);
  }
  ~imposed() { impose_profile({}); }
  imposed(const imposed&) = delete;
  imposed& operator=(const imposed&) = delete;
  emulator::other_device device;
};

constexpr const char* cards[] = {"a100", "rtx4090", "t4", "rtx5090"};

element pick(random_numbers& random) { return random.below(2) == 0 ? element::f16 : element::bf16; }

/// For each shape of tiles: up to 8, 16, 32, 64, 128 and 256 rows, and more.
std::uint32_t some_rows(random_numbers& random) {
  constexpr std::uint32_t most[] = {8, 16, 32, 64, 128, 256, 330};
  const std::uint32_t which = random.below(std::size(most));
  const std::uint32_t least = which == 0 ? 0 : most[which - 1];
  return least + 1 + random.below(most[which] - least);
}

/// The sums [rows, outputs] of a GEMM in fp32, with its partial sums added by the kernel or here.
values sums_of(gemm p, element type, std::uint32_t rows, const stream& in) {
  const bool in_parts = p.segments > 1 && mma_splits({&p, 1}, rows);
  const std::size_t size = std::size_t{rows} * p.outputs;
  const device_values out(values(size * (in_parts ? p.segments : 1)), element::f32);
  p.out = out.data(), p.out_stride = p.outputs;
  p.how = in_parts ? epilogue::store_parts : epilogue::store_f32, p.part_stride = in_parts ? size : 0;
  require(matmul_mma(in, type, {&p, 1}, nullptr, rows));
  values sums = out.read(in);
  for (std::size_t i = size; i < sums.size(); ++i) sums[i % size] += sums[i];
  sums.resize(size);
  return sums;
}

}  // namespace

BOOST_AUTO_TEST_CASE(gemms_by_mma_are_the_gemms_of_each_of_their_matrices) {
  for_seeds(25, [](random_numbers& random) {
    const imposed card(cards[random.below(std::size(cards))]);
    const stream in;
    const element type = pick(random);
    const std::uint32_t rows = some_rows(random);
    std::deque<gemm_case> cases;
    std::vector<gemm> launch;
    std::vector<values> before;
    for (std::uint32_t i = 1 + random.below(rows > 64 ? 2 : 4); i > 0; --i) {
      const std::uint32_t outputs = 1 + random.below(150), inputs = 1 + random.below(600);
      const auto& made =
          cases.emplace_back(random, type, rows, outputs, inputs, static_cast<epilogue>(random.below(7)));
      launch.push_back(made.p);
      before.push_back(made.out_memory.read(in));
    }
    require(matmul_mma(in, type, launch, nullptr, rows));
    for (std::size_t i = 0; i < cases.size(); ++i) {
      cases[i].check_result(in);
      const values after = cases[i].out_memory.read(in);
      for (std::size_t at = 0; at < after.size(); ++at)  // between the rows
        if (at % launch[i].out_stride >= launch[i].outputs) BOOST_REQUIRE(after[at] == before[i][at]);
    }
  });
}

// However many rows, in tiles of whatever shape, in parts or added up, on each card.
BOOST_AUTO_TEST_CASE(a_row_of_a_gemm_by_mma_has_the_bits_that_it_has_alone) {
  for (const std::uint32_t segments : {1u, 2u, 4u}) {
    const stream in;
    random_numbers random(segments);
    const element type = pick(random);
    constexpr std::uint32_t rows_max = 330, outputs = 136;
    gemm_case c(random, type, rows_max, outputs, segments == 1 ? 300 : 600, epilogue::store_f32);
    c.p.segments = segments;
    values all;
    for (const char* const name : cards)
      for (const std::uint32_t rows : {rows_max, 1u, 8u, 13u, 25u, 64u, 100u, 130u})
        BOOST_TEST_CONTEXT(rows << " rows in " << segments << " segments, " << name) {
          const imposed card(name);
          const values now = sums_of(c.p, type, rows, in);
          if (all.empty()) all = now;
          BOOST_TEST(same_bits(now, values(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(rows * outputs))));
        }
  }
}

// As the consumer of partial sums does (gemm_rows::adds_each).
BOOST_AUTO_TEST_CASE(the_sum_of_each_segment_is_added_by_itself) {
  for (const char* const name : cards)
    for (const std::uint32_t rows : {140u, 513u}) BOOST_TEST_CONTEXT(name << ", " << rows << " rows") {
        const imposed card(name);
        const stream in;
        random_numbers random(rows);
        constexpr std::uint32_t outputs = 136, segments = 4, few = 8;
        gemm_case c(random, element::f16, rows, outputs, 500, epilogue::add_f32);
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
        c.p.how = epilogue::store_parts, c.p.out = parts.data(), c.p.part_stride = few * outputs;
        require(matmul_mma(in, element::f16, {&c.p, 1}, nullptr, few));
        const values each = parts.read(in);
        for (std::uint32_t i = 0; i < few * outputs; ++i) {
          for (std::uint32_t s = 0; s < segments; ++s) x[i] += each[s * few * outputs + i];
          BOOST_REQUIRE(after[i] == x[i]);
        }
      }
}

// Pairs whose first halves' inputs the second halves overwrite, and a product beside them.
BOOST_AUTO_TEST_CASE(second_gemms_by_mma_wait_for_the_first) {
  for_seeds(6, [](random_numbers& random) {
    const imposed card(cards[random.below(std::size(cards))]);
    const stream in;
    const element type = pick(random);
    constexpr std::uint32_t width = 256, outputs = 100;
    const std::uint32_t rows = 1 + random.below(80);
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
        first.in = mixed.emplace_back(gemm_case::tiled(down[i].x, rows, width, rows), type).data();
        first.out_stride = padded(ranks[i]);
        then.in = first.out = between.emplace_back(values(rows * padded(ranks[i])), type).data();
        then.out = mixed.back().data(), then.out_stride = width;
        if (together) first.when = turn::first, then.when = turn::second, then.done = done.data();
        launch.push_back(first);
        second.push_back(then);
      }
      launch.push_back(beside.p);
      if (together) launch.insert(launch.end(), second.begin(), second.end());
      require(matmul_mma(in, type, launch, nullptr, rows));
      if (!together) require(matmul_mma(in, type, second, nullptr, rows));
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

BOOST_AUTO_TEST_CASE(a_profile_decides_which_gemm_runs) {
  const auto chosen = [](element type) {
    const auto functions = choose_matmul(0, type);
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
  for (const char* const none : {"rtx9999", "", "a100:", "a100:0", "a100:x", "a100:1x", "a100:99999999999"})
    BOOST_TEST(!find_profile(none).has_value(), none);
}
