// Time mixing one token after another, for decode, short runs and GPUs without tensor cores.
//
// A block is one head of one run. Eight lanes share two rows of the state, S[value, 0 .. 63], with an eighth of the
// keys each, and keep them in registers for the whole run; a sum over keys takes three additions beyond a lane's own.
// So no part of the state passes between warps, and a token needs two barriers: before it, when its vectors are ready,
// and after it, when all values of y are. One warp computes the vectors and the output of a token, so a tile with one
// token per warp needs no more barriers than a single token. Lanes share two rows because the bandwidth from shared
// memory to registers would be the limit for states in 16 bits: vectors are loaded once for both.
//
// Only addresses are computed before the loads of the state, which take longest, and the loaded values are not used
// before the vectors of the first tile are ready. The loads do not wait for the preceding kernels either: counts and
// runs were complete when the embedding let the next kernel begin, and the states of a layer were complete when the
// same layer of the previous tick ended. Only runs whose first rows were chunked have to wait.
//
// If there are many one-token runs, a thread processes a whole row instead, and a block is two warps: then the number
// of bytes in flight matters most. If there are very many, time_mix_many processes them if it can.
//
// Floor: the bytes of the states, read and written.
#include "kernels/gpu/time_mix/time_mix.hpp"

#include "base/check.hpp"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/time_mix/one_token.cuh"
#include "kernels/gpu/time_mix/time_mix_rows.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned time_mix_threads = row_threads_of_head;
[[maybe_unused]] constexpr unsigned blocks_each = 2;  // per SM, limited by registers
constexpr unsigned tile_tokens = time_mix_threads / warp_width;
// Heads of all runs. With fewer, an SM has too little work to hide latency; more are for time_mix_many (8 sequences of
// 7.2B, which have 512 heads: 2,034 tokens/s with it, 2,071 without).
constexpr std::uint32_t many_heads = 512, very_many_heads = 1024;

template <typename Element, typename Stored>
__global__ void __launch_bounds__(time_mix_threads, blocks_each)
    time_mix_kernel(device_batch rows, time_mix_parameters of) {
  __shared__ shared_tile<tile_tokens> tile;
  pdl_launch_dependents();
  const sequence_run run = rows.runs[blockIdx.y];  // beyond the count it is meaningless, but may be read
  if (blockIdx.y >= rows.counts->runs || run.rows == run.chunked) {
    pdl_wait();  // kernels that wait for this one rely on the preceding ones being complete
    return;
  }
  Stored* const head = reinterpret_cast<Stored*>(static_cast<char*>(of.state) + run.slot * of.slot_bytes) +
                       static_cast<std::size_t>(blockIdx.x) * head_size * head_size;
  row_part<Stored> state;
  if (run.chunked > 0) pdl_wait();  // for the state after the run's chunks
  const auto loaded = state.load(head);
  const std::uint32_t warp = threadIdx.x / warp_width;
  const std::uint32_t channel = blockIdx.x * head_size + threadIdx.x % warp_width * lane_channels;
  const head_weights weights = load_weights(of, channel);
  const norm_weights_of_lane norm(of, channel);
  pdl_wait();
  std::uint32_t row = run.first_row + run.chunked + warp,
                left = run.rows - run.chunked;  // this warp's token of the tile
  if (warp < left)
    fill_tile<Element, Stored>(of, row, channel, load_inputs<Element>(of, row, channel), weights, tile, warp);
  state.unpack(loaded);
  while (true) {
    __syncthreads();
    for (std::uint32_t t = 0; t < tile_tokens && t < left; ++t) {
      float y[lane_rows];
      state.take(tile, t, y);
      if (state.lane < lane_rows) tile.y[t][state.value(state.lane)] = state.lane == 0 ? y[0] : y[1];
    }
    if (left <= tile_tokens) state.store(head);
    __syncthreads();
    if (warp < left) read_tile<Element>(of, row, channel, norm, tile, warp);
    if (left <= tile_tokens) break;
    row += tile_tokens, left -= tile_tokens;
    if (warp < left)
      fill_tile<Element, Stored>(of, row, channel, load_inputs<Element>(of, row, channel), weights, tile, warp);
  }
}

/// For run_one_token.
template <typename Element, typename Stored>
struct one_token_work {
  using tile = shared_tile<1>;
  const time_mix_parameters& of;

  __device__ void fill(std::uint32_t row, std::uint32_t channel, tile& to) const {
    const head_weights weights = load_weights(of, channel);
    pdl_wait();
    fill_tile<Element, Stored>(of, row, channel, load_inputs<Element>(of, row, channel), weights, to, 0);
  }
  template <unsigned packets>
  __device__ float take(packet<Stored> (&state)[packets], Stored* head, const tile& from) const {
    return take_token(state, head, from);
  }
  __device__ void finish(std::uint32_t row, std::uint32_t channel, const tile& from) const {
    read_tile<Element>(of, row, channel, norm_weights_of_lane(of, channel), from, 0);
  }
};

template <typename Element, typename Stored>
__global__ void __launch_bounds__(one_token_threads, one_token_blocks<Stored>)
    one_token_kernel(device_batch rows, time_mix_parameters of) {
  run_one_token<Stored>(rows, one_token_work<Element, Stored>{of});
}

}  // namespace

result<void> time_mix(stream_handle in, const device_batch& rows, element type, element state_type,
                      const time_mix_parameters& of) {
  check(of.width % head_size == 0);
  check(state_type != element::bf16);
  for (const gemm_rows* gate : {&of.w_out, &of.a_out, &of.g_out, &of.v_out}) check(gate->parts == 0);
  const std::uint32_t heads = of.width / head_size;
  launch_shape shape{"time_mix", {heads, rows.room.runs}, {time_mix_threads}, 0, in, true};
  return with_element(type, [&]<typename Element>() -> result<void> {
    const auto start = [&](auto in_floats, auto in_halves) {
      return state_type == element::f32 ? launch(shape, in_floats, rows, of) : launch(shape, in_halves, rows, of);
    };
    if (rows.room.runs < rows.room.rows || heads * rows.room.runs < many_heads)
      return start(time_mix_kernel<Element, float>, time_mix_kernel<Element, half>);
    if (!runtime_is_emulated && heads * rows.room.runs >= very_many_heads) {  // tests call both there
      const auto done = time_mix_many(in, rows, type, state_type, of);
      if (done || done.error().kind != error_kind::unsupported) return done;
    }
    shape.block = {one_token_threads};
    return start(one_token_kernel<Element, float>, one_token_kernel<Element, half>);
  });
}

}  // namespace skein::kernels::gpu
