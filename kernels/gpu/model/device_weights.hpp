#pragma once
#include <array>

#include "kernels/gpu/gemm/matmul.hpp"
#include "kernels/gpu/ops/embed.hpp"
#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/runtime/stream.hpp"
#include "kernels/gpu/types/device_matrix.hpp"
#include "kernels/gpu/types/gpu_options.hpp"
#include "kernels/weights/model_weights.hpp"
#include "kernels/weights/weight_plan.hpp"

namespace skein::kernels::gpu {

/// How matrices are stored: in the element type, except those that the plan quantises.
struct matrix_formats {
  element type = element::f16;
  const weight_plan* plan = nullptr;
  bool rounds_inputs = false;  ///< fp8 matrices are stored as rows
  matrix_formats() = default;
  /// Throws device_failure.
  explicit matrix_formats(const gpu_options& options);
};

/// A vector on the device: fp32.
struct device_vector {
  const float* data = nullptr;
  operator const float*() const { return data; }  // NOLINT(google-explicit-constructor): kernels take the pointer
};

/// Weights on the device. Both factors of each low-rank pair are plain matrices. The first factors of the five pairs of
/// RWKV-6 (five_rank_x) are one matrix in which each is padded to whole tiles: pair i begins at output
/// i * padded(rank_x).
struct device_types {
  using vector = device_vector;
  using table = device_matrix;
  using matrix = device_matrix;
  using stack = std::array<device_matrix, 5>;
};
using device_layer = rwkv7_layer_of<device_types>;

/// All weights of a model, in one allocation. An initial state is no weight: its pointers stay null.
template <template <typename> typename Layer>
struct device_weights_of : weights_of<device_types, Layer> {
  device_buffer<std::byte> memory;
};

[[nodiscard]] inline norm_weights norm_of(const device_vector& weight, const device_vector& bias) {
  return {weight, bias};
}

/// The size of device_weights_of::memory.
template <template <typename> typename Layer>
[[nodiscard]] std::size_t device_weight_bytes(const weights_of<checkpoint_views, Layer>& weights,
                                              const matrix_formats& formats);

/// Copies a checkpoint to the current device through pinned memory, converts matrices to their formats, and waits
/// for the copies. Throws device_failure; if memory is short, the message gives the size of the allocation. Vectors are
/// copied as they are: prepare() of prepared_vectors.hpp first replaces those that kernels read in another form.
template <template <typename> typename Layer>
[[nodiscard]] device_weights_of<Layer> upload(const weights_of<checkpoint_views, Layer>& weights,
                                              const matrix_formats& formats, const load_progress& progress);

}  // namespace skein::kernels::gpu
