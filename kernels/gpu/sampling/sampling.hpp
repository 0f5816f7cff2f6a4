#pragma once
#include <cstdint>
#include <deque>
#include <span>

#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/runtime/stream.hpp"
#include "kernels/gpu/types/sampler_types.hpp"

/// The samplers of all slots in device memory. Sampling is the same function as sampling::sampler::draw followed by
/// sequence_slot::accept: equal logits, settings and history give the same token, except if the random number lies
/// within float rounding of the boundary between two tokens.
namespace skein::kernels::gpu {

/// Samples one token: from row `logits_row` of the logits, with the sampler of `slot` and for that slot. With no_slot
/// nothing happens and the sampled_token is left as it is, because an earlier kernel may have written the reason there.
struct sample_row {
  std::uint32_t logits_row;
  slot_id slot;
};
/// Draws as kernels read them: everything in device memory, no slot twice. `room` is the number of rows that blocks are
/// launched for; all of them may be read, whatever those beyond the count contain.
struct device_samples {
  const std::uint32_t* count = nullptr;
  const sample_row* rows = nullptr;
  std::uint32_t room = 0;
};
/// The logits to sample from. All arrays are on the device; those of logits begin at a multiple of 16 bytes.
struct sample_logits {
  float* logits = nullptr;     ///< [rows, vocab]; bias and penalties are applied in place, so sampling consumes a row
  const float* raw = nullptr;  ///< nullptr, or [rows, vocab]: `logits` is a mixture of penalised rows to sample from
                               ///< unchanged, and logprobs come from here
  const std::uint32_t* allowed = nullptr;  ///< nullptr, or (vocab + 31) / 32 words per sample, see sampler::draw
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

/// A mixture of states: the rows of a group sample one token from the weighted mean of their logits, see group_mixer.
/// Members of a group are adjacent, in the order of the plan; the slot that samples is that of the first.
struct mixture_member {
  std::uint32_t logits_row;
  slot_id slot;
  float share;           ///< row::weight / sum of the group's weights, both as group_mixer computes them
  std::uint32_t sample;  ///< index of the member's sampled_token in `out` of spread_samples
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

/// The largest vocabulary that the scans of logits support.
inline constexpr std::uint32_t vocab_max = 1u << 19;

struct sampler_limits {
  std::uint32_t vocab = 0, slots = 0;
  std::uint32_t rows_max = 0;       ///< samples or scores of one launch; the largest `room`
  std::uint32_t bias_max = 0;       ///< limits.logit_bias_max
  std::uint32_t stop_ids_max = 0;   ///< limits.stop_ids_max
  std::uint32_t penalties_max = 0;  ///< distinct tokens with a penalty in one sequence; 0: the vocabulary. Further
                                    ///< tokens that it samples get no penalty. Rounded up to a multiple of 4
};

/// Owns the device memory of the samplers of all slots. All work is queued in streams. Launches of sampling, scores and
/// mixtures share scratch memory, so they must use one stream. They read nothing on the host and may be captured in a
/// CUDA graph. Memory per slot: 12 bytes for each of penalties_max, 16 for each of bias_max, 4 for each of
/// stop_ids_max. Constructors throw device_failure.
class slot_samplers {
 public:
  explicit slot_samplers(const sampler_limits& limits);

  [[nodiscard]] const sampler_limits& limits() const { return limits_; }

  /// Starts a fresh sequence: nothing sampled, not frozen, no last token. Bias entries outside the vocabulary have no
  /// effect; more entries than the limits allow are a bug in the caller (checked). The arguments may be destroyed when
  /// this returns.
  [[nodiscard]] result<void> start(stream_handle in, slot_id slot, const sampler_settings& settings,
                                   std::span<const bias_entry> bias, std::span<const token_id> stop_ids);
  /// As start, but keeps the last token.
  [[nodiscard]] result<void> restart(stream_handle in, slot_id slot, const sampler_settings& settings,
                                     std::span<const bias_entry> bias, std::span<const token_id> stop_ids);
  /// Copies position, penalties, last token and frozen flag of another slot; the settings of `to` stay.
  [[nodiscard]] result<void> copy_position(stream_handle in, slot_id from, slot_id to);
  [[nodiscard]] result<void> save(stream_handle in, slot_id slot, const sampler_position& out) const;
  /// start, then position, penalties, last token and frozen flag of `from`.
  [[nodiscard]] result<void> restore(stream_handle in, slot_id slot, const sampler_settings& settings,
                                     std::span<const bias_entry> bias, std::span<const token_id> stop_ids,
                                     const sampler_position& from);
  /// Replaces the penalties of the slot by those of `from`.
  [[nodiscard]] result<void> give_penalties(stream_handle in, slot_id slot, const sampler_position& from);

  /// [slots], for kernels that prepare ticks.
  [[nodiscard]] slot_record* records() const { return records_.data(); }
  [[nodiscard]] std::size_t slot_bytes() const { return slot_bytes(limits_); }
  [[nodiscard]] std::size_t bytes() const;  ///< all device memory
  /// The same without constructing one: per slot, including its record, and in total, including scratch memory.
  [[nodiscard]] static std::size_t slot_bytes(const sampler_limits& limits);
  [[nodiscard]] static std::size_t planned_bytes(const sampler_limits& limits);

  /// out[i] = the token sampled for draw i, recorded in its slot: penalties, generated, last token, frozen.
  [[nodiscard]] result<void> queue_samples(stream_handle in, const device_samples& samples, const sample_logits& from,
                                           sampled_token* out);
  /// out[i] = score i. Changes nothing; queue_samples changes the logits, so scores of the same logits go first.
  [[nodiscard]] result<void> queue_scores(stream_handle in, const device_scores& scores, const float* logits,
                                          token_scores* out);
  /// penalised[g], raw[g] : [mixtures, vocab] weighted means over the members of mixture g; `penalised` includes bias
  /// and penalties of each member. `logits` are unchanged.
  [[nodiscard]] result<void> queue_mixtures(stream_handle in, const device_mixtures& mixtures, const float* logits,
                                            float* penalised, float* raw);
  /// The samplers of these slots take tokens: penalties, generated, last token, frozen. No slot twice.
  [[nodiscard]] result<void> force(stream_handle in, std::span<const forced_run> runs);
  /// Gives the token of mixture g (drawn[g], from queue_samples over the mixtures) to its members: records it in the
  /// slots of all but the first, as sequence_slot::accept with a decided stop, and copies it to out[member.draw] of
  /// all. Skips a mixture whose first slot is no_slot.
  [[nodiscard]] result<void> spread_samples(stream_handle in, const device_mixtures& mixtures,
                                            const sampled_token* sampled, sampled_token* out);

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
  device_buffer<float> raw_of_bias_;        // parallel to bias_: logits before sampling changed them
  device_buffer<float> raw_of_penalties_;   // parallel to penalties_
  device_buffer<std::byte> scratch_;        // of one launch
  std::deque<event> sent_;                  // [uploads_max(slots)], so that many slots may start while a tick runs
  pinned_buffer<std::byte> pinned_;         // parallel: the data of one start
  std::size_t next_upload_ = 0;
};

}  // namespace skein::kernels::gpu
