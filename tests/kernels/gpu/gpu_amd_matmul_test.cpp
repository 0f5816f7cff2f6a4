// The GEMM of AMD GPUs in the emulator, with warps of 32 and 64 lanes and the matrix instructions that GPUs with such
// warps have. The emulator implements their layouts apart from the kernel, and adds in ascending order of inputs, so
// that the plain GEMM has the same bits.
#include <boost/test/unit_test.hpp>
#include <deque>

#include "kernels/gpu/device/matrix_core.cuh"
#include "kernels/gpu/gemm/amd/matmul_amd.hpp"
#include "tests/kernels/gpu/for_seeds.hpp"
#include "tests/kernels/gpu/gemm_checks.hpp"

using namespace skein;
using namespace skein::test;
using namespace skein::kernels::gpu;
using values = std::vector<float>;

namespace {

const std::vector<matrix_unit> units = warp_width == 32
                                           ? std::vector{matrix_unit::wmma_11, matrix_unit::wmma_12, matrix_unit::dot}
                                           : std::vector{matrix_unit::mfma, matrix_unit::dot};

constexpr matmul_functions by_amd{"amd", matmul_amd, amd_splits};

/// Up to 16, up to 64 and more rows.
std::uint32_t some_rows(random_numbers& random) {
  const std::uint32_t most[] = {16, 64, 200};
  return 1 + random.below(most[random.below(std::size(most))]);
}

/// With few compute units tiles are wide, with many small.
constexpr int compute_units[] = {1, 1000};

struct other_unit {
  other_unit(matrix_unit unit, int sm_count) : device({.sm_count = sm_count}) { emulate_unit(unit); }
  ~other_unit() { emulate_unit(units.front()); }
  other_unit(const other_unit&) = delete;  // it marks a scope
  other_unit& operator=(const other_unit&) = delete;
  emulator::other_device device;
};

/// Calls body(unit, compute units) for each.
template <typename Body>
void on_each_device(const Body& body) {
  for (const matrix_unit unit : units)
    for (const int sm_count : compute_units)
      BOOST_TEST_CONTEXT("unit " << static_cast<int>(unit) << ", " << sm_count << " compute units") {
        const other_unit emulated(unit, sm_count);
        body();
      }
}

/// The halves of a warp give different operands to the instruction of RDNA 3.
[[maybe_unused]] __global__ void break_the_rule_of_wmma_11() {
  float c[8] = {};
  unit_operand<1, 16> a = {}, b = {};
  a.words[0][0] = threadIdx.x / 16;
  multiply_units<matrix_unit::wmma_11, half>(c, a, b);
}

}  // namespace

// All of them: products side by side, every epilogue, segments, gaps between rows, rows of the room that are not there.
BOOST_AUTO_TEST_CASE(gemms_have_the_bits_of_the_plain_kernel) {
  on_each_device([] {
    for_seeds(6, [](random_numbers& random) {
      const stream in;
      const element type = pick_16_bits(random);
      const std::uint32_t room = some_rows(random), rows = 1 + random.below(room), segments = 1 + random.below(3);
      const row_count count(rows);
      std::deque<gemm_case> cases;
      std::vector<gemm> launch;
      std::vector<values> before;
      for (std::uint32_t i = 1 + random.below(3); i > 0; --i) {
        const std::uint32_t outputs = 1 + random.below(150), inputs = 1 + random.below(400);
        auto& made = cases.emplace_back(random, type, room, outputs, inputs, pick_epilogue(random));
        if (inputs > 128 * segments) made.p.segments = segments;
        launch.push_back(made.p);
        before.push_back(made.out_memory.read(in));
      }
      require(matmul_amd(in, type, launch, count.data(), room));
      std::vector<values> after;
      for (const gemm_case& c : cases) after.push_back(c.out_memory.read(in));
      for (std::size_t i = 0; i < cases.size(); ++i) cases[i].forget(before[i]), launch[i].out = cases[i].p.out;
      require(matmul(in, type, launch, count.data(), room));
      for (std::size_t i = 0; i < cases.size(); ++i)
        BOOST_TEST(same_bits(after[i], cases[i].out_memory.read(in)), "product " << i);
    });
  });
}

// Against the host's reference, so that a mistake that both kernels share shows too.
BOOST_AUTO_TEST_CASE(gemms_agree_with_the_reference) {
  on_each_device([] {
    for_seeds(2, [](random_numbers& random) {
      const element type = pick_16_bits(random);
      const std::uint32_t rows = some_rows(random);
      check_random_launch(random, by_amd, type, rows, rows, 1, 300);
    });
  });
}

// However many rows, in tiles of whatever shape, in parts or added up.
BOOST_AUTO_TEST_CASE(a_row_has_the_bits_that_it_has_alone) {
  for (const std::uint32_t segments : {1u, 3u}) {
    const stream in;
    random_numbers random(segments);
    const element type = pick_16_bits(random);
    constexpr std::uint32_t rows_max = 140, outputs = 136;
    gemm_case c(random, type, rows_max, outputs, segments == 1 ? 200 : 500, store_f32);
    c.p.segments = segments;
    for (const matrix_unit unit : units) {
      row_bits bits;
      for (const int sm_count : compute_units)
        for (const std::uint32_t rows : {rows_max, 1u, 13u, 17u, 64u, 65u})
          BOOST_TEST_CONTEXT(rows << " rows in " << segments << " segments, unit " << static_cast<int>(unit)) {
            const other_unit emulated(unit, sm_count);
            bits.check(c, by_amd, rows, in);
          }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_emulator_sees_a_warp_whose_halves_differ) {
  if constexpr (warp_width == 32) {
    const stream in;
    require(launch({"break_the_rule", {1}, {64}, 0, in}, break_the_rule_of_wmma_11));
    const auto ended = in.synchronize();
    emulator::clear_error();
    BOOST_REQUIRE(!ended);
    BOOST_TEST(ended.error().message.find("the halves of a warp have different operands") != std::string::npos);
  }
}
