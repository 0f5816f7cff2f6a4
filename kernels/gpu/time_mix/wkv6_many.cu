// Time mixing of RWKV-5 and 6 for one token each of many sequences (head_stream.cuh).
//
// Floor: the bytes of the states, read and written.
#include "base/check.hpp"
#include "kernels/gpu/time_mix/head_stream.cuh"
#include "kernels/gpu/time_mix/wkv6.hpp"
#include "kernels/gpu/time_mix/wkv6_rows.cuh"

namespace skein::kernels::gpu {

namespace {

/// A lane's keys of a token's vectors.
struct key_share {
  float w[lane_keys], k[lane_keys], r[lane_keys];

  __device__ key_share(const wkv6_tile<1>& tile, unsigned lane) {
    load_keys(tile.w[0], lane, w), load_keys(tile.k[0], lane, k), load_keys(tile.r[0], lane, r);
  }
};

/// `in_parts`: r, k and v are partial sums. They are not prefetched, which would take too many registers.
template <typename Element, typename Stored, bool in_parts>
class token_work {
 public:
  using tile = wkv6_tile<1>;
  using keys = key_share;

  __device__ token_work(const wkv6_parameters& of, std::uint32_t channel)
      : of_(of), channel_(channel), weights_(of, channel) {}
  __device__ void ask(std::uint32_t row) {
    if (!in_parts) inputs_.ask(of_, row, channel_);
  }
  __device__ void fill(std::uint32_t row, tile& to) {
    if (in_parts) inputs_.ask(of_, row, channel_);
    gpu::fill<Stored>(of_, channel_, weights_, inputs_.read(of_), to, 0);
  }
  __device__ float take(const rows_of_lane<Stored>& rows, const float* v, const key_share& of) const {
    float s[rows_at_once][lane_keys], v_of[rows_at_once], y[rows_at_once];
#pragma unroll
    for (unsigned r = 0; r < rows_at_once; ++r) v_of[r] = v[rows.first_value + r * row_groups];
    rows.load(s);
#pragma unroll
    for (unsigned r = 0; r < rows_at_once; ++r) {
      y[r] = 0;
      for (unsigned j = 0; j < lane_keys; ++j) {
        y[r] = multiply_add(s[r][j], of.r[j], y[r]);
        s[r][j] = add_token(s[r][j], of.w[j], v_of[r], of.k[j]);
      }
      rows.store(r, s[r]);
    }
    return one_sum(y, rows.lane);
  }
  __device__ void finish(std::uint32_t row, const tile& from) const {
    gpu::finish<Element>(of_, row, channel_, weights_, from, 0);
  }

 private:
  const wkv6_parameters& of_;
  const std::uint32_t channel_;
  const wkv6_weights weights_;
  wkv6_inputs_on_their_way<Element, in_parts> inputs_;
};

template <typename Element, typename Stored, bool in_parts>
__global__ void __launch_bounds__(stream_threads, 1) wkv6_many_kernel(device_batch rows, wkv6_parameters of) {
  stream_heads<Stored, token_work<Element, Stored, in_parts>>(rows, of);
}

}  // namespace

result<void> wkv6_many(stream_handle in, const device_batch& rows, element type, element state_type,
                       const wkv6_parameters& of) {
  check(of.width % head_size == 0);
  check(state_type != element::bf16);
  check(rows.room.runs == rows.room.rows);
  check(of.w_out.parts == 0 && of.g.parts == 0);
  const bool in_parts = of.r.parts > 0 || of.k.parts > 0 || of.v.parts > 0;
  return with_element(type, [&]<typename Element>() -> result<void> {
    const auto start = [&]<typename Stored>(Stored) {
      return launch_stream(
          "wkv6_many", in,
          in_parts ? wkv6_many_kernel<Element, Stored, true> : wkv6_many_kernel<Element, Stored, false>,
          sizeof(warp_memory<Stored, wkv6_tile<1>>), rows, of);
    };
    return state_type == element::f32 ? start(float{}) : start(half{});
  });
}

}  // namespace skein::kernels::gpu
