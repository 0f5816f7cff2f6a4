#include "model/rwkv7.hpp"

namespace skein::model {

void forward_rwkv7(kernels::stages& stages, std::uint32_t layers, const kernels::batch& rows) {
  stages.embed(rows);  // x [T, C]
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    stages.time_mix_in(layer, rows);      // x -> r k v [T, C], low-rank inner values [T, rank]
    stages.time_mix_state(layer, rows);   // -> y [T, C], moves S [slots, H, N, N]
    stages.time_mix_out(layer, rows);     // x += W_output y
    stages.channel_mix_in(layer, rows);   // x -> hidden [T, F]
    stages.channel_mix_out(layer, rows);  // x += W_value hidden
  }
}

}  // namespace skein::model
