#pragma once
#include "kernels/gpu/model/upload/encode_panel.hpp"
#include "tests/kernels/gpu/gemm_case.hpp"

namespace skein::test {

using kernels::weight_element, kernels::weight_format;

/// A value as the kernels decode it, computed from the definition of the format: scale times q, or times the value of
/// NF4 in the element type, rounded once.
inline float decoded(weight_format format, std::uint8_t code, std::uint16_t scale_bits, element type) {
  const float scale = bf16_to_f32(scale_bits);
  float value = kernels::dequantise(format.element, code, 1.0f);
  if (format.element == weight_element::nf4) {
    const float factor = type == element::f16 ? 256.0f : 1.0f;
    value = rounded({value / factor}, type).front() * factor;
  }
  return rounded({value * scale}, type).front();
}

/// A random product whose matrix is quantised; `plain` is the same product with the decoded matrix.
struct coded_case {
  coded_case(random_numbers& random, element type, std::uint32_t rows, std::uint32_t outputs, std::uint32_t inputs,
             epilogue how, weight_format f)
      : plain(random, type, rows, outputs, inputs, how),
        before(plain.out_memory.read(stream())),
        out_memory(before, output_type(how, type)),
        codes_memory(kernels::gpu::coded_bytes(f, padded(outputs), padded(inputs)), "codes") {
    upload(f);
    for (std::uint32_t o = 0; o < outputs; ++o) {
      const std::uint16_t of_row =
          kernels::row_scale(f.element, std::span(plain.matrix).subspan(std::size_t{o} * inputs, inputs));
      for (std::uint32_t begin = 0; begin < inputs; begin += f.group) {
        const std::uint32_t count = std::min<std::uint32_t>(f.group, inputs - begin);
        std::vector<std::uint8_t> codes(count);
        const auto weights = std::span(plain.matrix).subspan(std::size_t{o} * inputs + begin, count);
        const std::uint16_t scale = kernels::quantise_group(f.element, weights, codes, of_row);
        for (std::uint32_t i = 0; i < count; ++i) weights[i] = decoded(f, codes[i], scale, type);
      }
    }
    plain.matrix_memory = device_values(gemm_case::tiled(plain.matrix, outputs, inputs, padded(outputs)), type);
    plain.p.matrix.data = plain.matrix_memory.data();
    plain.out = before;
    plain.expect(rows);
    p = plain.p;
    p.matrix.data = codes_memory.data(), p.matrix.format = f, p.out = out_memory.data();
  }

  gemm_case plain;
  std::vector<float> before;
  device_values out_memory;
  kernels::gpu::device_buffer<std::byte> codes_memory;
  gemm p;

 private:
  void upload(weight_format f) {
    const kernels::gpu::device_matrix& of = plain.p.matrix;
    const std::vector<std::byte> bytes = encode(plain.matrix, dtype::f32);
    const std::size_t panel_bytes = kernels::gpu::coded_bytes(f, kernels::gpu::panel_outputs, padded(of.inputs));
    kernels::gpu::pinned_buffer<std::byte> pinned(codes_memory.size());
    std::vector<float> scratch;
    for (std::uint32_t o = 0; o < padded(of.outputs); o += kernels::gpu::panel_outputs) {
      const std::uint32_t present = std::clamp<int>(static_cast<int>(of.outputs) - static_cast<int>(o), 0, 16);
      tensor_view rows = view_of(bytes, dtype::f32, {of.outputs, of.inputs});
      rows.shape[0] = present;
      rows.data += std::size_t{present > 0 ? o : 0} * of.inputs * sizeof(float);
      std::byte* const to = pinned.data() + o / kernels::gpu::panel_outputs * panel_bytes;
      BOOST_TEST(kernels::gpu::encode_panel(rows, plain.type, f, padded(of.inputs), to, scratch) == 0u);
    }
    const stream in;
    require(kernels::gpu::copy_to_device(codes_memory.data(), pinned.data(), pinned.size(), in));
    require(in.synchronize());
  }
};

}  // namespace skein::test
