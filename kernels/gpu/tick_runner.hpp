#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/memory_plan.hpp"
#include "kernels/gpu/gpu_options.hpp"
#include "kernels/gpu/sampler_types.hpp"

namespace skein::kernels::gpu {

/// What one slot does in a tick: engine::row, whose rules hold, in the words of the device.
struct tick_row {
  slot_id slot = 0;
  std::uint32_t first_token = 0;  ///< into tick::tokens
  std::uint32_t tokens = 0;       ///< 0: a decode row, which feeds the slot's last token
  std::uint32_t chunked = 0;      ///< the first tokens of the row that go in chunks
  bool sample = false;
  bool sync = false;   ///< with sample: nothing is drawn
  bool score = false;  ///< scores for the tokens after the first, and for score_next unless it is no_token
  token_id score_next = no_token;
  std::uint32_t score_top = 0;
  std::uint32_t group = 0;
  float weight = 1;
  enum class copies : std::uint8_t { none, last, all } copied = copies::none;
  float* logits = nullptr;  ///< where logits of the last or of all positions go; stays until the tick is complete
};

/// The plan of one tick; the memory belongs to the caller. Names a slot at most once.
struct tick {
  std::span<const tick_row> rows;
  std::span<const token_id> tokens;
};

/// What became of a row; bits of a word.
enum row_status : std::uint32_t {
  was_frozen = 1,       ///< when the tick began
  budget_spent = 2,     ///< it samples, and its budget had been spent before: it is frozen now
  draws = 4,            ///< it samples and is not frozen
  nothing_to_feed = 8,  ///< a decode row of a slot that has no last token
};

/// What became of a row, with its results. The memory stays until the tick after the next is launched.
struct row_outcome {
  std::uint32_t status = 0;                  ///< of row_status
  const drawn_token* drawn = nullptr;        ///< of a row that drew a token, alone or in its group
  std::span<const token_scores> scores;      ///< of the row's tokens from the second on, and of score_next
  const token_scores* last_score = nullptr;  ///< that of score_next, where it lies apart
};

/// A sampler's parameters with their lists.
struct sampler_start {
  sampler_settings settings;
  std::span<const bias_entry> bias;
  std::span<const token_id> stop_ids;
};

/// A state and the position of its sampler in pinned memory.
struct staged_state {
  std::span<float> state;  ///< canonical order
  sampler_position position;
};

/// What was taken when it was made.
struct runner_sizes {
  std::size_t state_floats = 0;
  std::uint32_t state_stages = 0;
  std::uint32_t logit_bias_max = 0;  ///< entries of one sequence, as are the next
  std::uint32_t stop_ids_max = 0;
  std::uint32_t chunk_tokens = 0;  ///< 0: no row may be chunked
  memory_plan memory;
  std::uint32_t graphs = 0;    ///< recorded decode ticks
  double graph_seconds = 0;    ///< what recording took
  std::string library;         ///< what a matrix library multiplies, or why none does; empty: none was wished for
  double library_seconds = 0;  ///< what measuring it took
};

/// One model on one GPU, tick by tick. Everything is queued and runs in the order of the calls; a tick needs nothing
/// from the host once it is launched: decode rows find their tokens, and whether they have stopped, on the device.
/// Decode ticks, in which all rows only draw, are replayed from graphs recorded per size.
///
/// Calls come from one thread at a time. A failed call means that the device is lost; every later one gives the same
/// first error.
class tick_runner {
 public:
  virtual ~tick_runner() = default;
  [[nodiscard]] virtual const runner_sizes& sizes() const = 0;

  /// A fresh sequence.
  [[nodiscard]] virtual result<void> start(slot_id slot, const sampler_start& params) = 0;
  /// The sampler anew; state and last token stay.
  [[nodiscard]] virtual result<void> restart_sampler(slot_id slot, const sampler_start& params) = 0;
  /// State, position, last token and frozen flag, not the parameters.
  [[nodiscard]] virtual result<void> copy_slot(slot_id from, slot_id to) = 0;

  static constexpr std::uint32_t ticks_in_flight_max = 2;
  /// Queues a tick; at most ticks_in_flight_max are launched and not complete (checked). Returns at once, but where
  /// logits go to the host, which are waited for.
  [[nodiscard]] virtual result<void> launch(const tick& plan) = 0;
  /// True when complete() would not wait.
  [[nodiscard]] virtual bool ready() = 0;
  /// Waits for the oldest tick. What became of its rows, in the order of the plan.
  [[nodiscard]] virtual result<std::span<const row_outcome>> complete() = 0;

  /// States travel through stages, numbered from 0 to sizes().state_stages - 1. A stage is free, or between begin_read
  /// and end_read, or between begin_write and end_write.
  [[nodiscard]] virtual result<void> begin_read(slot_id slot, std::uint32_t stage) = 0;
  /// True when the state is at the other end: end_read() would not wait, and after send() nothing waits behind
  /// end_write().
  [[nodiscard]] virtual bool arrived(std::uint32_t stage) = 0;
  /// Waits until the slot has arrived; the memory is the caller's until the stage is used again.
  [[nodiscard]] virtual result<staged_state> end_read(std::uint32_t stage) = 0;
  /// Memory for a state to be written; waits until what was written through it before has left. Until end_write the
  /// stage is not free.
  [[nodiscard]] virtual result<staged_state> begin_write(std::uint32_t stage) = 0;
  /// Sends the state to the device; arrived() is true when it is there.
  [[nodiscard]] virtual result<void> send(std::uint32_t stage) = 0;
  /// Writes the state that was sent: what is queued behind waits for it.
  [[nodiscard]] virtual result<void> end_write(std::uint32_t stage, slot_id slot) = 0;
  /// Gives the slot's sampler the position that was put into the stage after begin_write; the state is another matter.
  [[nodiscard]] virtual result<void> restore(std::uint32_t stage, slot_id slot, const sampler_start& params) = 0;
  /// Only the penalties, behind start or restart_sampler; the stage may be written again.
  [[nodiscard]] virtual result<void> give_penalties(std::uint32_t stage, slot_id slot) = 0;

  /// Draws for a slot from given logits, `allowed` as in sampler::draw; waits. No tick is in flight.
  [[nodiscard]] virtual result<drawn_token> draw(slot_id slot, std::span<const float> logits,
                                                 std::span<const std::uint32_t> allowed) = 0;
  /// Waits for everything.
  [[nodiscard]] virtual result<void> settle() = 0;
};

/// RWKV-7 on a GPU, or in the emulator. All memory is taken here; the views may be dropped when this returns.
/// Errors: unsupported (sizes that check_model refuses), bad_file (element types), unavailable (device, memory: how
/// much was asked for, what for, what was free).
[[nodiscard]] result<std::unique_ptr<tick_runner>> make_gpu_rwkv7(const rwkv7_weights& weights,
                                                                  const gpu_options& options);

/// The memory that such a runner will take, found without taking any. What graphs and the runtime's own code take is
/// not in it. Errors: as above, without those of memory.
[[nodiscard]] result<memory_plan> plan_gpu_rwkv7(const rwkv7_weights& weights, const gpu_options& options);

}  // namespace skein::kernels::gpu
