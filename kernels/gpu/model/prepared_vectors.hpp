#pragma once
#include <deque>
#include <vector>

#include "kernels/weights/model_weights.hpp"

namespace skein::kernels::gpu {

/// The views of a checkpoint, some of them into `memory`.
template <template <typename> typename Layer>
struct prepared_weights {
  weights_of<checkpoint_views, Layer> weights;
  std::deque<std::vector<float>> memory;
};

/// The weights with vectors in the form that kernels read, which versions 4 and 5 store in another one:
///   mixes : the share of the previous token instead of the newest
///   decay : what a token subtracts from the exponent (version 4), or the factor of a token, by channel (version 5)
///   bonus : by channel; not its logarithm, which the result does not have
[[nodiscard]] prepared_weights<rwkv4_layer_of> prepare(const rwkv4_weights& weights);
[[nodiscard]] prepared_weights<rwkv5_layer_of> prepare(const rwkv5_weights& weights);

}  // namespace skein::kernels::gpu
