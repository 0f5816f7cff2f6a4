#include "kernels/cpu/model/gated_stages.hpp"

#include <array>

namespace skein::kernels::cpu {

void gated_stages::mix_channels(std::uint32_t layer, const batch& rows, const channel_mix& with) {
  const std::array<shift, 2> shifts = {{{&with.mix_k, &gated_.mixed_k}, {&with.mix_r, &gated_.mixed_r}}};
  norm_and_shift(rows, with.ln_weight, with.ln_bias, slot_.ffn_x_prev(layer), shifts);
  const std::array<gemm, 2> gemms = {
      make_gemm(with.key, gated_.mixed_k, gated_.hidden, epilogue::relu_squared),
      make_gemm(with.receptance, gated_.mixed_r, gated_.gate, epilogue::sigmoid),
  };
  matmul_(rows.tokens.size(), gemms);
}

void gated_stages::add_gated(const batch& rows, const packed_matrix& value) {
  gemm residual = make_gemm(value, gated_.hidden, x_, epilogue::add_gated);
  residual.gate = gated_.gate[0], residual.gate_stride = gated_.gate.stride();
  matmul_(rows.tokens.size(), {&residual, 1});
}

void to_previous_share(aligned_buffer<float>& mix) {
  for (float& share : mix.all()) share = 1 - share;
}

}  // namespace skein::kernels::cpu
