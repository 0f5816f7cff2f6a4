#pragma once
#include "kernels/gpu/gemm/mma/matmul_mma.hpp"
#include "kernels/gpu/model/upload/encode_row.hpp"
#include "kernels/weights/e4m3.hpp"
#include "tests/kernels/gpu/gemm_checks.hpp"

namespace skein::test {

/// Tensor cores of Hopper add products of e4m3 less precisely than in fp32.
inline constexpr float fp8_tolerance = 2e-3f;

/// The products of a quantised model on a device that multiplies e4m3.
inline constexpr matmul_functions by_fp8{"fp8", kernels::gpu::matmul_mma, kernels::gpu::mma_splits, true};

/// A row in e4m3, with the smallest power of two as scale that is enough for its largest number.
inline std::vector<float> rounded_row(std::span<const float> row) {
  float largest = 0;
  for (const float value : row) largest = std::max(largest, std::abs(value));
  float scale = 0x1p-100f;
  while (scale * kernels::e4m3_max < largest) scale *= 2;
  std::vector<float> all;
  for (const float value : row) all.push_back(kernels::e4m3_to_f32(kernels::f32_to_e4m3(value / scale)) * scale);
  return all;
}

/// A random product whose matrix is stored as rows of e4m3 and rounds its inputs; `plain` has the rounded numbers.
struct fp8_rows_case {
  fp8_rows_case(random_numbers& random, element type, std::uint32_t rows, std::uint32_t outputs, std::uint32_t inputs,
                epilogue how)
      : plain(random, type, rows, outputs, inputs, how),
        before(plain.out_memory.read(stream())),
        out_memory(before, output_type(how, type)),
        codes_memory(std::size_t{padded(outputs)} * padded(inputs, 128), "codes"),
        scales_memory(std::vector<float>(kernels::gpu::scaled_outputs(outputs)), element::f32),
        rounded_memory(std::size_t{rows} * padded(inputs, 128), "codes"),
        rounded_scales(std::vector<float>(rows + kernels::gpu::row_tile_max), element::f32) {
    const std::vector<std::byte> bytes = encode(plain.matrix, dtype::f32);
    const tensor_view view = view_of(bytes, dtype::f32, {outputs, inputs});
    const std::uint32_t width = padded(inputs, 128);
    kernels::gpu::pinned_buffer<std::byte> codes(codes_memory.size());
    std::vector<float> scales(kernels::gpu::scaled_outputs(outputs)), scratch;
    for (std::uint32_t o = 0; o < outputs; ++o) {
      const auto row = codes.all().subspan(std::size_t{o} * width, width);
      scales[o] = kernels::gpu::encode_fp8_row(view, o, row, scratch);
      for (std::uint32_t i = 0; i < inputs; ++i)
        plain.matrix[std::size_t{o} * inputs + i] = kernels::e4m3_to_f32(static_cast<std::uint8_t>(row[i])) * scales[o];
    }
    for (std::uint32_t r = 0; r < rows; ++r)
      std::ranges::copy(rounded_row(std::span(plain.x).subspan(std::size_t{r} * inputs, inputs)),
                        plain.x.begin() + static_cast<std::ptrdiff_t>(std::size_t{r} * inputs));
    plain.out = before;
    plain.expect(rows);
    scales_memory = device_values(scales, element::f32);
    const stream in;
    require(kernels::gpu::copy_to_device(codes_memory.data(), codes.data(), codes.size(), in));
    require(in.synchronize());
    p = plain.p;
    p.matrix = {codes_memory.data(),
                outputs,
                inputs,
                {weight_element::fp8, kernels::default_group},
                static_cast<const float*>(scales_memory.data())};
    p.out = out_memory.data();
    p.rounded = {rounded_memory.data(), static_cast<float*>(rounded_scales.data())};
  }

  /// Clears the rounded inputs of a launch before.
  void forget_rounded(const stream& in) const {
    require(kernels::gpu::fill_with_zeros(rounded_memory.data(), rounded_memory.bytes(), in));
    require(kernels::gpu::fill_with_zeros(rounded_scales.data(), rounded_scales.bytes(), in));
  }

  void check_result(const stream& in) const {
    const float tolerance =
        std::max({fp8_tolerance, gemm_tolerance(plain.type), gemm_tolerance(output_type(p.how, plain.type))});
    BOOST_TEST(difference(out_memory.read(in), plain.out) < tolerance);
  }

  using weight_element = kernels::weight_element;
  gemm_case plain;
  std::vector<float> before;
  device_values out_memory;
  kernels::gpu::device_buffer<std::byte> codes_memory;
  device_values scales_memory;
  kernels::gpu::device_buffer<std::byte> rounded_memory;
  device_values rounded_scales;
  gemm p;
};

}  // namespace skein::test
