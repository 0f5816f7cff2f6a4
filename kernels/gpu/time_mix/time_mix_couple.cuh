#pragma once
#include "kernels/gpu/device/mma.cuh"
#include "kernels/gpu/time_mix/time_mix_token.cuh"

/// Time mixing of many tokens: eight lanes process a token of a head, eight channels each, which are 16 bytes of 16-bit
/// numbers. So a warp processes several tokens at once, and a sum over a token takes three steps.
namespace skein::kernels::gpu {

inline constexpr unsigned couple_channels = 8, couple_lanes = head_size / couple_channels;
using of_couple = float[couple_channels];

/// The layout of fp32 channels in shared memory: lanes that load their eight in two packets have no bank conflicts.
inline constexpr unsigned spread_channels = head_size + 4;
__device__ constexpr unsigned spread(unsigned channel) {
  return channel / 4 % 2 * (head_size / 2 + 4) + channel / couple_channels * 4 + channel % 4;
}
__device__ inline void load_spread(const float* from, unsigned first, of_couple& values) {
#pragma unroll
  for (unsigned i = 0; i < 2; ++i) {
    float some[4];
    load_floats(from + spread(first + 4 * i), some);
    for (unsigned c = 0; c < 4; ++c) values[4 * i + c] = some[c];
  }
}

/// The sum over the lanes of a token.
__device__ inline float couple_sum(float value) {
  for (unsigned mask = couple_lanes / 2; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
  return value;
}

/// Eight numbers whose loads are issued when they are loaded and waited for when they are read. `at` is aligned to 16
/// bytes.
template <typename T>
struct channels_on_their_way {
  static constexpr unsigned wide = 16 / sizeof(T) < couple_channels ? 16 / sizeof(T) : couple_channels;
  side_by_side<T, wide> pieces[couple_channels / wide];

  __device__ void load(const T* at) {
#pragma unroll
    for (unsigned i = 0; i < couple_channels / wide; ++i) pieces[i] = load_side_by_side<wide>(at + i * wide);
  }
  __device__ void clear() {
    const side_by_side<T, wide> zeros{};
    for (auto& piece : pieces) piece = zeros;
  }
  [[nodiscard]] __device__ float operator()(unsigned c) const { return to_float(pieces[c / wide].values[c % wide]); }
  __device__ void read(of_couple& values) const {
#pragma unroll
    for (unsigned c = 0; c < couple_channels; ++c) values[c] = (*this)(c);
  }
};
template <typename T>
__device__ void load_channels(const T* at, of_couple& values) {
  channels_on_their_way<T> loaded;
  loaded.load(at);
  loaded.read(values);
}
template <typename T>
__device__ void store_channels(T* at, const of_couple& values) {
  constexpr unsigned wide = channels_on_their_way<T>::wide;
#pragma unroll
  for (unsigned i = 0; i < couple_channels / wide; ++i) {
    side_by_side<T, wide> piece;
#pragma unroll
    for (unsigned j = 0; j < wide; ++j) piece.values[j] = from_float<T>(values[i * wide + j]);
    *reinterpret_cast<side_by_side<T, wide>*>(at + i * wide) = piece;
  }
}
#if defined(__CUDA_ARCH__)
/// The same numbers, with one instruction for two.
__device__ inline void store_channels(half* at, const of_couple& values) {
  side_by_side<operand_pair, couple_channels / 2> pairs;
#pragma unroll
  for (unsigned i = 0; i < couple_channels / 2; ++i) pairs.values[i] = to_operands(values[2 * i], values[2 * i + 1]);
  *reinterpret_cast<side_by_side<operand_pair, couple_channels / 2>*>(at) = pairs;
}
#endif
using couple_operands = side_by_side<operand_pair, couple_channels / 2>;
__device__ inline void store_operands(operand_pair* at, const couple_operands& operands) {
  *reinterpret_cast<couple_operands*>(at) = operands;
}

struct channels_of_operands {
  of_couple values;

  __device__ void load(const operand_pair* at) {
    const auto pairs = *reinterpret_cast<const couple_operands*>(at);
#pragma unroll
    for (unsigned i = 0; i < couple_channels / 2; ++i) to_floats(pairs.values[i], values[2 * i], values[2 * i + 1]);
  }
};

/// A row of a low-rank pair's output, which is never stored as partial sums.
template <typename Element>
__device__ const gate_type<Element>* gate_place(const gemm_rows& of, std::uint32_t row, std::uint32_t channel) {
  return static_cast<const gate_type<Element>*>(of.data) + static_cast<std::size_t>(row) * of.stride + channel;
}

/// The output of a GEMM for a lane's channels; `in_parts`: it may be partial sums, which this waits for.
template <bool in_parts, typename Element>
__device__ void load_gemm(const gemm_rows& of, std::uint32_t row, std::uint32_t channel,
                          channels_on_their_way<Element>& to) {
  if constexpr (!in_parts) {
    to.load(static_cast<const Element*>(of.data) + static_cast<std::size_t>(row) * of.stride + channel);
  } else {
    constexpr unsigned wide = channels_on_their_way<Element>::wide;
#pragma unroll
    for (unsigned i = 0; i < couple_channels; i += 4) {
      float sums[4];
      load_gemms<Element>(of, row, channel + i, sums);
#pragma unroll
      for (unsigned c = i; c < i + 4; ++c) to.pieces[c / wide].values[c % wide] = from_float<Element>(sums[c - i]);
    }
  }
}

/// The GEMM outputs of a lane's channels of a token.
template <typename Element>
struct couple_inputs {
  using gate = gate_type<Element>;
  channels_on_their_way<Element> r, k, v, v_first;
  channels_on_their_way<gate> a_out, v_out;

  __device__ void clear() { r.clear(), k.clear(), v.clear(), v_first.clear(); }
  /// `in_parts`: r, k and v may be partial sums. Waits for these three.
  template <bool in_parts>
  __device__ void load(const time_mix_parameters& of, std::uint32_t row, std::uint32_t channel) {
    a_out.load(gate_place<Element>(of.a_out, row, channel));
    load_gemm<in_parts>(of.k, row, channel, k);
    load_gemm<in_parts>(of.r, row, channel, r);
    load_gemm<in_parts>(of.v, row, channel, v);
    if (of.first_layer) return;
    v_out.load(gate_place<Element>(of.v_out, row, channel));
    v_first.load(static_cast<const Element*>(of.v_first) + static_cast<std::size_t>(row) * of.width + channel);
  }
};

}  // namespace skein::kernels::gpu
