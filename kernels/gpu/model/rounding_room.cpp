#include "kernels/gpu/model/rounding_room.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "kernels/gpu/model/device_weights.hpp"

namespace skein::kernels::gpu {

namespace {

constexpr std::uint32_t inputs_max = 4;  // of a launch that have rows of their own: receptance, key, value, gate

constexpr std::size_t rounded_width(std::uint32_t width) { return padded(width, 2 * matrix_tile); }

/// Of one input, read in pairs.
constexpr std::size_t scales_of(std::uint32_t rows) { return (std::size_t{rows} + row_tile_max + 1) / 2 * 2; }

struct sizes {
  std::size_t code_bytes = 0, scales = 0;
};
sizes sizes_of(const model_dims& dims, const gpu_options& options, std::uint32_t rows) {
  if (!matrix_formats(options).rounds_inputs || !options.formats.has(weight_element::fp8)) return {};
  const std::size_t embd = rounded_width(dims.embd), att = rounded_width(dims.att());
  // Of the projections; and of channel mixing, whose receptance may be beside its value matrix.
  const std::size_t widest = std::max(inputs_max * std::max(embd, att), embd + rounded_width(dims.ffn));
  return {rows * widest, inputs_max * scales_of(rows)};
}

}  // namespace

rounding_room::rounding_room(const model_dims& dims, const gpu_options& options, std::uint32_t rows)
    : rows_(rows),
      codes_(sizes_of(dims, options, rows).code_bytes, "activations"),
      scales_(sizes_of(dims, options, rows).scales, "activations") {}

std::size_t rounding_room::planned_bytes(const model_dims& dims, const gpu_options& options, std::uint32_t rows) {
  const auto [code_bytes, scales] = sizes_of(dims, options, rows);
  return code_bytes + scales * sizeof(float);
}

void rounding_room::assign(std::span<gemm> gemms) const {
  std::size_t used = 0, inputs = 0;
  for (std::size_t i = 0; i < gemms.size(); ++i) {
    gemm& p = gemms[i];
    if (!rounds_inputs(p)) continue;
    const auto before = gemms.first(i);
    const auto same = std::ranges::find_if(before, [&](const gemm& other) {
      return rounds_inputs(other) && other.in == p.in && other.matrix.inputs == p.matrix.inputs;
    });
    if (same != before.end()) {
      p.rounded = same->rounded;
      continue;
    }
    p.rounded = {codes_.data() + used, scales_.data() + inputs++ * scales_of(rows_)};
    used += rows_ * rounded_width(p.matrix.inputs);
    check(used <= codes_.bytes() && inputs <= inputs_max);
  }
}

}  // namespace skein::kernels::gpu
