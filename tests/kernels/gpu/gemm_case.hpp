#pragma once
#include <array>
#include <cmath>

#include "kernels/gpu/gemm/matmul.hpp"
#include "kernels/ops.hpp"
#include "tests/kernels/gpu/device_values.hpp"
#include "tests/kernels/stage_runs.hpp"
#include "tests/support/random_cases.hpp"

namespace skein::test {

using kernels::gpu::activation_function, kernels::gpu::destination, kernels::gpu::epilogue, kernels::gpu::gemm;
using kernels::gpu::output_type, kernels::gpu::padded, kernels::gpu::row_format, kernels::gpu::stream;

inline constexpr epilogue store_f32{.to = destination::f32}, add_f32{.to = destination::add_f32},
    store_parts{.to = destination::parts};

/// All epilogues but partial sums.
inline constexpr auto epilogues = [] {
  std::array<epilogue, 13> all{};
  for (unsigned i = 0; i < 12; ++i) all[i] = {static_cast<activation_function>(i % 4), static_cast<destination>(i / 4)};
  all.back() = add_f32;
  return all;
}();
inline epilogue pick_epilogue(random_numbers& random) {
  return epilogues[random.below(static_cast<std::uint32_t>(epilogues.size()))];
}

/// What a product makes of a sum, before it is rounded; `before` is what lay there.
inline float apply_epilogue(epilogue how, float sum, float before) {
  switch (how.function) {
    case activation_function::sigmoid: return kernels::sigmoid(sum);
    case activation_function::tanh: return std::tanh(sum);
    case activation_function::relu_squared: return sum > 0 ? sum * sum : 0;
    default: return how.to == destination::add_f32 ? before + sum : sum;
  }
}

/// The sums are fp32 in another order, and results are rounded to `type` once.
constexpr float gemm_tolerance(element type) {
  return type == element::f32 ? 3e-6f : type == element::f16 ? 1e-3f : 8e-3f;
}

/// A random product with its memory, and what it makes of that.
struct gemm_case {
  gemm_case(random_numbers& random, element t, std::uint32_t rows, std::uint32_t outputs, std::uint32_t inputs,
            epilogue how)
      : type(t),
        matrix(rounded(random_values(random, outputs * inputs, 2 / std::sqrt(static_cast<float>(inputs))), type)),
        x(rounded(random_values(random, rows * inputs), type)),
        out_stride(outputs + 8 * random.below(2)),
        out(rounded(random_values(random, rows * out_stride), output_type(how, type))),
        matrix_memory(tiled(matrix, outputs, inputs, padded(outputs)), type),
        x_memory(tiled(x, rows, inputs, rows), type),
        out_memory(out, output_type(how, type)) {
    p.matrix = {matrix_memory.data(), outputs, inputs, row_format(type)};
    p.in = x_memory.data(), p.out = out_memory.data();
    p.in_stride = padded(inputs), p.out_stride = out_stride, p.how = how;
    expect(rows);
  }

  void expect(std::uint32_t rows) {
    const std::uint32_t outputs = p.matrix.outputs, inputs = p.matrix.inputs;
    const kernels::dense_matrix dense{outputs, inputs, matrix};
    std::vector<float> sums(outputs);
    for (std::uint32_t r = 0; r < rows; ++r) {
      kernels::linear(dense, std::span(x).subspan(std::size_t{r} * inputs, inputs), sums);
      for (std::uint32_t o = 0; o < outputs; ++o) {
        float& to = out[std::size_t{r} * out_stride + o];
        to = apply_epilogue(p.how, sums[o], to);
      }
    }
  }
  /// Learning writes outputs: as they were before.
  void forget(const std::vector<float>& before) {
    out_memory = device_values(before, output_type(p.how, type));
    p.out = out_memory.data();
  }

  /// `times` 2: a library rounds sums before their activation.
  void check_result(const stream& in, float times = 1) const {
    const float tolerance = std::max(gemm_tolerance(type), gemm_tolerance(output_type(p.how, type)));
    BOOST_TEST(difference(out_memory.read(in), out) < times * tolerance);
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
