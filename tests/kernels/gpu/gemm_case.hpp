#pragma once
#include <cmath>

#include "kernels/gpu/gemm/matmul.hpp"
#include "kernels/ops.hpp"
#include "tests/kernels/gpu/device_values.hpp"
#include "tests/kernels/gpu/finished.hpp"
#include "tests/kernels/stage_runs.hpp"
#include "tests/support/random_cases.hpp"

namespace skein::test {

using kernels::gpu::epilogue, kernels::gpu::gemm, kernels::gpu::padded, kernels::gpu::stream;

/// Of sums that are rounded to the element type before they are finished.
constexpr float gemm_tolerance(element type) { return type == element::f16 ? 2e-3f : 1.6e-2f; }

inline element stored_type(epilogue how, element type) {
  return how == epilogue::store_f16 ? element::f16 : how >= epilogue::add_f32 ? element::f32 : type;
}

/// A random product with its memory, and what it makes of that.
struct gemm_case {
  gemm_case(random_numbers& random, element t, std::uint32_t rows, std::uint32_t outputs, std::uint32_t inputs,
            epilogue how)
      : type(t),
        matrix(rounded(random_values(random, outputs * inputs, 2 / std::sqrt(static_cast<float>(inputs))), type)),
        x(rounded(random_values(random, rows * inputs), type)),
        out_stride(outputs + 8 * random.below(2)),
        out(rounded(random_values(random, rows * out_stride), stored_type(how, type))),
        matrix_memory(tiled(matrix, outputs, inputs, padded(outputs)), type),
        x_memory(tiled(x, rows, inputs, rows), type),
        out_memory(out, stored_type(how, type)) {
    p.matrix = matrix_memory.data(), p.in = x_memory.data(), p.out = out_memory.data();
    p.outputs = outputs, p.inputs = inputs, p.in_stride = padded(inputs), p.out_stride = out_stride, p.how = how;
    expect(rows);
  }

  void expect(std::uint32_t rows) {
    const kernels::dense_matrix dense{p.outputs, p.inputs, matrix};
    std::vector<float> sums(p.outputs);
    for (std::uint32_t r = 0; r < rows; ++r) {
      kernels::linear(dense, std::span(x).subspan(std::size_t{r} * p.inputs, p.inputs), sums);
      for (std::uint32_t o = 0; o < p.outputs; ++o) {
        float& to = out[std::size_t{r} * out_stride + o];
        to = apply_epilogue(p.how, sums[o], to);
      }
    }
  }
  /// Learning writes outputs: as they were before.
  void forget(const std::vector<float>& before) {
    out_memory = device_values(before, stored_type(p.how, type));
    p.out = out_memory.data();
  }

  void check_result(const stream& in) const {
    const element of_store = p.how == epilogue::store_f16 && type == element::bf16 ? element::bf16 : type;
    BOOST_TEST(difference(out_memory.read(in), out) < gemm_tolerance(of_store));
  }

  static std::vector<float> tiled(const std::vector<float>& from, std::uint32_t rows, std::uint32_t width,
                                  std::uint32_t height) {
    std::vector<float> all(std::size_t{height} * padded(width), 0.0f);
    for (std::uint32_t r = 0; r < rows; ++r)
      std::copy_n(from.begin() + r * width, width, all.begin() + r * padded(width));
    return all;
  }

  element type;
  std::vector<float> matrix, x;
  std::uint32_t out_stride;
  std::vector<float> out;
  device_values matrix_memory, x_memory, out_memory;
  gemm p;
};

}  // namespace skein::test
