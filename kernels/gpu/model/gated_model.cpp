#include "kernels/gpu/model/gated_model.hpp"

#include <array>

#include "kernels/gpu/gemm/hopper/matmul_few_rows.hpp"
#include "kernels/gpu/ops/gated_add.hpp"

namespace skein::kernels::gpu {

void gated_model::mix_channels(std::uint32_t layer, const channel_mix& with, pass& tick) {
  const std::array mixes = {with.mix_k, with.mix_r};
  const std::array outs = {gated_.mixed_k, gated_.mixed_r};
  shift(tick, with.norm, layout_.ffn_x_prev(layer), mixes, outs);
  gemm key = gemm_of(with.key, gated_.mixed_k, gated_.hidden, {activation_function::relu_squared});
  key.pdl_early_launch = true;
  multiply_rows(tick, {&key, 1});
}

// The receptance is not with the key, whose tiles alone have a block each on an SM, but with the value, which can be
// cut so that all blocks of the launch take about as long and run at once: with 7B on 132 SMs, 3 * 64 and 64 of 264.
//
// The value projection goes to partial sums, which the next norm adds, or to the half of x that is not in use.
void gated_model::add_gated(const device_matrix& receptance, const device_matrix& value, pass& tick) {
  std::array gemms = {
      gemm_of(receptance, gated_.mixed_r, gated_.gate, {activation_function::sigmoid, destination::f32}),
      gemm_of(value, gated_.hidden, other_x(), dims_.embd, {.to = destination::f32}),
  };
  gemms.front().pdl_early_launch = tick.rows.room.rows <= few_rows_max;  // as in add_to_x
  gemm_rows sums;
  split({&gemms.back(), 1}, gemms, {&sums, 1}, tick, padded(receptance.outputs) / matrix_tile);
  multiply_rows(tick, gemms);
  if (tick.learns) return;
  if (sums.parts > 0)
    added_ = sums, gate_ = gated_.gate;
  else
    tick.note(gated_add(tick.in, tick.rows, static_cast<const float*>(gated_.gate.data), gated_.gate.stride, sums, x(),
                        dims_.embd));
}

}  // namespace skein::kernels::gpu
