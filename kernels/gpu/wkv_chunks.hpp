#pragma once
#include <span>

#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/time_mix.hpp"

namespace skein::kernels::gpu {

inline constexpr std::uint32_t chunk_tokens = 64;
/// sequence_run::chunked is a number of whole chunks, and perhaps a last one of at least this many. Which rows go in
/// chunks decides their bits, so the plan says it, by the prompt alone (engine/prompt_parts.hpp).
inline constexpr std::uint32_t chunked_rows_min = chunk_tokens / 2;

/// A piece of a run.
struct alignas(16) run_chunk {
  slot_id slot;
  std::uint32_t first_row, rows;
  bool begins, ends;  ///< the run's chunked rows
};
/// The pieces of all runs, one run after another; on the device.
struct chunk_list {
  std::uint32_t* count = nullptr;
  run_chunk* chunks = nullptr;
  std::uint32_t* passed = nullptr;  ///< [chunk, head, ...]: states between chunks of a run
};

/// time_mix for the chunked rows of runs, 64 tokens at a time on tensor cores (the idea is in wkv_chunks.cu). time_mix
/// takes the rows behind them, after it. A state is stored, or passed on as it would be stored, after every chunk, so
/// that runs may be cut between chunks. Operands have 11 bits and sums 24, so y and states differ from time_mix by
/// about 2^-11 of their size (tests/kernels/gpu/gpu_time_mix_test.cpp has the figures).
class chunked_time_mix {
 public:
  /// Whether the device in use can do it; also readies it.
  [[nodiscard]] static bool available();

  /// For ticks of up to so many rows in so many runs. Takes all memory that it needs; throws device_failure.
  chunked_time_mix(std::uint32_t width, element type, std::uint32_t rows_max, std::uint32_t runs_max);

  /// Once a tick, after its rows were sent: lists the chunks of `rows`. `runs` are the same on the host, for the room.
  [[nodiscard]] result<void> plan(stream_handle in, const device_batch& rows, std::span<const sequence_run> runs);
  /// Whether the tick that was planned has such rows, and others.
  [[nodiscard]] bool has_chunks() const { return chunks_ > 0; }
  [[nodiscard]] bool has_other_rows() const { return other_rows_; }

  /// One layer.
  [[nodiscard]] result<void> run(stream_handle in, element state_type, const time_mix_parameters& of) const;

  [[nodiscard]] std::size_t bytes() const { return memory_.bytes(); }
  /// The same before one is made.
  [[nodiscard]] static std::size_t planned_bytes(std::uint32_t width, std::uint32_t rows_max, std::uint32_t runs_max);

 private:
  std::uint32_t heads_;
  element type_;
  std::uint32_t chunks_max_, chunks_ = 0;  ///< chunks_: of the tick that was planned
  device_buffer<std::byte> memory_;
  chunk_list list_;
  bool other_rows_ = true;
};

}  // namespace skein::kernels::gpu
