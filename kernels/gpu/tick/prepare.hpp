#pragma once
#include "kernels/gpu/runtime/runtime.hpp"
#include "kernels/gpu/sampling/sampling.hpp"
#include "kernels/gpu/tick/tick_runner.hpp"
#include "kernels/gpu/types/batch.hpp"

namespace skein::kernels::gpu {

inline constexpr std::uint32_t no_place = 0xffffffff;

/// One row of a tick as the host plans it. Only the device knows whether its slot is frozen by then.
struct planned_row {
  slot_id slot;
  slot_id deciding;         ///< whose budget decides: that of the group's first row, or `slot`
  std::uint32_t first_row;  ///< in the batch
  std::uint32_t rows;
  std::uint32_t chunked;              ///< the number of them that are computed in chunks
  std::uint32_t sample;               ///< index of the sampled position among the tick's wanted rows
  std::uint32_t member;               ///< index among the members of mixtures, or no_place
  std::uint32_t mixture;              ///< mixture whose first row this is, or no_place
  std::uint32_t wanted;               ///< index of the first further wanted row
  std::uint32_t position, positions;  ///< of the further wanted rows: the first position in the row, and their number
  std::uint32_t decodes : 1, samples : 1, samples_alone : 1;
};

/// The first kernel of a tick turns planned rows into the arrays that the other kernels read. The host's plan is in
/// pinned memory, and so is the status of rows; everything else is on the device.
struct preparation {
  const std::uint32_t* planned_counts = nullptr;  ///< pinned; the first is the number of planned rows
  const planned_row* rows = nullptr;              ///< pinned
  std::uint32_t count_words = 0;                  ///< a multiple of 4
  slot_record* records = nullptr;  ///< of all slots; spent budgets freeze slots, last tokens are consumed
  slot_id spare = 0;               ///< an unassigned slot: decode rows of frozen slots run in it, without effect
  std::uint32_t mixtures_at_once = 1;
  // Outputs. Of `tokens` only those of decode rows are written, of `members` only the slots.
  std::uint32_t* counts = nullptr;  ///< [count_words] as planned
  token_id* tokens = nullptr;
  sequence_run* runs = nullptr;
  std::uint32_t* run_of_row = nullptr;
  std::uint32_t* wanted_rows = nullptr;
  sample_row* samples = nullptr;          ///< of rows that sample alone; no_slot if nothing is sampled
  mixture_member* members = nullptr;      ///< no_slot likewise
  sample_row* mixture_samples = nullptr;  ///< likewise; mixtures are sampled `mixtures_at_once` at a time
  std::uint32_t* status = nullptr;        ///< pinned; row_status of each row
};
/// `room`: the number of rows that blocks are launched for.
[[nodiscard]] result<void> prepare(stream_handle in, const preparation& of, std::uint32_t room);

}  // namespace skein::kernels::gpu
