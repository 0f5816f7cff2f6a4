// Turns planned rows into the rows of a tick. Only the device knows whether a slot is frozen and which token it sampled
// last, because the previous tick may still be sampling when the host writes the plan. A block is one row, and one more
// copies the counts to the device. A block issues all its loads of the plan at once, because access to host memory
// takes longer than anything else here.
#include "kernels/gpu/tick/prepare.hpp"

#include "base/check.hpp"
#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/device/vec.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned prepare_threads = 64;

// The rules of engine::row for slots that stop. Reads only fields of the deciding slot that no row of this tick
// changes.
__device__ std::uint32_t admit(const planned_row& row, slot_record& record, const slot_record& deciding) {
  std::uint32_t status = record.frozen != 0 ? was_frozen : 0u;
  if (row.samples && status == 0 && deciding.generated >= deciding.settings.max_tokens) {
    record.frozen = 1;
    status |= budget_spent;
  }
  if (row.samples && status == 0) status |= samples;
  return status;
}

__device__ void place(const preparation& of, std::uint32_t i, const planned_row& row) {
  slot_record& record = of.records[row.slot];
  std::uint32_t status = admit(row, record, of.records[row.deciding]);
  const bool idle = row.decodes && (status & (was_frozen | budget_spent)) != 0;
  if (!idle) {  // feeding consumes the last token
    const token_id last = record.last_token;
    record.last_token = no_token;
    if (row.decodes && last == no_token) status |= nothing_to_feed;
    if (row.decodes) of.tokens[row.first_row] = last == no_token ? 0 : last;
  } else {
    of.tokens[row.first_row] = 0;
  }
  of.runs[i] = {idle ? of.spare : row.slot, row.first_row, row.rows, row.chunked};
  of.status[i] = status;

  const slot_id sampling = (status & samples) != 0 ? row.slot : no_slot;
  if (row.sample != no_place) of.wanted_rows[row.sample] = row.first_row + row.rows - 1;
  if (row.samples_alone) of.samples[row.sample] = {row.sample, sampling};
  if (row.member != no_place) of.members[row.member].slot = sampling;
  if (row.mixture != no_place) of.mixture_samples[row.mixture] = {row.mixture % of.mixtures_at_once, sampling};
}

__device__ void copy_counts(const preparation& of) {
  constexpr unsigned size = packet<std::uint32_t>::size;
  for (std::uint32_t c = threadIdx.x * size; c < of.count_words; c += prepare_threads * size)
    store_packet(of.counts + c, load_packet(of.planned_counts + c));
}

__global__ void __launch_bounds__(prepare_threads) prepare_kernel(preparation of) {
  constexpr unsigned row_words = sizeof(planned_row) / sizeof(std::uint32_t);
  static_assert(row_words <= prepare_threads);
  __shared__ planned_row row;
  pdl_launch_dependents();
  const std::uint32_t i = blockIdx.x;
  if (i == gridDim.x - 1) return copy_counts(of);
  const std::uint32_t count = of.planned_counts[0];
  if (threadIdx.x < row_words)
    reinterpret_cast<std::uint32_t*>(&row)[threadIdx.x] =
        reinterpret_cast<const std::uint32_t*>(of.rows + i)[threadIdx.x];
  __syncthreads();
  if (i >= count) return;
  if (threadIdx.x == 0) place(of, i, row);
  for (std::uint32_t t = threadIdx.x; t < row.rows; t += prepare_threads) of.run_of_row[row.first_row + t] = i;
  for (std::uint32_t t = threadIdx.x; t < row.positions; t += prepare_threads)
    of.wanted_rows[row.wanted + t] = row.first_row + row.position + t;
}

}  // namespace

result<void> prepare(stream_handle in, const preparation& of, std::uint32_t room) {
  static_assert(sizeof(packet<std::uint32_t>) == 16);
  check(of.count_words % packet<std::uint32_t>::size == 0);
  return launch({"prepare", {room + 1}, {prepare_threads}, 0, in}, prepare_kernel, of);
}

}  // namespace skein::kernels::gpu
