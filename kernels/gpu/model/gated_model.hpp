#pragma once
#include "kernels/gpu/model/base_model.hpp"

namespace skein::kernels::gpu {

/// mixed_k is also free during time mixing, and so is mixed_r.
struct gated_rows {
  activation mixed_k, mixed_r, hidden;
  activation gate;  ///< fp32

  /// `normed`: base_model::normed_.
  gated_rows(const model_dims& dims, activation normed, activation_room& room)
      : mixed_k(normed),
        mixed_r(room.make(dims.embd)),
        hidden(room.make(dims.ffn)),
        gate(room.make(dims.embd, element::f32)) {}
};

/// What versions 4, 5 and 6 share: a channel mixing with a receptance gate.
class gated_model : public base_model {
 protected:
  struct channel_mix {
    norm_weights norm;
    const float *mix_k, *mix_r;  ///< the share of the previous token
    const device_matrix& key;
  };

  gated_model(const model_dims& dims, const gpu_options& options, const model_room& room,
              const library_opener& open_library)
      : base_model(dims, options, room, open_library), gated_(dims_, normed_, activations_) {}

  void mix_channels(std::uint32_t layer, const channel_mix& with, pass& tick);
  /// x += sigmoid(receptance projection) * value projection
  void add_gated(const device_matrix& receptance, const device_matrix& value, pass& tick);

  const gated_rows gated_;
};

}  // namespace skein::kernels::gpu
