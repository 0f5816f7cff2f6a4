#pragma once
#include "kernels/cpu/model/cpu_stages.hpp"

namespace skein::kernels::cpu {

struct gated_rows {
  row_buffer mixed_k, mixed_r, hidden, gate;

  gated_rows(const model_dims& dims, row_room& room)
      : mixed_k(room.make(dims.embd)),
        mixed_r(room.make(dims.embd)),
        hidden(room.make(dims.ffn)),
        gate(room.make(dims.embd)) {}
};

/// What versions 4, 5 and 6 share: a channel mixing with a receptance gate.
class gated_stages : public cpu_stages {
 protected:
  struct channel_mix {
    const vector &ln_weight, &ln_bias, &mix_k, &mix_r;  ///< mix: the share of the previous token
    const packed_matrix &key, &receptance;
  };

  gated_stages(const model_dims& dims, const stage_limits& limits) : cpu_stages(dims, limits), gated_(dims, room_) {}

  void mix_channels(std::uint32_t layer, const batch& rows, const channel_mix& with);
  /// x += gate * value projection
  void add_gated(const batch& rows, const packed_matrix& value);

  const gated_rows gated_;  ///< mixed_k and mixed_r are free during time mixing
};

/// Versions 4 and 5 store the share of the newest token, token_shift takes that of the previous one.
void to_previous_share(aligned_buffer<float>& mix);

}  // namespace skein::kernels::cpu
