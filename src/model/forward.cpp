#include "model/forward.hpp"

namespace skein::model {

void forward(kernels::stages& stages, std::uint32_t layers, const kernels::batch& rows) {
  stages.embed(rows);  // x [T, C]
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    stages.time_mix_in(layer, rows);      // x -> r k v [T, A], low-rank inner values [T, rank]
    stages.time_mix_state(layer, rows);   // -> y [T, A], moves S [slots, H, N, N] or aa bb pp [slots, A]
    stages.time_mix_out(layer, rows);     // x += W_output y
    stages.channel_mix_in(layer, rows);   // x -> hidden [T, F]
    stages.channel_mix_out(layer, rows);  // x += W_value hidden
  }
}

}  // namespace skein::model
