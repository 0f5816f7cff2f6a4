// Moves a slot's state to and from the order that leaves the device. Block y is one layer; the threads of its blocks x
// walk over the layer's floats in the canonical order.
#include "kernels/gpu/state.hpp"

#include "kernels/gpu/device/head_state.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned threads = 256;
constexpr unsigned blocks_a_layer = 16;

template <typename Stored, bool to_canonical>
__global__ void __launch_bounds__(threads) convert_kernel(slot_layout layout, char* slot, float* canonical) {
  const std::uint32_t layer = blockIdx.y;
  float* const x_prev = reinterpret_cast<float*>(slot + layout.att_x_prev(layer));  // of both mixes
  Stored* const heads = reinterpret_cast<Stored*>(slot + layout.wkv(layer));
  float* const outside = canonical + layer * layout.canonical_layer_floats();
  const std::size_t x_prev_floats = 2 * std::size_t{layout.width};
  for (std::size_t i = blockIdx.x * threads + threadIdx.x; i < layout.canonical_layer_floats();
       i += blocks_a_layer * threads) {
    if (i < x_prev_floats) {
      if constexpr (to_canonical)
        outside[i] = x_prev[i];
      else
        x_prev[i] = outside[i];
      continue;
    }
    const std::size_t of_heads = i - x_prev_floats, head = of_heads / (head_size * head_size);
    const auto value = static_cast<std::uint32_t>(of_heads / head_size % head_size);
    const auto key = static_cast<std::uint32_t>(of_heads % head_size);
    Stored& inside = heads[head * head_size * head_size + head_state_index<Stored>(value, key)];
    if constexpr (to_canonical)
      outside[i] = to_float(inside);
    else
      inside = from_float<Stored>(outside[i]);
  }
}

template <bool to_canonical>
result<void> convert(stream_handle in, const slot_layout& layout, void* slot, float* canonical) {
  const launch_shape shape{"convert_state", {blocks_a_layer, layout.layers}, {threads}, 0, in};
  const auto bytes = static_cast<char*>(slot);
  return layout.type == element::f32 ? launch(shape, convert_kernel<float, to_canonical>, layout, bytes, canonical)
                                     : launch(shape, convert_kernel<half, to_canonical>, layout, bytes, canonical);
}

}  // namespace

result<void> state_to_canonical(stream_handle in, const slot_layout& layout, const void* slot, float* canonical) {
  return convert<true>(in, layout, const_cast<void*>(slot), canonical);
}

result<void> state_from_canonical(stream_handle in, const slot_layout& layout, const float* canonical, void* slot) {
  return convert<false>(in, layout, slot, const_cast<float*>(canonical));
}

}  // namespace skein::kernels::gpu
