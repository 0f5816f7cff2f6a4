#pragma once
#include <cstdint>
#include <deque>
#include <span>

#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/runtime/stream.hpp"
#include "kernels/gpu/sampler_types.hpp"

/// The samplers of all slots in device memory. A draw is the same function as sampling::sampler::draw, and
/// sequence_slot::accept behind it: equal logits, settings and history give the same token, but for draws whose random
/// number lies within float rounding of the boundary between two tokens.
namespace skein::kernels::gpu {

/// One draw: row `logits_row` of the logits, by and for the sampler of `slot`. With no_slot nothing is done, and the
/// draw's drawn_token stays as it is: a kernel before may have left the reason there.
struct draw_row {
  std::uint32_t logits_row;
  slot_id slot;
};
/// Draws as kernels find them: everything in device memory, no slot twice. `room`: what blocks are launched for, and
/// how many rows may be read, whatever is in those beyond the count.
struct device_draws {
  const std::uint32_t* count = nullptr;
  const draw_row* rows = nullptr;
  std::uint32_t room = 0;
};
/// What is drawn from. All arrays are on the device; those of logits begin at a multiple of 16 bytes.
struct draw_logits {
  float* logits = nullptr;     ///< [rows, vocab]; bias and penalties are applied in place: a row is used up by its draw
  const float* raw = nullptr;  ///< nullptr, or [rows, vocab]: `logits` is a mixture of penalised rows to draw from as
                               ///< it is, and logprobs come from here
  const std::uint32_t* allowed = nullptr;  ///< nullptr, or for each draw (vocab + 31) / 32 words, see sampler::draw
};

/// The log-probability of `token` under row `logits_row`, with `top` alternatives.
struct score_row {
  std::uint32_t logits_row;
  token_id token;
  std::uint32_t top;
};
struct device_scores {
  const std::uint32_t* count = nullptr;
  const score_row* rows = nullptr;
  std::uint32_t room = 0;
};

/// A mixture of states: the rows of a group draw one token from the weighted mean of their logits, see group_mixer.
/// Members of a group lie side by side in the order of the plan; the draw's slot is that of the first.
struct mixture_member {
  std::uint32_t logits_row;
  slot_id slot;
  float share;         ///< row::weight / sum of the group's weights, both as group_mixer computes them
  std::uint32_t draw;  ///< where the member's drawn_token goes in `out` of spread_draws
};
struct mixture {
  std::uint32_t first_member, members;
};
struct device_mixtures {
  const std::uint32_t* count = nullptr;  ///< of mixtures
  const mixture* mixtures = nullptr;
  const mixture_member* members = nullptr;
  std::uint32_t room = 0;
};

struct slot_memory;

/// What the scans of a row of logits have room for.
inline constexpr std::uint32_t vocab_max = 1u << 19;

struct sampler_limits {
  std::uint32_t vocab = 0, slots = 0;
  std::uint32_t rows_max = 0;       ///< draws, or scores, of one launch: the largest room
  std::uint32_t bias_max = 0;       ///< limits.logit_bias_max
  std::uint32_t stop_ids_max = 0;   ///< limits.stop_ids_max
  std::uint32_t penalties_max = 0;  ///< different tokens that one sequence may draw; 0: the vocabulary. One that draws
                                    ///< more leaves the further ones without penalty. Rounded up to a multiple of 4
};

/// Owner of what the samplers of all slots keep on the device. All work is queued in streams; launches of draws, scores
/// and mixtures share scratch memory, so they belong to one stream. They read nothing on the host and may be recorded
/// in a graph. Memory of a slot: 12 bytes for each of penalties_max, 16 for each of bias_max, 4 for each of
/// stop_ids_max. Constructors throw device_failure.
class slot_samplers {
 public:
  explicit slot_samplers(const sampler_limits& limits);

  [[nodiscard]] const sampler_limits& limits() const { return limits_; }

  /// A fresh sequence: nothing drawn, not frozen, no last token. Bias entries outside the vocabulary have no effect;
  /// more entries than the limits are our own mistake (checked). The arguments may go when this returns.
  [[nodiscard]] result<void> start(stream_handle in, slot_id slot, const sampler_settings& settings,
                                   std::span<const bias_entry> bias, std::span<const token_id> stop_ids);
  /// As start, but the last token stays.
  [[nodiscard]] result<void> restart(stream_handle in, slot_id slot, const sampler_settings& settings,
                                     std::span<const bias_entry> bias, std::span<const token_id> stop_ids);
  /// Position, penalties, last token and frozen flag of another slot under the own settings.
  [[nodiscard]] result<void> copy_position(stream_handle in, slot_id from, slot_id to);
  [[nodiscard]] result<void> save(stream_handle in, slot_id slot, const sampler_position& out) const;
  /// start, then position, penalties, last token and frozen flag of `from`.
  [[nodiscard]] result<void> restore(stream_handle in, slot_id slot, const sampler_settings& settings,
                                     std::span<const bias_entry> bias, std::span<const token_id> stop_ids,
                                     const sampler_position& from);
  /// The penalties of `from` in the place of those that the slot has.
  [[nodiscard]] result<void> give_penalties(stream_handle in, slot_id slot, const sampler_position& from);

  /// [slots] for kernels that prepare ticks.
  [[nodiscard]] slot_record* records() const { return records_.data(); }
  [[nodiscard]] std::size_t slot_bytes() const { return slot_bytes(limits_); }
  [[nodiscard]] std::size_t bytes() const;  ///< all device memory
  /// The same before they are made: of one slot, with its record, and of all with what launches share.
  [[nodiscard]] static std::size_t slot_bytes(const sampler_limits& limits);
  [[nodiscard]] static std::size_t planned_bytes(const sampler_limits& limits);

  /// out[i] = what draw i gave, recorded in its slot: penalties, generated, last token, frozen.
  [[nodiscard]] result<void> queue_draws(stream_handle in, const device_draws& draws, const draw_logits& from,
                                         drawn_token* out);
  /// out[i] = score i. Changes nothing, so it goes before the draws of the same logits.
  [[nodiscard]] result<void> queue_scores(stream_handle in, const device_scores& scores, const float* logits,
                                          token_scores* out);
  /// penalised[g], raw[g] : [mixtures, vocab] weighted means over the members of mixture g, the first with bias and
  /// penalties of each member. `logits` stay.
  [[nodiscard]] result<void> queue_mixtures(stream_handle in, const device_mixtures& mixtures, const float* logits,
                                            float* penalised, float* raw);
  /// Gives what mixture g drew (drawn[g], from queue_draws over the mixtures) to its members: records the token in the
  /// slots of all but the first, as sequence_slot::accept with a decided stop, and copies it to out[member.draw] of
  /// all. A mixture whose first slot is no_slot is left out.
  [[nodiscard]] result<void> spread_draws(stream_handle in, const device_mixtures& mixtures, const drawn_token* drawn,
                                          drawn_token* out);

 private:
  enum class last_token_of_start : std::uint8_t { none, stays };
  [[nodiscard]] result<void> upload(stream_handle in, slot_id slot, slot_record record,
                                    std::span<const bias_entry> bias, std::span<const token_id> stop_ids,
                                    last_token_of_start last_token);

  [[nodiscard]] slot_memory memory() const;

  sampler_limits limits_;
  device_buffer<slot_record> records_;      // [slots]
  device_buffer<bias_entry> bias_;          // [slots, bias_max], equal tokens side by side
  device_buffer<token_id> stop_ids_;        // [slots, stop_ids_max]
  device_buffer<token_id> penalty_tokens_;  // [slots, penalties_max]
  device_buffer<float> penalties_;          // parallel
  device_buffer<float> raw_of_bias_;        // parallel to bias_: logits before a draw changed them
  device_buffer<float> raw_of_penalties_;   // parallel to penalties_
  device_buffer<std::byte> scratch_;        // of one launch
  std::deque<event> sent_;                  // [uploads_max(slots)], so that many may start while a tick still runs
  pinned_buffer<std::byte> pinned_;         // parallel: what one start sends
  std::size_t next_upload_ = 0;
};

}  // namespace skein::kernels::gpu
