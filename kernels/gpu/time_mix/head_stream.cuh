#pragma once
#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/device/bulk_copy.cuh"
#include "kernels/gpu/device/mma.cuh"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/time_mix/time_mix_rows.cuh"

/// Time mixing for one token each of many sequences. A block fills an SM.
///
/// A warp processes one head of one token after another. TMA brings its state to shared memory while the previous head
/// is processed, and stores it from there. Eight lanes share a row, eight keys each, so a lane needs eight numbers of
/// each vector, which it loads once per token. This design relieves the path between shared memory and registers, which
/// is the limit if states pass through it as well, or if every lane has whole rows and loads whole vectors (800 to
/// 1,100 cycles of an SM per head). The bits are those of the other kernels: sums over keys are a lane's eight in
/// order, then three additions over lanes.
namespace skein::kernels::gpu {

inline constexpr unsigned stream_warps = 12, stream_threads = stream_warps * warp_width;
inline constexpr unsigned row_groups = warp_width / row_lanes;  ///< of lanes that share a row
inline constexpr unsigned rows_at_once = 4;                     ///< per lane

/// A head is copied in one part of 16-bit numbers or two of 32 bits, into two buffers in turn. Twelve warps fill the
/// shared memory.
template <typename Stored, typename Tile>
struct warp_memory {
  static constexpr unsigned values = values_of_part<Stored>, parts = head_size / values;
  static constexpr unsigned packets = values * head_size / packet<Stored>::size;
  packet<Stored> state[2][packets];
  Tile tile;
  bulk_arrival arrived[2];
};

/// A lane's keys of a vector in the order of row_part::position.
__device__ inline void load_keys(const float* vector, unsigned lane, float (&to)[lane_keys]) {
#pragma unroll
  for (unsigned i = 0; i < lane_keys / 4; ++i) {
    const auto four = load_packet(vector + (i * row_lanes + lane) * 4);
    for (unsigned j = 0; j < 4; ++j) to[4 * i + j] = four.values[j];
  }
}

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

/// A lane's part of the rows `first_value` + r * row_groups, r < rows_at_once, of a state in shared memory.
template <typename Stored>
struct rows_of_lane {
  static constexpr unsigned size = packet<Stored>::size;
  packet<Stored>* const state;
  const std::uint32_t first_value;
  const unsigned lane;

  __device__ void load(float (&s)[rows_at_once][lane_keys]) const {
#pragma unroll
    for (unsigned r = 0; r < rows_at_once; ++r)
#pragma unroll
      for (unsigned i = 0; i < lane_keys / size; ++i) {
        const packet<Stored> loaded = at(r, i);
        for (unsigned j = 0; j < size; ++j) s[r][i * size + j] = to_float(loaded.values[j]);
      }
  }
  __device__ void store(unsigned r, const float (&s)[lane_keys]) const {
#pragma unroll
    for (unsigned i = 0; i < lane_keys / size; ++i) {
      float some[size];
      for (unsigned j = 0; j < size; ++j) some[j] = s[i * size + j];
      packet<Stored> stored;
      from_floats(some, stored.values);
      at(r, i) = stored;
    }
  }

 private:
  __device__ packet<Stored>& at(unsigned r, unsigned i) const {
    return state[head_state_index<Stored>(first_value + r * row_groups, (i * row_lanes + lane) * size) / size];
  }
};

/// Runs `Work` over all heads of all rows; the whole kernel. `of` has state, slot_bytes and width as
/// time_mix_parameters has. Work(of, channel) loads what no kernel writes; then, in this order for each row:
///   ask(row)        issues the loads of its inputs, if they are to be prefetched
///   fill(row, tile) computes its vectors
///   keys(tile, lane)  a type: a lane's keys of these vectors
///   take(rows, v, keys)  updates rows of the state, where v are the values of that part of the head, and returns y of
///   row
///                        lane % 4 of these
///   finish(row, tile)  makes the output from tile.y
template <typename Stored, typename Work, typename Parameters>
__device__ void stream_heads(const device_batch& rows, const Parameters& of) {
  constexpr slot_id no_slot = ~slot_id{0};
  using memory = warp_memory<Stored, typename Work::tile>;
  pdl_launch_dependents();
  memory& mine = dynamic_shared<memory>()[threadIdx.x / warp_width];
  const unsigned lane = threadIdx.x % warp_width;
  // Neighbouring blocks process neighbouring heads of a token; a warp always processes the same head.
  const std::uint32_t heads = of.width / head_size, number = threadIdx.x / warp_width * gridDim.x + blockIdx.x;
  const std::uint32_t tokens_at_once = gridDim.x * stream_warps / heads, head = number % heads;
  const std::uint32_t end = rows.counts->rows;
  std::uint32_t row = number / heads;
  if (number >= tokens_at_once * heads || row >= end) return pdl_wait();
  const std::uint32_t channel = head * head_size + lane * lane_channels;

  const auto head_of = [&](slot_id slot) {
    return reinterpret_cast<Stored*>(static_cast<char*>(of.state) + slot * of.slot_bytes) +
           static_cast<std::size_t>(head) * head_size * head_size;
  };
  const auto slot_of = [&](std::uint32_t of_row) { return of_row < end ? rows.runs[of_row].slot : no_slot; };
  constexpr unsigned part_bytes = sizeof mine.state[0];
  const auto part_of = [&](slot_id slot, unsigned part) {
    return head_of(slot) + part * (part_bytes / sizeof(Stored));
  };
  std::uint32_t turn = 0;  // of the two buffers, counted in parts of heads
  const auto fetch = [&](slot_id slot, unsigned part, std::uint32_t at_turn) {
    if (slot == no_slot) return;
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
  Work work(of, channel);
  pdl_wait();
  work.ask(row);
  for (; row < end; row += tokens_at_once) {
    work.fill(row, mine.tile);
    warp_barrier();
    const std::uint32_t next_row = row + tokens_at_once;
    if (next_row < end) work.ask(next_row);
    const typename Work::keys keys(mine.tile, lane % row_lanes);
    for (unsigned part = 0; part < memory::parts; ++part, ++turn) {
      const bool is_last = part + 1 == memory::parts;
      if (lane == 0) {
        await_sent_bytes();  // from the buffer of the next part
        fetch(is_last ? next_slot : slot, is_last ? 0 : part + 1, turn + 1);
      }
      mine.arrived[turn % 2].wait(turn / 2);
      warp_barrier();
#pragma unroll 1
      for (unsigned i = lane / row_lanes; i < memory::values; i += rows_at_once * row_groups) {
        const rows_of_lane<Stored> some{mine.state[turn % 2], i, lane % row_lanes};
        const float y = work.take(some, &mine.tile.v[0][part * memory::values], keys);
        if (lane % row_lanes < rows_at_once)
          mine.tile.y[0][part * memory::values + i + lane % row_lanes * row_groups] = y;
      }
      publish_for_engine();
      warp_barrier();
      if (lane == 0) {
        send_bytes(part_of(slot, part), mine.state[turn % 2], part_bytes);
        end_sent_bytes();
      }
    }
    work.finish(row, mine.tile);
    slot = next_slot, next_slot = slot_of(next_row + tokens_at_once);
  }
  if (lane == 0) await_written_bytes();
}

/// Launches a kernel of stream_heads whose warps have `warp_bytes` of shared memory each. Errors:
/// unsupported, if the model has too many heads, or an SM too little shared memory.
template <typename Kernel, typename Parameters>
[[nodiscard]] result<void> launch_stream(const char* name, stream_handle in, Kernel kernel, std::size_t warp_bytes,
                                         const device_batch& rows, const Parameters& of) {
  const auto profile = current_profile();
  if (!profile) return profile.error();
  if (of.width / head_size > profile->sm_count * stream_warps)
    return error{error_kind::unsupported, "the model has more heads than the device has warps", ""};
  const std::size_t bytes = stream_warps * warp_bytes;
  if (bytes > profile->shared_bytes_per_block)
    return error{error_kind::unsupported, "the device has too little shared memory", ""};
  if (const auto r = allow_shared_bytes(kernel, bytes); !r)
    return error{error_kind::unsupported, r.error().message, ""};
  return launch({name, {profile->sm_count}, {stream_threads}, bytes, in, true}, kernel, rows, of);
}

}  // namespace skein::kernels::gpu
