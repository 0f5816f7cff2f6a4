#pragma once
#include <span>

#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/time_mix.hpp"

namespace skein::kernels::gpu {

inline constexpr std::uint32_t chunk_tokens = 64;
/// Runs of so many rows are taken in chunks. It hangs on a run's own rows, so company changes no bit of it; where a
/// prompt is cut does.
inline constexpr std::uint32_t chunked_rows_min = 32;

/// A piece of a run.
struct alignas(16) run_chunk {
  slot_id slot;
  std::uint32_t first_row, rows;
  bool begins, ends;  ///< the run
};
/// The pieces of all runs, one run after another; on the device.
struct chunk_list {
  std::uint32_t* count = nullptr;
  run_chunk* chunks = nullptr;
  std::uint32_t* passed = nullptr;  ///< [chunk, head, ...]: states between chunks of a run
};

/// time_mix for long runs, 64 tokens at a time on tensor cores (the idea is in wkv_chunks.cu). It works on the same
/// states as time_mix, which takes the other runs (time_mix_parameters::rows_max); the two may run in either order.
/// Operands have 11 bits and sums 24, so y and states differ from time_mix by about 2^-11 of their size
/// (tests/kernels/gpu/gpu_time_mix_test.cpp has the figures).
class chunked_time_mix {
 public:
  /// Whether the device in use can do it; also readies it.
  [[nodiscard]] static bool available();

  /// For ticks of up to so many rows in so many runs. Takes all memory that it needs; throws device_failure.
  chunked_time_mix(std::uint32_t width, element type, std::uint32_t rows_max, std::uint32_t runs_max);

  /// Once a tick, after its rows were sent: lists the chunks of `rows`. `runs` are the same on the host, for the room.
  [[nodiscard]] result<void> plan(stream_handle in, const device_batch& rows, std::span<const sequence_run> runs);
  /// Whether the tick that was planned has such runs, and others.
  [[nodiscard]] bool has_long_runs() const { return chunks_ > 0; }
  [[nodiscard]] bool has_short_runs() const { return short_runs_; }

  /// One layer.
  [[nodiscard]] result<void> run(stream_handle in, element state_type, const time_mix_parameters& of) const;

  [[nodiscard]] std::size_t bytes() const { return memory_.bytes(); }

 private:
  std::uint32_t heads_;
  element type_;
  std::uint32_t chunks_max_, chunks_ = 0;  ///< chunks_: of the tick that was planned
  device_buffer<std::byte> memory_;
  chunk_list list_;
  bool short_runs_ = true;
};

}  // namespace skein::kernels::gpu
