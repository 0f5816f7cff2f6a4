#pragma once
#include <span>

#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/time_mix/time_mix.hpp"

namespace skein::kernels::gpu {

inline constexpr std::uint32_t chunk_tokens = 64;
/// sequence_run::chunked is a number of whole chunks, plus possibly a last one of at least this many tokens. The bits
/// of a row depend on whether it is in a chunk, so the plan chooses the chunks by the prompt alone
/// (engine/prompt_parts.hpp).
inline constexpr std::uint32_t chunked_rows_min = chunk_tokens / 2;

/// One chunk of a run.
struct alignas(16) run_chunk {
  slot_id slot;
  std::uint32_t first_row, rows;
  bool begins, ends;  ///< whether it is the first and the last chunk of its run
};
/// The chunks of all runs, run by run; on the device.
struct chunk_list {
  std::uint32_t* count = nullptr;
  run_chunk* chunks = nullptr;
  std::uint32_t* passed = nullptr;  ///< [chunk, head, ...]: states passed between the chunks of a run
};

/// time_mix for the chunked rows of runs, 64 tokens at a time on tensor cores (wkv_chunks.cu explains the algorithm).
/// time_mix processes the remaining rows afterwards. After every chunk the state is stored, or passed on exactly as it
/// would be stored, so runs may be cut between chunks. Operands have 11 bits and sums 24, so y and states differ from
/// time_mix by about 2^-11 of their size (measured in tests/kernels/gpu/gpu_time_mix_test.cpp).
class chunked_time_mix {
 public:
  /// Whether the current device supports it; also prepares the kernels.
  [[nodiscard]] static bool available();

  /// For ticks of up to `rows_max` rows in up to `runs_max` runs. Allocates all its memory; throws device_failure.
  chunked_time_mix(std::uint32_t width, element type, std::uint32_t rows_max, std::uint32_t runs_max);

  /// Lists the chunks of `rows`; once a tick, after its rows were sent. `runs` is the host's copy, which sizes the
  /// launches.
  [[nodiscard]] result<void> plan(stream_handle in, const device_batch& rows, std::span<const sequence_run> runs);
  /// Whether the planned tick has chunked rows, and whether it has others.
  [[nodiscard]] bool has_chunks() const { return chunks_ > 0; }
  [[nodiscard]] bool has_other_rows() const { return other_rows_; }

  /// Runs one layer.
  [[nodiscard]] result<void> run(stream_handle in, element state_type, const time_mix_parameters& of) const;

  [[nodiscard]] std::size_t bytes() const { return memory_.bytes(); }
  /// What bytes() will return, without constructing an object.
  [[nodiscard]] static std::size_t planned_bytes(std::uint32_t width, std::uint32_t rows_max, std::uint32_t runs_max);

 private:
  std::uint32_t heads_;
  element type_;
  std::uint32_t chunks_max_, chunks_ = 0;  ///< chunks_: of the planned tick
  device_buffer<std::byte> memory_;
  chunk_list list_;
  bool other_rows_ = true;
};

}  // namespace skein::kernels::gpu
