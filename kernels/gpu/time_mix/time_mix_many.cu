// Time mixing for one token each of many sequences (head_stream.cuh).
//
// Floor: the bytes of the states, read and written. The instructions of a head, fewer than 2,000 of a warp, take an SM
// 0.3 us; its share of the bytes with fp16 states takes 0.5.
#include "base/check.hpp"
#include "kernels/gpu/time_mix/head_stream.cuh"
#include "kernels/gpu/time_mix/time_mix.hpp"

namespace skein::kernels::gpu {

namespace {

__device__ inline void all_sums(float (&of)[rows_at_once], unsigned lane) {
  const bool odd = lane % 2 != 0, high = lane % 4 >= 2;
  const float own = one_sum(of, lane), beside = shuffle_xor(own, 1);
  const float first = odd ? beside : own, second = odd ? own : beside;
  const float far_first = shuffle_xor(first, 2), far_second = shuffle_xor(second, 2);
  of[0] = high ? far_first : first, of[1] = high ? far_second : second;
  of[2] = high ? first : far_first, of[3] = high ? second : far_second;
}

/// A lane's keys of a token's vectors.
struct key_share {
  float w[lane_keys], k[lane_keys], kk[lane_keys], a_kk[lane_keys], r[lane_keys];

  __device__ key_share(const shared_tile<1>& tile, unsigned lane) {
    load_keys(tile.w[0], lane, w), load_keys(tile.k[0], lane, k), load_keys(tile.kk[0], lane, kk);
    load_keys(tile.a_kk[0], lane, a_kk), load_keys(tile.r[0], lane, r);
  }
};

/// `in_parts`: r, k and v are partial sums. They are not prefetched, which would take too many registers.
template <typename Element, typename Stored, bool in_parts>
class token_work {
 public:
  using tile = shared_tile<1>;
  using keys = key_share;

  __device__ token_work(const time_mix_parameters& of, std::uint32_t channel)
      : of_(of), channel_(channel), weights_(load_weights(of, channel)), norm_(of, channel) {}
  __device__ void ask(std::uint32_t row) {
    if (!in_parts) inputs_.load(of_, row, channel_);
  }
  __device__ void fill(std::uint32_t row, tile& to) const {
    fill_tile<Element, Stored>(of_, row, channel_,
                               in_parts ? load_inputs<Element>(of_, row, channel_) : inputs_.read(of_.first_layer),
                               weights_, to, 0);
  }
  __device__ float take(const rows_of_lane<Stored>& rows, const float* v, const key_share& of) const {
    float s[rows_at_once][lane_keys], removed[rows_at_once], v_of[rows_at_once], y[rows_at_once];
#pragma unroll
    for (unsigned r = 0; r < rows_at_once; ++r) v_of[r] = v[rows.first_value + r * row_groups];
    rows.load(s);
#pragma unroll
    for (unsigned r = 0; r < rows_at_once; ++r) {
      removed[r] = y[r] = 0;
      for (unsigned j = 0; j < lane_keys; ++j) removed[r] = multiply_add(s[r][j], of.kk[j], removed[r]);
    }
    all_sums(removed, rows.lane);
#pragma unroll
    for (unsigned r = 0; r < rows_at_once; ++r) {
      for (unsigned j = 0; j < lane_keys; ++j) {
        s[r][j] = update(s[r][j], removed[r], v_of[r], of.w[j], of.a_kk[j], of.k[j]);
        y[r] = multiply_add(s[r][j], of.r[j], y[r]);
      }
      rows.store(r, s[r]);
    }
    return one_sum(y, rows.lane);
  }
  __device__ void finish(std::uint32_t row, const tile& from) const {
    read_tile<Element>(of_, row, channel_, norm_, from, 0);
  }

 private:
  const time_mix_parameters& of_;
  const std::uint32_t channel_;
  const head_weights weights_;
  const norm_weights_of_lane norm_;
  inputs_on_their_way<Element> inputs_;
};

template <typename Element, typename Stored, bool in_parts>
__global__ void __launch_bounds__(stream_threads, 1) time_mix_many_kernel(device_batch rows, time_mix_parameters of) {
  stream_heads<Stored, token_work<Element, Stored, in_parts>>(rows, of);
}

}  // namespace

result<void> time_mix_many(stream_handle in, const device_batch& rows, element type, element state_type,
                           const time_mix_parameters& of) {
  check(of.width % head_size == 0);
  check(state_type != element::bf16);
  check(rows.room.runs == rows.room.rows);
  for (const gemm_rows* gate : {&of.w_out, &of.a_out, &of.g_out, &of.v_out}) check(gate->parts == 0);
  const bool in_parts = of.r.parts > 0 || of.k.parts > 0 || of.v.parts > 0;
  return with_element(type, [&]<typename Element>() -> result<void> {
    const auto start = [&]<typename Stored>(Stored) {
      return launch_stream(
          "time_mix_many", in,
          in_parts ? time_mix_many_kernel<Element, Stored, true> : time_mix_many_kernel<Element, Stored, false>,
          sizeof(warp_memory<Stored, shared_tile<1>>), rows, of);
    };
    return state_type == element::f32 ? start(float{}) : start(half{});
  });
}

}  // namespace skein::kernels::gpu
