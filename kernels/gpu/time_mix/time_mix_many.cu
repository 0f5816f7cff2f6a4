// Time mixing for one token each of many sequences. A block fills an SM.
//
// A warp processes one head of one token after another. TMA brings its state to shared memory while the previous head
// is processed, and stores it from there. Eight lanes share a row, eight keys each, so a lane needs eight numbers of
// each vector, which it loads once per token. This design relieves the path between shared memory and registers, which
// is the limit if states pass through it as well, or if every lane has whole rows and loads whole vectors (800 to 1,100
// cycles of an SM per head). The bits are those of the other kernels: sums over keys are a lane's eight in order, then
// three additions over lanes.
//
// Floor: the bytes of the states, read and written. The instructions of a head, fewer than 2,000 of a warp, take an SM
// 0.3 us; its share of the bytes with fp16 states takes 0.5.
#include "base/check.hpp"
#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/device/bulk_copy.cuh"
#include "kernels/gpu/device/mma.cuh"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/time_mix/time_mix.hpp"
#include "kernels/gpu/time_mix/time_mix_rows.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned warps = 12, threads = warps * warp_width;
constexpr slot_id nobody = ~slot_id{0};
constexpr unsigned groups = warp_width / row_lanes;  // of lanes that share a row
constexpr unsigned rows_at_once = 4;                 // per lane

/// A head is copied in one part of 16-bit numbers or two of 32 bits, into two buffers in turn. Twelve warps fill the
/// shared memory.
template <typename Stored>
struct warp_memory {
  static constexpr unsigned values = values_of_part<Stored>, parts = head_size / values;
  static constexpr unsigned packets = values * head_size / packet<Stored>::size;
  packet<Stored> state[2][packets];
  shared_tile<1> tile;
  bulk_arrival arrived[2];
};

/// A lane's keys of a token's vectors.
struct key_share {
  float w[lane_keys], k[lane_keys], kk[lane_keys], a_kk[lane_keys], r[lane_keys];

  __device__ key_share(const shared_tile<1>& tile, unsigned lane) {
    const auto load = [&](const float* vector, float(&to)[lane_keys]) {
#pragma unroll
      for (unsigned i = 0; i < lane_keys / 4; ++i) {
        const auto four = load_packet(vector + (i * row_lanes + lane) * 4);
        for (unsigned j = 0; j < 4; ++j) to[4 * i + j] = four.values[j];
      }
    };
    load(tile.w[0], w), load(tile.k[0], k), load(tile.kk[0], kk), load(tile.a_kk[0], a_kk), load(tile.r[0], r);
  }
};

/// The sums over the lanes that share rows: each lane gets that of row lane % 4.
__device__ inline float one_sum(const float (&of)[rows_at_once], unsigned lane) {
  const bool odd = lane % 2 != 0, high = lane % 4 >= 2;
  float two[2];
#pragma unroll
  for (unsigned i = 0; i < 2; ++i)
    two[i] = (odd ? of[2 * i + 1] : of[2 * i]) + shuffle_xor(odd ? of[2 * i] : of[2 * i + 1], 1);
  const float one = (high ? two[1] : two[0]) + shuffle_xor(high ? two[0] : two[1], 2);
  return one + shuffle_xor(one, 4);
}
__device__ inline void all_sums(float (&of)[rows_at_once], unsigned lane) {
  const bool odd = lane % 2 != 0, high = lane % 4 >= 2;
  const float own = one_sum(of, lane), beside = shuffle_xor(own, 1);
  const float first = odd ? beside : own, second = odd ? own : beside;
  const float far_first = shuffle_xor(first, 2), far_second = shuffle_xor(second, 2);
  of[0] = high ? far_first : first, of[1] = high ? far_second : second;
  of[2] = high ? first : far_first, of[3] = high ? second : far_second;
}

/// Updates a lane's part of the rows `first_value` + r * groups, r < rows_at_once; returns y of row lane % 4 of these.
template <typename Stored>
__device__ float take_rows(packet<Stored>* state, const float* v, const key_share& keys, std::uint32_t first_value,
                           unsigned lane) {
  float y[rows_at_once];
  constexpr unsigned size = packet<Stored>::size;
  const auto at = [&](unsigned r, unsigned i) -> packet<Stored>& {
    return state[head_state_index<Stored>(first_value + r * groups, (i * row_lanes + lane) * size) / size];
  };
  float s[rows_at_once][lane_keys], removed[rows_at_once], v_of[rows_at_once];
#pragma unroll
  for (unsigned r = 0; r < rows_at_once; ++r) {
    v_of[r] = v[first_value + r * groups];
#pragma unroll
    for (unsigned i = 0; i < lane_keys / size; ++i) {
      const packet<Stored> loaded = at(r, i);
      for (unsigned j = 0; j < size; ++j) s[r][i * size + j] = to_float(loaded.values[j]);
    }
  }
#pragma unroll
  for (unsigned r = 0; r < rows_at_once; ++r) {
    removed[r] = y[r] = 0;
    for (unsigned j = 0; j < lane_keys; ++j) removed[r] = multiply_add(s[r][j], keys.kk[j], removed[r]);
  }
  all_sums(removed, lane);
#pragma unroll
  for (unsigned r = 0; r < rows_at_once; ++r) {
    for (unsigned j = 0; j < lane_keys; ++j) {
      s[r][j] = update(s[r][j], removed[r], v_of[r], keys.w[j], keys.a_kk[j], keys.k[j]);
      y[r] = multiply_add(s[r][j], keys.r[j], y[r]);
    }
#pragma unroll
    for (unsigned i = 0; i < lane_keys / size; ++i) {
      float some[size];
      for (unsigned j = 0; j < size; ++j) some[j] = s[r][i * size + j];
      packet<Stored> stored;
      from_floats(some, stored.values);
      at(r, i) = stored;
    }
  }
  return one_sum(y, lane);
}

/// `in_parts`: r, k and v are partial sums. They are not prefetched, which would take too many registers.
template <typename Element, typename Stored, bool in_parts>
__global__ void __launch_bounds__(threads, 1) time_mix_many_kernel(device_batch rows, time_mix_parameters of) {
  using memory = warp_memory<Stored>;
  pdl_launch_dependents();
  memory& mine = dynamic_shared<memory>()[threadIdx.x / warp_width];
  const unsigned lane = threadIdx.x % warp_width;
  // Neighbouring blocks process neighbouring heads of a token; a warp always processes the same head.
  const std::uint32_t heads = of.width / head_size, number = threadIdx.x / warp_width * gridDim.x + blockIdx.x;
  const std::uint32_t tokens_at_once = gridDim.x * warps / heads, head = number % heads;
  const std::uint32_t end = rows.counts->rows;
  std::uint32_t row = number / heads;
  if (number >= tokens_at_once * heads || row >= end) return pdl_wait();
  const std::uint32_t channel = head * head_size + lane * lane_channels;

  const auto head_of = [&](slot_id slot) {
    return reinterpret_cast<Stored*>(static_cast<char*>(of.state) + slot * of.slot_bytes) +
           static_cast<std::size_t>(head) * head_size * head_size;
  };
  const auto slot_of = [&](std::uint32_t of_row) { return of_row < end ? rows.runs[of_row].slot : nobody; };
  constexpr unsigned part_bytes = sizeof mine.state[0];
  const auto part_of = [&](slot_id slot, unsigned part) {
    return head_of(slot) + part * (part_bytes / sizeof(Stored));
  };
  std::uint32_t turn = 0;  // of the two buffers, counted in parts of heads
  const auto fetch = [&](slot_id slot, unsigned part, std::uint32_t at_turn) {
    if (slot == nobody) return;
    bulk_arrival& arrived = mine.arrived[at_turn % 2];
    arrived.expect(part_bytes);
    arrived.fetch(mine.state[at_turn % 2], part_of(slot, part), part_bytes);
  };
  slot_id slot = slot_of(row), next_slot = slot_of(row + tokens_at_once);
  if (lane == 0) {
    for (bulk_arrival& arrived : mine.arrived) arrived.init();
    fetch(slot, 0, turn);
  }
  warp_barrier();
  const head_weights weights = load_weights(of, channel);
  const norm_weights_of_lane norm(of, channel);
  pdl_wait();
  inputs_on_their_way<Element> inputs;
  if (!in_parts) inputs.load(of, row, channel);
  for (; row < end; row += tokens_at_once) {
    fill_tile<Element, Stored>(of, row, channel,
                               in_parts ? load_inputs<Element>(of, row, channel) : inputs.read(of.first_layer), weights,
                               mine.tile, 0);
    warp_barrier();
    const std::uint32_t next_row = row + tokens_at_once;
    if (!in_parts && next_row < end) inputs.load(of, next_row, channel);
    const key_share keys(mine.tile, lane % row_lanes);
    for (unsigned part = 0; part < memory::parts; ++part, ++turn) {
      const bool is_last = part + 1 == memory::parts;
      if (lane == 0) {
        await_sent_bytes();  // from the buffer of the next part
        fetch(is_last ? next_slot : slot, is_last ? 0 : part + 1, turn + 1);
      }
      mine.arrived[turn % 2].wait(turn / 2);
      warp_barrier();
#pragma unroll 1
      for (unsigned i = lane / row_lanes; i < memory::values; i += rows_at_once * groups) {
        const float y =
            take_rows<Stored>(mine.state[turn % 2], &mine.tile.v[0][part * memory::values], keys, i, lane % row_lanes);
        if (lane % row_lanes < rows_at_once) mine.tile.y[0][part * memory::values + i + lane % row_lanes * groups] = y;
      }
      publish_for_engine();
      warp_barrier();
      if (lane == 0) {
        send_bytes(part_of(slot, part), mine.state[turn % 2], part_bytes);
        end_sent_bytes();
      }
    }
    read_tile<Element>(of, row, channel, norm, mine.tile, 0);
    slot = next_slot, next_slot = slot_of(next_row + tokens_at_once);
  }
  if (lane == 0) await_written_bytes();
}

}  // namespace

result<void> time_mix_many(stream_handle in, const device_batch& rows, element type, element state_type,
                           const time_mix_parameters& of) {
  check(of.width % head_size == 0);
  check(state_type != element::bf16);
  check(rows.room.runs == rows.room.rows);
  for (const gemm_rows* gate : {&of.w_out, &of.a_out, &of.g_out, &of.v_out}) check(gate->parts == 0);
  const bool in_parts = of.r.parts > 0 || of.k.parts > 0 || of.v.parts > 0;
  const auto profile = current_profile();
  if (!profile) return profile.error();
  const std::uint32_t sm_count = profile->sm_count;
  if (of.width / head_size > sm_count * warps)
    return error{error_kind::unsupported, "the model has more heads than the device has warps", ""};
  return with_element(type, [&]<typename Element>() -> result<void> {
    const auto start = [&]<typename Stored>(Stored) -> result<void> {
      const std::size_t bytes = warps * sizeof(warp_memory<Stored>);
      if (bytes > profile->shared_bytes_per_block)
        return error{error_kind::unsupported, "the device has too little shared memory", ""};
      const auto kernel =
          in_parts ? time_mix_many_kernel<Element, Stored, true> : time_mix_many_kernel<Element, Stored, false>;
      if (const auto r = allow_shared_bytes(kernel, bytes); !r)
        return error{error_kind::unsupported, r.error().message, ""};
      return launch({"time_mix_many", {sm_count}, {threads}, bytes, in, true}, kernel, rows, of);
    };
    return state_type == element::f32 ? start(float{}) : start(half{});
  });
}

}  // namespace skein::kernels::gpu
