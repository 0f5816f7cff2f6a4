#pragma once
#include "kernels/gpu/batch.hpp"
#include "kernels/gpu/runtime/runtime.hpp"
#include "kernels/gpu/sampling.hpp"
#include "kernels/gpu/tick_runner.hpp"

namespace skein::kernels::gpu {

inline constexpr std::uint32_t no_place = 0xffffffff;

/// One row of a tick as the host knows it when it plans: whether the slot is frozen by then only the device knows.
struct planned_row {
  slot_id slot;
  slot_id deciding;         ///< whose budget decides: of a group's first row, else the own
  std::uint32_t first_row;  ///< of the batch
  std::uint32_t rows;
  std::uint32_t chunked;              ///< of them
  std::uint32_t draw;                 ///< index among the tick's wanted rows of the position that is drawn from
  std::uint32_t member;               ///< index among the members of mixtures, or no_place
  std::uint32_t mixture;              ///< of which this is the first row, or no_place
  std::uint32_t wanted;               ///< where further wanted rows begin
  std::uint32_t position, positions;  ///< which of the row's positions they are
  std::uint32_t decodes : 1, samples : 1, draws_alone : 1;
};

/// The first kernel of a tick turns planned rows into what the others read. What the host plans comes from its pinned
/// memory and the status of rows goes there; all else is on the device.
struct preparation {
  const std::uint32_t* planned_counts = nullptr;  ///< pinned; the first is that of planned rows
  const planned_row* rows = nullptr;              ///< pinned
  std::uint32_t count_words = 0;                  ///< a multiple of 4
  slot_record* records = nullptr;                 ///< of all slots; budgets freeze, last tokens are taken
  slot_id spare = 0;  ///< a slot of nobody: where decode rows of frozen slots run, to no effect
  std::uint32_t mixtures_at_once = 1;
  // Written, except for the tokens of other rows than decodes, and members but for their slot.
  std::uint32_t* counts = nullptr;  ///< [count_words] as planned
  token_id* tokens = nullptr;
  sequence_run* runs = nullptr;
  std::uint32_t* run_of_row = nullptr;
  std::uint32_t* wanted_rows = nullptr;
  draw_row* draws = nullptr;          ///< of rows that draw alone; no_slot where nothing is drawn
  mixture_member* members = nullptr;  ///< no_slot likewise
  draw_row* mixture_draws = nullptr;  ///< likewise; mixtures are drawn `mixtures_at_once` at a time
  std::uint32_t* status = nullptr;    ///< pinned; row_status of each row
};
/// `room`: rows that blocks are launched for.
[[nodiscard]] result<void> prepare(stream_handle in, const preparation& of, std::uint32_t room);

}  // namespace skein::kernels::gpu
