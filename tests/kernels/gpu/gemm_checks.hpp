#pragma once
#include <array>
#include <deque>

#include "kernels/gpu/types/device_profile.hpp"
#include "tests/kernels/gpu/gemm_case.hpp"

/// What the tests of several GEMM kernels share.
namespace skein::test {

using kernels::gpu::matmul_functions, kernels::gpu::turn;

/// The limits of another card in a scope, and those of $SKEIN_DEVICE_PROFILE; in the emulator, on a device that has all
/// of them.
class imposed_card {
 public:
  explicit imposed_card(const char* name) {
    const auto profile = kernels::gpu::find_profile(name);
    BOOST_REQUIRE(profile.has_value());
    kernels::gpu::impose_profile(profile);
  }
  ~imposed_card() { kernels::gpu::impose_profile({}); }
  imposed_card(const imposed_card&) = delete;
  imposed_card& operator=(const imposed_card&) = delete;

#if defined(SKEIN_GPU_EMULATOR)
 private:
  kernels::gpu::emulator::other_device device_{
      {.sm_count = 132, .compute_capability_major = 12, .shared_bytes_per_block = 227 << 10}};
#endif
};

/// `wanted`, or fp16 if it is bf16 and the card has tensor cores that do not know it.
inline element known_type(element wanted) {
  const auto profile = kernels::gpu::current_profile();
  BOOST_REQUIRE(bool(profile));
  const bool has_bf16 = !profile->has_tensor_cores() || profile->has_bf16();
  return wanted == element::bf16 && !has_bf16 ? element::f16 : wanted;
}
inline element pick_16_bits(random_numbers& random) {
  return known_type(random.below(2) == 0 ? element::f16 : element::bf16);
}

/// The sums [rows, outputs] of a GEMM in fp32, with its partial sums added by the kernel or here.
inline std::vector<float> sums_of(gemm p, const matmul_functions& by, element type, std::uint32_t rows,
                                  const stream& in) {
  const bool in_parts = p.segments > 1 && by.splits({&p, 1}, rows);
  const std::size_t size = std::size_t{rows} * p.matrix.outputs;
  const device_values out(std::vector<float>(size * (in_parts ? p.segments : 1)), element::f32);
  const row_count count(rows);
  p.out = out.data(), p.out_stride = p.matrix.outputs;
  p.how = {.to = in_parts ? destination::parts : destination::f32}, p.part_stride = in_parts ? size : 0;
  require(by.run(in, type, {&p, 1}, count.data(), rows));
  std::vector<float> sums = out.read(in);
  for (std::size_t i = size; i < sums.size(); ++i) sums[i % size] += sums[i];
  sums.resize(size);
  return sums;
}

/// The bits of a GEMM's rows, which no launch may change. The first launch has the most rows.
class row_bits {
 public:
  void check(const gemm_case& c, const matmul_functions& by, std::uint32_t rows, const stream& in) {
    const std::vector<float> now = sums_of(c.p, by, c.type, rows, in);
    if (all_.empty()) all_ = now;
    BOOST_TEST(
        same_bits(now, std::vector<float>(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(now.size()))));
  }

 private:
  std::vector<float> all_;
};

/// A launch of up to `gemms` random GEMMs, with every epilogue; what lies between the rows of an output must stay.
/// Blocks are launched for `room` rows.
inline void check_random_launch(random_numbers& random, const matmul_functions& by, element type, std::uint32_t rows,
                                std::uint32_t room, std::uint32_t gemms, std::uint32_t inputs_max) {
  const stream in;
  const row_count count(rows);
  std::deque<gemm_case> cases;
  std::vector<gemm> launch;
  std::vector<std::vector<float>> before;
  for (std::uint32_t i = 1 + random.below(gemms); i > 0; --i) {
    const std::uint32_t outputs = 1 + random.below(150), inputs = 1 + random.below(inputs_max);
    const auto& made = cases.emplace_back(random, type, rows, outputs, inputs, pick_epilogue(random));
    launch.push_back(made.p);
    before.push_back(made.out_memory.read(in));
  }
  require(by.run(in, type, launch, count.data(), room));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].check_result(in);
    const std::vector<float> after = cases[i].out_memory.read(in);
    for (std::size_t at = 0; at < after.size(); ++at)
      if (at % cases[i].out_stride >= launch[i].matrix.outputs) BOOST_REQUIRE(after[at] == before[i][at]);
  }
}

/// Pairs in which the second GEMM overwrites the input of the first, with another GEMM beside them, have the same bits
/// in one launch as in two, and leave the counters at 0.
inline void check_second_gemms(random_numbers& random, const matmul_functions& by, element type, std::uint32_t rows,
                               std::uint32_t width) {
  constexpr std::uint32_t outputs = 100;
  constexpr std::array<std::uint32_t, 3> ranks = {70, 200, 9};
  const stream in;
  const row_count count(rows);
  std::deque<gemm_case> down, up;
  for (const std::uint32_t rank : ranks) {
    const auto function = rank == 9 ? activation_function::tanh : activation_function::none;
    down.emplace_back(random, type, rows, rank, width, epilogue{function});
    up.emplace_back(random, type, rows, outputs, rank, epilogue{activation_function::sigmoid});
  }
  const gemm_case beside(random, type, rows, 130, width, epilogue{});
  const kernels::gpu::device_buffer<std::uint32_t> done(2);
  require(kernels::gpu::fill_with_zeros(done.data(), done.bytes(), in));
  const auto outcome = [&](bool together) {
    std::deque<device_values> between, mixed;
    std::vector<gemm> launch, second;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      gemm first = down[i].p, then = up[i].p;
      first.in = mixed.emplace_back(gemm_case::tiled(down[i].x, rows, width, rows), type).data();
      first.out_stride = padded(ranks[i]);
      then.in = first.out = between.emplace_back(std::vector<float>(rows * padded(ranks[i])), type).data();
      then.out = mixed.back().data(), then.out_stride = width;
      if (together) first.when = turn::first, then.when = turn::second, then.done = done.data();
      launch.push_back(first);
      second.push_back(then);
    }
    launch.push_back(beside.p);
    if (together) launch.insert(launch.end(), second.begin(), second.end());
    require(by.run(in, type, launch, count.data(), rows));
    if (!together) require(by.run(in, type, second, count.data(), rows));
    const kernels::gpu::pinned_buffer<std::uint32_t> counts(2);
    require(kernels::gpu::copy_to_host(counts.data(), done.data(), done.bytes(), in));
    require(in.synchronize());
    BOOST_TEST(counts.data()[0] == 0u);  // for the next launch
    BOOST_TEST(counts.data()[1] == 0u);
    std::vector<float> all = beside.out_memory.read(in);
    for (const device_values& m : mixed) {
      const std::vector<float> more = m.read(in);
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  };
  const std::vector<float> apart = outcome(false);
  beside.check_result(in);
  for (int i = 0; i < 2; ++i) BOOST_TEST(same_bits(outcome(true), apart));
}

}  // namespace skein::test
