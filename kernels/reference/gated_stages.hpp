#pragma once
#include "kernels/reference/reference_stages.hpp"

namespace skein::kernels::reference {

/// What versions 4, 5 and 6 share: a channel mixing with a receptance gate.
class gated_stages : public reference_stages {
 protected:
  struct channel_mix {
    row ln_weight, ln_bias, mix_k, mix_r;  ///< mix: the share of the previous token
    const dense_matrix& key;
    const dense_matrix& receptance;
  };

  gated_stages(const model_dims& dims, std::size_t memory_floats, const stage_limits& limits)
      : reference_stages(dims, memory_floats, limits), hidden_(buffer(dims.ffn)), gate_(buffer(dims.embd)) {}

  void mix_channels(std::uint32_t layer, const batch& rows, const channel_mix& with);
  /// x += gate * value projection
  void add_gated(const dense_matrix& value, const batch& rows);

 private:
  row_buffer& hidden_;
  row_buffer& gate_;
};

/// Versions 4 and 5 store the share of the newest token, token_shift takes that of the previous one.
void to_previous_share(std::vector<float>& mix);

}  // namespace skein::kernels::reference
