#include "kernels/gpu/model/decoding_room.hpp"

#include <algorithm>

#include "kernels/gpu/model/device_weights.hpp"

namespace skein::kernels::gpu {

namespace {

/// The fewest rows for which a launch decodes its matrices first.
constexpr std::uint32_t many_rows = 1536;
constexpr std::uint32_t projections = 4;  // of a launch: receptance, key, value, gate

std::size_t row_bytes_of(std::uint32_t outputs, std::uint32_t inputs) {
  return std::size_t{padded(outputs)} * padded(inputs) * 2;
}

/// Whether the plan quantises matrices that kernels decode again for each tile of rows, instead of other work. The
/// kernels of Hopper, where fp8 matrices round their inputs, decode beside the products.
bool decodes(const gpu_options& options) {
  return options.matrix_type != element::f32 && options.formats.quantised() && !matrix_formats(options).rounds_inputs;
}

}  // namespace

std::size_t decoding_room::planned_bytes(const model_dims& dims, const gpu_options& options, std::uint32_t rows) {
  if (rows < many_rows || !decodes(options)) return 0;
  return std::max(projections * row_bytes_of(dims.att(), dims.embd), row_bytes_of(dims.ffn, dims.embd));
}

decoding_room::decoding_room(const model_dims& dims, const gpu_options& options, std::uint32_t rows)
    : memory_(planned_bytes(dims, options, rows), "activations") {}

void decoding_room::assign(std::span<gemm> gemms, std::uint32_t rows) const {
  if (rows < many_rows || memory_.bytes() == 0) return;
  const auto is_decoded = [](const gemm& p) { return is_quantised(p) && !rounds_inputs(p); };
  std::size_t used = 0;
  for (const gemm& p : gemms)
    if (is_decoded(p)) used += row_bytes_of(p.matrix.outputs, p.matrix.inputs);
  if (used > memory_.bytes()) return;
  used = 0;
  for (gemm& p : gemms) {
    if (!is_decoded(p)) continue;
    p.decoded = memory_.data() + used;
    used += row_bytes_of(p.matrix.outputs, p.matrix.inputs);
  }
}

}  // namespace skein::kernels::gpu
