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

/// The chunks of a tick, for kernels that have a block for each chunk and head of 64.
class chunk_plan {
 public:
  /// For ticks of up to `rows_max` rows in up to `runs_max` runs. Allocates all its memory; throws device_failure.
  chunk_plan(std::uint32_t width, element type, std::uint32_t rows_max, std::uint32_t runs_max);

  /// Lists the chunks of `rows`; once a tick, after its rows were sent. `runs` is the host's copy, which sizes the
  /// launches.
  [[nodiscard]] result<void> plan(stream_handle in, const device_batch& rows, std::span<const sequence_run> runs);
  /// Whether the planned tick has chunked rows, and whether it has others.
  [[nodiscard]] bool has_chunks() const { return chunks_ > 0; }
  [[nodiscard]] bool has_other_rows() const { return other_rows_; }

  [[nodiscard]] std::size_t bytes() const { return memory_.bytes(); }
  /// What bytes() will return, without constructing an object.
  [[nodiscard]] static std::size_t planned_bytes(std::uint32_t width, std::uint32_t rows_max, std::uint32_t runs_max);

 protected:
  [[nodiscard]] std::uint32_t heads() const { return heads_; }
  [[nodiscard]] element type() const { return type_; }
  [[nodiscard]] std::uint32_t chunks() const { return chunks_; }
  [[nodiscard]] const chunk_list& list() const { return list_; }

 private:
  std::uint32_t heads_;
  element type_;
  std::uint32_t chunks_max_, chunks_ = 0;  ///< chunks_: of the planned tick
  device_buffer<std::byte> memory_;
  chunk_list list_;
  bool other_rows_ = true;
};

}  // namespace skein::kernels::gpu
