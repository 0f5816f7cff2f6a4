#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/memory_plan.hpp"
#include "kernels/gpu/types/gpu_options.hpp"
#include "kernels/gpu/types/sampler_types.hpp"

namespace skein::kernels::gpu {

/// The work of one slot in a tick: engine::row, with the same rules, in the terms of the device.
struct tick_row {
  slot_id slot = 0;
  std::uint32_t first_token = 0;  ///< into tick::tokens
  std::uint32_t tokens = 0;       ///< 0: a decode row, which feeds the slot's last token
  std::uint32_t chunked = 0;      ///< the number of leading tokens that are computed in chunks
  bool sample = false;
  bool sync = false;                       ///< with sample: no token is sampled
  const std::uint32_t* allowed = nullptr;  ///< (vocab + 31) / 32 words, as in sampler::draw; read by launch(). Not for
                                           ///< rows of a group, nor with sync. Null: all tokens
  bool score = false;  ///< scores for the tokens after the first, and for score_next unless it is no_token
  token_id score_next = no_token;
  std::uint32_t score_top = 0;
  std::uint32_t group = 0;
  float weight = 1;
  enum class copies : std::uint8_t { none, last, all } copied = copies::none;
  float* logits = nullptr;  ///< destination of the logits of the last or of all positions; until the tick is complete
};

/// The plan of one tick, in memory of the caller. Contains a slot at most once.
struct tick {
  std::span<const tick_row> rows;
  std::span<const token_id> tokens;
};

/// The status of a row; bits of a word.
enum row_status : std::uint32_t {
  was_frozen = 1,       ///< its slot was frozen when the tick began
  budget_spent = 2,     ///< it samples, but its budget was already spent: its slot is frozen now
  samples = 4,          ///< it samples and is not frozen
  nothing_to_feed = 8,  ///< it is a decode row of a slot that has no last token
};

/// The status and the results of a row. The memory stays valid until the tick after the next is launched.
struct row_outcome {
  std::uint32_t status = 0;                  ///< of row_status
  const sampled_token* sampled = nullptr;    ///< of a row that sampled a token, alone or in its group
  std::span<const token_scores> scores;      ///< of the row's tokens from the second on, and of score_next
  const token_scores* last_score = nullptr;  ///< that of score_next, if it is stored separately
};

/// A sampler's parameters with their lists.
struct sampler_start {
  sampler_settings settings;
  std::span<const bias_entry> bias;
  std::span<const token_id> stop_ids;
};

/// A state and the position of its sampler in pinned memory.
struct staged_state {
  std::span<std::byte> state;  ///< canonical order, the types as in the slot
  sampler_position position;
};

/// The sizes that are fixed at construction.
struct runner_sizes {
  std::size_t state_bytes = 0;  ///< of one state in canonical order
  std::uint32_t state_stages = 0;
  std::uint32_t logit_bias_max = 0;  ///< entries of one sequence, as for stop_ids_max
  std::uint32_t stop_ids_max = 0;
  std::uint32_t chunk_tokens = 0;  ///< 0: no row may be chunked
  memory_plan memory;
  std::uint32_t graphs = 0;    ///< captured CUDA graphs of decode ticks
  double graph_seconds = 0;    ///< that the captures took
  std::string library;         ///< the GEMMs that a matrix library runs, or why none does; empty: none was requested
  double library_seconds = 0;  ///< that measuring it took
};

/// One model on one GPU, tick by tick. All work is queued and runs in the order of the calls. A launched tick needs
/// nothing more from the host: decode rows find their tokens, and whether they have stopped, on the device. Decode
/// ticks, in which all rows only sample, are replayed from CUDA graphs that are captured per size.
///
/// Calls come from one thread at a time. A failed call means that the device is lost; every later call returns the same
/// first error.
class tick_runner {
 public:
  virtual ~tick_runner() = default;
  [[nodiscard]] virtual const runner_sizes& sizes() const = 0;

  /// Starts a fresh sequence.
  [[nodiscard]] virtual result<void> start(slot_id slot, const sampler_start& params) = 0;
  /// Restarts the sampler; state and last token stay.
  [[nodiscard]] virtual result<void> restart_sampler(slot_id slot, const sampler_start& params) = 0;
  /// Copies state, position, last token and frozen flag, but not the parameters.
  [[nodiscard]] virtual result<void> copy_slot(slot_id from, slot_id to) = 0;

  /// The slots' samplers take tokens after the last one, as if they had sampled them.
  [[nodiscard]] virtual result<void> force(std::span<const forced_run> runs) = 0;

  static constexpr std::uint32_t ticks_in_flight_max = 2;
  /// Queues a tick; at most ticks_in_flight_max are launched and not complete (checked). Returns at once, unless logits
  /// go to the host: it waits for those.
  [[nodiscard]] virtual result<void> launch(const tick& plan) = 0;
  /// True if complete() would not wait.
  [[nodiscard]] virtual bool ready() = 0;
  /// Waits for the oldest tick. Returns the outcomes of its rows, in the order of the plan.
  [[nodiscard]] virtual result<std::span<const row_outcome>> complete() = 0;

  /// States are transferred through stages, numbered from 0 to sizes().state_stages - 1. A stage is free, or between
  /// begin_read and end_read, or between begin_write and end_write.
  [[nodiscard]] virtual result<void> begin_read(slot_id slot, std::uint32_t stage) = 0;
  /// True if the state has arrived: end_read() would not wait, or after send(), work queued after end_write() would not
  /// wait.
  [[nodiscard]] virtual bool arrived(std::uint32_t stage) = 0;
  /// Waits until the state has arrived; the memory belongs to the caller until the stage is used again.
  [[nodiscard]] virtual result<staged_state> end_read(std::uint32_t stage) = 0;
  /// Returns memory for a state to be written, after waiting until the previous contents have been sent. The stage is
  /// not free until end_write.
  [[nodiscard]] virtual result<staged_state> begin_write(std::uint32_t stage) = 0;
  /// Sends the state to the device; arrived() turns true when it is there.
  [[nodiscard]] virtual result<void> send(std::uint32_t stage) = 0;
  /// Writes the sent state to the slot; work queued afterwards waits for it.
  [[nodiscard]] virtual result<void> end_write(std::uint32_t stage, slot_id slot) = 0;
  /// Gives the slot's sampler the position that was written into the stage after begin_write; does not change the
  /// state.
  [[nodiscard]] virtual result<void> restore(std::uint32_t stage, slot_id slot, const sampler_start& params) = 0;
  /// Gives the slot's sampler only the penalties, after start or restart_sampler; then the stage may be written again.
  [[nodiscard]] virtual result<void> give_penalties(std::uint32_t stage, slot_id slot) = 0;

  /// Samples a token for a slot from the given logits, `allowed` as in sampler::draw; waits. No tick may be in flight.
  [[nodiscard]] virtual result<sampled_token> sample(slot_id slot, std::span<const float> logits,
                                                     std::span<const std::uint32_t> allowed) = 0;
  /// Waits for all queued work.
  [[nodiscard]] virtual result<void> settle() = 0;
};

/// A model on a GPU, or in the emulator. Allocates all memory; the views may be dropped when this returns.
/// Errors: unsupported (sizes that check_model refuses), bad_file (element types), unavailable
/// (device; memory, with the bytes requested, their purpose and the free bytes).
[[nodiscard]] result<std::unique_ptr<tick_runner>> make_runner(const model_weights& weights,
                                                               const gpu_options& options);

/// The memory that such a runner will take, computed without allocating any. It does not include graphs and the
/// runtime's own code. Errors: as above, except for memory.
[[nodiscard]] result<memory_plan> plan_runner(const model_weights& weights, const gpu_options& options);

}  // namespace skein::kernels::gpu
