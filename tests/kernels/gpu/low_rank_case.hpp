#pragma once
#include <deque>

#include "tests/kernels/gpu/gemm_checks.hpp"

namespace skein::test {

/// Random low-rank pairs: 32 and 72 outputs of `inputs`, and 64 outputs of each of those.
struct low_rank_case {
  low_rank_case(random_numbers& random, element type, std::uint32_t rows, std::uint32_t inputs, const stream& in)
      : done(2), count(rows) {
    require(kernels::gpu::fill_with_zeros(done.data(), done.bytes(), in));
    for (const std::uint32_t rank : {32u, 72u}) {
      gemm& first = firsts.emplace_back(random, type, rows, rank, inputs, epilogue{}).p;
      gemm& second = seconds.emplace_back(random, type, rows, 64, rank, store_f32).p;
      inner.emplace_back(std::vector<float>(std::size_t{rows} * padded(rank)), type);
      first.out = inner.back().data(), first.out_stride = padded(rank);
      first.pdl_early_launch = true, first.when = kernels::gpu::turn::first;
      second.in = inner.back().data(), second.in_stride = padded(rank);
      second.when = kernels::gpu::turn::second, second.done = done.data();
    }
  }

  /// What the pairs compute in a launch with `others`.
  [[nodiscard]] std::vector<float> run(const matmul_functions& by, std::span<const gemm> others, std::uint32_t rows,
                                       const stream& in) const {
    std::vector<gemm> launch;
    for (const gemm_case& c : firsts) launch.push_back(c.p);
    launch.insert(launch.end(), others.begin(), others.end());
    for (const gemm_case& c : seconds) launch.push_back(c.p);
    require(by.run(in, firsts.front().type, launch, count.data(), rows));
    std::vector<float> results;
    for (const gemm_case& c : seconds) std::ranges::copy(c.out_memory.read(in), std::back_inserter(results));
    return results;
  }

  /// As before and after each launch.
  [[nodiscard]] bool counters_are_zero(const stream& in) const {
    kernels::gpu::pinned_buffer<std::uint32_t> counts(2);
    require(kernels::gpu::copy_to_host(counts.data(), done.data(), counts.bytes(), in));
    require(in.synchronize());
    return counts.data()[0] == 0 && counts.data()[1] == 0;
  }

  std::deque<gemm_case> firsts, seconds;
  std::deque<device_values> inner;
  kernels::gpu::device_buffer<std::uint32_t> done;
  row_count count;
};

}  // namespace skein::test
