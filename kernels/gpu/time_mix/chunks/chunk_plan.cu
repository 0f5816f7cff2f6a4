// Lists the chunks of a tick on the device, in one block.
#include "kernels/gpu/time_mix/chunks/chunk_plan.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "kernels/gpu/runtime/stream.hpp"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned plan_threads = 256;

__host__ __device__ std::uint32_t chunks_of(const sequence_run& run) {
  return (run.chunked + chunk_tokens - 1) / chunk_tokens;
}

__global__ void __launch_bounds__(plan_threads) plan_kernel(device_batch rows, chunk_list list) {
  __shared__ std::uint32_t chunks[plan_threads];
  std::uint32_t done = 0;
  for (std::uint32_t first = 0; first < rows.counts->runs; first += plan_threads) {
    const std::uint32_t i = first + threadIdx.x;
    sequence_run run{};
    if (i < rows.counts->runs) run = rows.runs[i];
    __syncthreads();  // the previous counts have been read
    chunks[threadIdx.x] = chunks_of(run);
    __syncthreads();
    std::uint32_t before = done;
    for (unsigned j = 0; j < plan_threads; ++j) {
      done += chunks[j];
      if (j < threadIdx.x) before += chunks[j];
    }
    for (std::uint32_t c = 0; c < chunks[threadIdx.x]; ++c) {
      const std::uint32_t taken = c * chunk_tokens, left = run.chunked - taken;
      list.chunks[before + c] = {run.slot, run.first_row + taken, left < chunk_tokens ? left : chunk_tokens, c == 0,
                                 c + 1 == chunks[threadIdx.x]};
    }
  }
  if (threadIdx.x == 0) *list.count = done;
}

std::uint32_t room_for_chunks(std::uint32_t rows, std::uint32_t runs) {
  const std::uint32_t long_runs = std::min(rows / chunked_rows_min, runs);
  return std::min(rows / chunked_rows_min, rows / chunk_tokens + long_runs);
}

constexpr std::size_t part_bytes(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// The size of a chunk_list whose arrays follow each other.
std::size_t list_bytes(std::size_t chunks, std::size_t heads) {
  return part_bytes(sizeof *chunk_list::count) + part_bytes(chunks * sizeof *chunk_list::chunks) +
         part_bytes(chunks * heads * head_size * head_size * sizeof *chunk_list::passed);
}

}  // namespace

std::size_t chunk_plan::planned_bytes(std::uint32_t width, std::uint32_t rows_max, std::uint32_t runs_max) {
  return list_bytes(room_for_chunks(rows_max, runs_max), width / head_size);
}

chunk_plan::chunk_plan(std::uint32_t width, element type, std::uint32_t rows_max, std::uint32_t runs_max)
    : heads_(width / head_size),
      type_(type),
      chunks_max_(room_for_chunks(rows_max, runs_max)),
      memory_(planned_bytes(width, rows_max, runs_max)) {
  std::byte* at = memory_.data();
  list_.count = reinterpret_cast<std::uint32_t*>(at);
  at += part_bytes(sizeof *list_.count);
  list_.chunks = reinterpret_cast<run_chunk*>(at);
  at += part_bytes(chunks_max_ * sizeof *list_.chunks);
  list_.passed = reinterpret_cast<std::uint32_t*>(at);
  const stream in;
  if (auto r = fill_with_zeros(memory_.data(), memory_.bytes(), in); !r) throw device_failure(r.error());
  if (auto r = in.synchronize(); !r) throw device_failure(r.error());
}

result<void> chunk_plan::plan(stream_handle in, const device_batch& rows, std::span<const sequence_run> runs) {
  chunks_ = 0;
  other_rows_ = false;
  for (const sequence_run& run : runs) {
    chunks_ += chunks_of(run);
    other_rows_ |= run.rows > run.chunked;
  }
  check(chunks_ <= chunks_max_);
  if (!has_chunks()) return {};
  return launch({"plan_chunks", {1}, {plan_threads}, 0, in}, plan_kernel, rows, list_);
}

}  // namespace skein::kernels::gpu
