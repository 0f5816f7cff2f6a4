#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/memory_plan.hpp"
#include "base/result.hpp"
#include "model/state_value.hpp"
#include "sampling/sampler.hpp"
#include "sampling/sampling_params.hpp"

/// The interface of a back end. An engine is one model on one device. It works asynchronously and in order: every call
/// below queues a command, and commands run one after another. collect() returns a tick's results; the device actor
/// calls it while the next tick already runs.
namespace skein::engine {

struct engine_info {
  std::string device;          ///< "cpu", "fake", "cuda:0 NVIDIA H200", ...
  std::string model_identity;  ///< hash over all tensors and the vocabulary
  std::string weight_type;     ///< "bf16", ...
  std::uint32_t vocab = 0;
  std::uint32_t slots = 0;
  std::uint32_t max_tick_tokens = 0;  ///< limit on the tokens of one tick
  std::uint32_t max_tick_rows = 0;    ///< limit on the rows of one tick, and on its sampled rows
  std::uint32_t ticks_in_flight_max = 2;
  std::uint32_t leaving_max = ~0u;  ///< limit on states being copied out at a time: one more, and all commands queued
                                    ///< after it, wait for the first of them
  std::uint32_t coming_max = ~0u;   ///< limit on states being copied into slots, likewise
  std::uint32_t chunk_tokens = 0;   ///< tokens of a chunk, below max_tick_tokens; 0: the engine has no chunks and
                                    ///< row::chunked is 0
  sampling::row_limits row_max;     ///< limits on the parameters passed to start, restart_sampler and unpark
  std::uint32_t top_logprobs_max = sampling::top_logprobs_max;  ///< limit on sampling_params::top_logprobs and
                                                                ///< row::score_top
  std::uint32_t prompt_tokens_max = 1u << 30;                   ///< of one sequence: token counts have 32 bits
  bool constrains = false;                                      ///< rows may have sampling_params::rule
  std::uint32_t forced_max = 0;                                 ///< limit on row_result::forced
  bool rules_wait = false;    ///< then a row with a rule samples only when its last token was collected, and not in a
                              ///< group
  model::state_format state;  ///< of the states that park and read_state copy out, the types as in the slots
  memory_plan memory;         ///< allocated at the start and held to the end
};

enum class row_kind : std::uint8_t {
  prefill,  ///< feed `tokens`
  decode,   ///< feed the slot's last tokens: the sampled one and those that its constraint forced after it; no-op in a
            ///< frozen slot
  score,    ///< feed `tokens` and return the log-probability of each given the state and its predecessors in this row,
            ///< with row::score_top alternatives
};

enum class logits_wanted : std::uint8_t { none, last, all };

/// Usual value of engine_info::forced_max.
inline constexpr std::uint32_t usual_forced_max = 16;

/// The work of one slot in a tick. A tick names a slot at most once.
///
/// A slot freezes when it samples a stop id or reaches its token budget. A frozen slot samples nothing until start,
/// restart_sampler or unpark; prefill and score rows still feed it. A slot whose budget is already spent (max_tokens 0,
/// or a copied position) freezes at its first row with sample: a prefill feeds its tokens, a decode feeds nothing, and
/// no token is sampled. A sampled token is fed once: a row that feeds without sampling leaves no last token to decode.
///
/// Where the constraint of a row allows one token only (token_rule::forced), the engine takes that token at once, in
/// the tick that sampled the one before, and reports it in row_result::forced. The next decode row feeds all of them: a
/// run of tokens costs one tick. In a plan it counts as one token. If a tick has no room for the others beyond
/// engine_info::max_tick_tokens, the row feeds as many as fit, samples nothing, and the next one continues. Tokens,
/// states and random numbers are those of an engine that samples each token in a tick of its own.
struct row {
  slot_id slot = 0;
  row_kind kind = row_kind::decode;
  std::uint32_t first_token = 0;   ///< into tick_plan::tokens (prefill, score)
  std::uint32_t tokens = 0;        ///< at least 1 for prefill and score, 0 for decode
  std::uint32_t chunked = 0;       ///< how many of them, from the first, are computed in chunks of
                                   ///< engine_info::chunk_tokens, which is faster; the last chunk may be smaller, by
                                   ///< half at most. The assignment of tokens to chunks affects the bits of the result;
                                   ///< row boundaries between chunks do not (prompt_parts.hpp)
  bool sample = false;             ///< sample a token after the row's last position
  std::uint32_t score_top = 0;     ///< score: alternatives to report for each token
  bool sync = false;               ///< with sample: stop before sampling; the host reads the logits and calls draw()
  token_id score_next = no_token;  ///< score: the token that follows the row, so that its last position is scored too
  logits_wanted logits = logits_wanted::none;  ///< copy logits into the result (tools and tests)
  std::uint32_t group = 0;  ///< rows of one non-zero group sample one token from the weighted sum of their logits, with
                            ///< the sampler of the group's first row; it becomes the last token of all. That sampler's
                            ///< stop ids and budget apply to all: a group freezes as one. Needs sample without sync
  float weight = 1.0f;      ///< above 0; weight in the group's sum; the engine divides by the sum of weights
};

struct tick_plan {
  std::vector<row> rows;
  std::vector<token_id> tokens;
  void clear() {
    rows.clear();
    tokens.clear();
  }
};

enum class stop_cause : std::uint8_t {
  none,
  stop_id,  ///< a stop id, or the last token of a text that completes the row's constraint
  budget,   ///< also if the row's constraint allowed no token
};

struct row_result {
  slot_id slot = 0;
  bool sampled = false;  ///< a token was sampled (false for frozen slots, plain prefill and sync rows)
  token_id token = no_token;
  std::vector<token_id> forced;           ///< the tokens after it that the constraint forced, forced_max at most
  std::uint32_t unfed = 0;                ///< of a decode row without room for all tokens of its slot: those that still
                                          ///< wait to be fed; nothing was sampled
  stop_cause stopped = stop_cause::none;  ///< a stop id was sampled or the token budget is spent: the slot is now
                                          ///< frozen
  bool frozen = false;  ///< the slot froze in an earlier tick: nothing was sampled, and a decode fed nothing
  bool finite = true;   ///< false: a logit used for sampling or scoring was NaN or infinite. It was replaced as in
                        ///< sampler::draw, and the numbers here are meaningless
  bool awaits_sample = false;  ///< a sync row: the logits are in `logits`, and the host must call draw() before the
                               ///< next decode
  sampling::token_logprobs logprobs;             ///< of the sampled token, if sampling_params::logprobs
  std::vector<sampling::token_logprobs> scores;  ///< score rows: entry i is the log-probability of the row's token i+1
                                                 ///< (for the last: of row::score_next, omitted if that is no_token)
  std::vector<float> logits;                     ///< [1 or tokens, vocab] if requested, and for sync rows
};

struct tick_result {
  std::uint64_t tick = 0;        ///< number returned by submit, from 1
  std::vector<row_result> rows;  ///< one per row of the plan, same order
};

/// All that is needed to resume a parked sequence, on any engine of the same model.
struct parked_sequence {
  model::state_value state;
  sampling::sampler::saved sampler;
  std::vector<token_id> last_tokens;  ///< sampled or forced, not yet fed; more than one only with a constraint
  bool frozen = false;
};

/// The number of completed state copies since the engine was created.
struct moved_states {
  std::uint64_t departed = 0;  ///< of park and read_state, in the order of these calls
  std::uint64_t arrived = 0;   ///< of unpark and write_state, likewise
};

/// One thread (the device actor's) makes all calls. Slot, token and size errors are bugs and are asserted. An error
/// result means that the device is lost, and every later call returns the same error. Until a call has returned it,
/// ticks completed before the loss can be collected. Commands queued after the loss are dropped, and unfinished copies
/// out never complete.
class engine {
 public:
  virtual ~engine() = default;
  [[nodiscard]] virtual const engine_info& info() const = 0;

  /// Starts a new sequence in a slot: state cleared to the initial state, sampler started, not frozen, no last token.
  virtual void start(slot_id slot, const sampling::sampling_params& params) = 0;
  /// Replaces the sampling parameters only: the sampler restarts and the slot thaws; state and last token stay.
  virtual void restart_sampler(slot_id slot, const sampling::sampling_params& params) = 0;
  /// Copies state, sampler position, last token and frozen flag from `from` to `to`. `to` keeps the parameters of its
  /// own start() (so that rows of one request differ by `row`). Logits that wait for draw() are not copied.
  virtual void copy_state(slot_id from, slot_id to) = 0;
  /// Zeroes the slot's state and sampler, so that no tenant's data remains.
  virtual void clear(slot_id slot) = 0;
  /// Copies a slot out as of this point in the command order, bit for bit. Later ticks do not wait for the copy: `out`
  /// must stay alive and untouched until moved() counts it or finish() returns. If `out.state` cannot be allocated, it
  /// becomes empty.
  virtual void park(slot_id slot, parked_sequence& out) = 0;
  /// Restores a parked sequence into a slot: start(params) with its state, sampler and last token. A state of the
  /// engine's layout in other types is converted, here and in write_state. Commands that name
  /// the slot wait for it; other ticks do not. The call itself waits if `in` is still being copied out. `in` must stay
  /// alive until moved() counts it or finish() returns.
  virtual void unpark(slot_id slot, const sampling::sampling_params& params, const parked_sequence& in) = 0;
  /// Writes only a state (initial states, tools); otherwise as unpark.
  virtual void write_state(slot_id slot, const model::state_view& state) = 0;
  /// Copies only a state out, as park does.
  virtual void read_state(slot_id slot, model::state_value& out) = 0;
  /// Does not wait. Reports a lost device only when no tick is left to collect.
  [[nodiscard]] virtual result<moved_states> moved() = 0;

  /// Queues a tick; the plan is copied. At most ticks_in_flight_max may be uncollected. Returns the tick's number.
  [[nodiscard]] virtual result<std::uint64_t> submit(const tick_plan& plan) = 0;
  /// Waits for the oldest uncollected tick. The result stays valid until the next collect().
  [[nodiscard]] virtual result<const tick_result*> collect() = 0;
  /// True if collect() would not wait.
  [[nodiscard]] virtual bool ready() const = 0;
  [[nodiscard]] virtual std::uint32_t ticks_in_flight() const = 0;
  /// Samples the token of a sync row from the logits of its tick, under a mask (see sampler::draw; empty: all allowed).
  /// Waits for the device.
  [[nodiscard]] virtual result<row_result> sample(slot_id slot, std::span<const std::uint32_t> allowed) = 0;
  /// Waits until every queued command has run. Uncollected results remain available.
  virtual result<void> finish() = 0;
};

}  // namespace skein::engine
