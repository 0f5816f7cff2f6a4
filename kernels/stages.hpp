#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "base/ids.hpp"
#include "base/memory_plan.hpp"
#include "base/result.hpp"

/// The boundary between the model recipe and the arithmetic. The recipe (src/model/forward.cpp) is a short list of the
/// stages below; a back end implements each stage, fused as it likes. kernels/reference composes every stage from the
/// plain primitives of ops.hpp and is the judge of the others.
///
/// Work runs over packed rows: all tokens of a tick back to back, [rows, C], no padding. Token shift and the state
/// update run per sequence run. Letters: C width of the residual stream, A of the attention, F of the
/// feed-forward, V vocabulary, H heads, N head size, T rows of the batch.
namespace skein::kernels {

/// Consecutive rows of one sequence. A batch names a slot at most once.
struct sequence_run {
  slot_id slot;
  std::uint32_t first_row;
  std::uint32_t rows;         ///< at least 1
  std::uint32_t chunked = 0;  ///< its first rows that go in chunks (chunk_plan.hpp); 0 where there are none
};

/// The rows of one tick; the memory belongs to the caller and outlives the calls that get it.
struct batch {
  std::span<const token_id> tokens;    ///< [T], each in 0 .. V-1 (checked when the tick was planned)
  std::span<const sequence_run> runs;  ///< cover all rows, in order
};

/// One model on one device: weights, activations for `max_rows` rows and the states of `slots` sequences, all allocated
/// when it is made. Calls come from one thread, in the order of the recipe; a stage reads what the stage before left.
///
/// Promise 2 of the design: what a row and its state become depends on the tokens of its own sequence only, bit for
/// bit: not on other rows of the batch, not on how the sequence was cut into runs, not on the number of threads.
class stages {
 public:
  virtual ~stages() = default;

  /// x[t] = layer_norm(emb[token[t]], ln0)
  virtual void embed(const batch& rows) = 0;
  /// ln1, token shift, the projections r k v (and the gate of versions 5 and 6) and the first halves of the low-rank
  /// pairs; stores the new att.x_prev.
  virtual void time_mix_in(std::uint32_t layer, const batch& rows) = 0;
  /// Second halves of the low-rank pairs, the wkv state update with its bonus, group norm (not in version 4) and gate.
  virtual void time_mix_state(std::uint32_t layer, const batch& rows) = 0;
  /// x += output projection
  virtual void time_mix_out(std::uint32_t layer, const batch& rows) = 0;
  /// ln2, token shift, key projection and relu squared, before version 7 the receptance; stores the new ffn.x_prev.
  virtual void channel_mix_in(std::uint32_t layer, const batch& rows) = 0;
  /// x += value projection, before version 7 times the receptance
  virtual void channel_mix_out(std::uint32_t layer, const batch& rows) = 0;
  /// logits[i] = head * layer_norm(x[wanted[i]], ln_out) for each wanted row; logits is [wanted.size(), V] fp32.
  /// `wanted` may be in any order; at most `max_logit_rows`, and `max_rows`, rows (checked).
  virtual void head(const batch& rows, std::span<const std::uint32_t> wanted, std::span<float> logits) = 0;

  /// State of a slot in the canonical order of model/state_layout: state_floats() fp32 values.
  [[nodiscard]] virtual std::size_t state_floats() const = 0;
  virtual void clear_state(slot_id slot) = 0;  ///< to the model's initial state (zeros, or its own time_state)
  virtual void copy_state(slot_id from, slot_id to) = 0;
  virtual void read_state(slot_id slot, std::span<float> out) const = 0;
  virtual void write_state(slot_id slot, std::span<const float> in) = 0;

  /// Runs body(begin, end) over disjoint pieces of 0 .. count on the back end's threads and returns when all are done.
  /// For host work of the tick that belongs on the same cores (sampling).
  using range_body = void (*)(void* context, std::size_t begin, std::size_t end);
  virtual void parallel_for(std::size_t count, range_body body, void* context) = 0;

  /// Waits for what was asked so far. An error means that the device is lost and every answer since the last success is
  /// worthless; no call should follow.
  [[nodiscard]] virtual result<void> status() const { return {}; }

  /// What was taken when they were made; a slot's bytes are those of its state.
  [[nodiscard]] virtual memory_plan memory() const = 0;
};

/// How much of everything a back end allocates.
struct stage_limits {
  std::uint32_t slots = 1;            ///< sequences resident at once
  std::uint32_t max_rows = 512;       ///< rows of the largest tick
  std::uint32_t max_logit_rows = 64;  ///< rows of the largest head call
  std::uint32_t threads = 0;          ///< 0: as many as the process may use
};

}  // namespace skein::kernels
