#pragma once
#include "tests/kernels/gpu/gemm_checks.hpp"

namespace skein::test {

/// A random low-rank pair: 32 outputs of `inputs`, and 64 outputs of those.
struct low_rank_case {
  low_rank_case(random_numbers& random, element type, std::uint32_t rows, std::uint32_t inputs, const stream& in)
      : first(random, type, rows, 32, inputs, epilogue{}),
        second(random, type, rows, 64, 32, store_f32),
        inner(std::vector<float>(std::size_t{rows} * padded(32)), type),
        done(2) {
    require(kernels::gpu::fill_with_zeros(done.data(), done.bytes(), in));
    first.p.out = inner.data(), first.p.out_stride = padded(32);
    first.p.pdl_early_launch = true, first.p.when = kernels::gpu::turn::first;
    second.p.in = inner.data(), second.p.in_stride = padded(32);
    second.p.when = kernels::gpu::turn::second, second.p.done = done.data();
  }

  /// What the pair computes in a launch with `others`.
  [[nodiscard]] std::vector<float> run(const matmul_functions& by, std::span<const gemm> others, std::uint32_t rows,
                                       const stream& in) const {
    std::vector<gemm> launch{first.p};
    launch.insert(launch.end(), others.begin(), others.end());
    launch.push_back(second.p);
    const row_count count(rows);
    require(by.run(in, first.type, launch, count.data(), rows));
    return second.out_memory.read(in);
  }

  /// As before and after each launch.
  [[nodiscard]] bool counters_are_zero(const stream& in) const {
    kernels::gpu::pinned_buffer<std::uint32_t> counts(2);
    require(kernels::gpu::copy_to_host(counts.data(), done.data(), counts.bytes(), in));
    require(in.synchronize());
    return counts.data()[0] == 0 && counts.data()[1] == 0;
  }

  gemm_case first, second;
  device_values inner;
  kernels::gpu::device_buffer<std::uint32_t> done;
};

}  // namespace skein::test
