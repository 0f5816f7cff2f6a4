// Reorders a slot's state to and from the canonical order, in its own types, and copies it to other slots. Block y is
// one layer; the threads of its blocks x stride over the slot's elements there.
#include "kernels/gpu/time_mix/state.hpp"

#include "base/check.hpp"
#include "kernels/gpu/time_mix/head_state.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned state_threads = 256;
constexpr unsigned blocks_a_layer = 16;

/// The parts of a slot in one layer.
struct slot_parts {
  char *att_x_prev, *ffn_x_prev, *wkv;

  __device__ slot_parts(const slot_layout& layout, char* states, slot_id slot, std::uint32_t layer)
      : att_x_prev(states + layout.att_x_prev(layer) + slot * layout.x_prev_bytes()),
        ffn_x_prev(states + layout.ffn_x_prev(layer) + slot * layout.x_prev_bytes()),
        wkv(states + layout.wkv(layer) + slot * layout.wkv_bytes()) {}
};

template <typename Stored, bool to_canonical>
__global__ void __launch_bounds__(state_threads)
    reorder_kernel(slot_layout layout, char* states, slot_id slot, char* canonical) {
  const std::uint32_t layer = blockIdx.y;
  const slot_parts parts(layout, states, slot, layer);
  char* const outside = canonical + layer * layout.canonical_layer_bytes();
  const auto x_prevs = reinterpret_cast<Stored*>(outside);
  char* const wkv = outside + 2 * layout.x_prev_bytes();
  const auto move = [](auto& inside, auto& out) {
    if constexpr (to_canonical)
      out = inside;
    else
      inside = out;
  };
  const std::uint32_t n = layout.head_size;
  for (std::uint32_t i = blockIdx.x * state_threads + threadIdx.x; i < layout.canonical_layer_floats();
       i += blocks_a_layer * state_threads) {
    if (i < 2 * layout.width) {
      auto* const x_prev = reinterpret_cast<Stored*>(i < layout.width ? parts.att_x_prev : parts.ffn_x_prev);
      move(x_prev[i % layout.width], x_prevs[i]);
      continue;
    }
    if (n == 0) {
      const std::uint32_t at = i - 2 * layout.width;
      move(reinterpret_cast<float*>(parts.wkv)[at], reinterpret_cast<float*>(wkv)[at]);
      continue;
    }
    const std::uint32_t of_heads = i - 2 * layout.width, head = of_heads / (n * n);
    const std::uint32_t value = of_heads / n % n, key = of_heads % n;
    const std::uint32_t in_head = n == head_size ? head_state_index<Stored>(value, key) : key * n + value;
    move(reinterpret_cast<Stored*>(parts.wkv)[head * n * n + in_head], reinterpret_cast<Stored*>(wkv)[of_heads]);
  }
}

template <bool to_canonical>
result<void> reorder(stream_handle in, const slot_layout& layout, void* states, slot_id slot, void* canonical) {
  const launch_shape shape{"reorder_state", {blocks_a_layer, layout.layers}, {state_threads}, 0, in};
  const auto inside = static_cast<char*>(states), outside = static_cast<char*>(canonical);
  return layout.type == element::f32 ? launch(shape, reorder_kernel<float, to_canonical>, layout, inside, slot, outside)
                                     : launch(shape, reorder_kernel<half, to_canonical>, layout, inside, slot, outside);
}

__global__ void __launch_bounds__(state_threads)
    copy_kernel(slot_layout layout, char* states, slot_id from, slot_id to) {
  constexpr std::size_t size = packet<float>::size;
  const slot_parts source(layout, states, from, blockIdx.y), target(layout, states, to, blockIdx.y);
  const auto copy = [&](const char* of, char* into, std::size_t bytes) {
    for (std::size_t i = (blockIdx.x * state_threads + threadIdx.x) * size; i < bytes / sizeof(float);
         i += blocks_a_layer * state_threads * size)
      store_packet(reinterpret_cast<float*>(into) + i, load_packet(reinterpret_cast<const float*>(of) + i));
  };
  copy(source.att_x_prev, target.att_x_prev, layout.x_prev_bytes());
  copy(source.ffn_x_prev, target.ffn_x_prev, layout.x_prev_bytes());
  copy(source.wkv, target.wkv, layout.wkv_bytes());
}

}  // namespace

result<void> state_to_canonical(stream_handle in, const slot_layout& layout, const void* states, slot_id slot,
                                void* canonical) {
  return reorder<true>(in, layout, const_cast<void*>(states), slot, canonical);
}

result<void> state_from_canonical(stream_handle in, const slot_layout& layout, const void* canonical, void* states,
                                  slot_id slot) {
  return reorder<false>(in, layout, states, slot, const_cast<void*>(canonical));
}

result<void> copy_state(stream_handle in, const slot_layout& layout, void* states, slot_id from, slot_id to) {
  check(layout.width % 64 == 0);  // whole packets
  return launch({"copy_state", {blocks_a_layer, layout.layers}, {state_threads}, 0, in}, copy_kernel, layout,
                static_cast<char*>(states), from, to);
}

}  // namespace skein::kernels::gpu
