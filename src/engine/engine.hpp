#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/memory_plan.hpp"
#include "base/result.hpp"
#include "sampling/sampler.hpp"
#include "sampling/sampling_params.hpp"

/// The boundary of a back end (design section 4). An engine is one model on one device (or on several as shards). It
/// works asynchronously and in order: every call below queues a command; commands run one after another. A tick's
/// results come with collect(), which the device actor calls for the tick before while the next one already runs.
namespace skein::engine {

struct engine_info {
  std::string device;          ///< "cpu", "fake", "cuda:0 NVIDIA H200", ...
  std::string model_identity;  ///< hash over all tensors and the vocabulary
  std::string weight_type;     ///< "bf16", ...
  std::uint32_t vocab = 0;
  std::uint32_t slots = 0;
  std::uint32_t max_tick_tokens = 0;  ///< rows of tokens that one tick may carry
  std::uint32_t max_tick_rows = 0;    ///< row entries, and sampled rows, that one tick may carry
  std::uint32_t ticks_in_flight_max = 2;
  std::uint32_t leaving_max = ~0u;  ///< states that may be on their way out at a time: one more waits for the first of
                                    ///< them, and with it what is queued behind
  std::uint32_t coming_max = ~0u;   ///< states on their way into slots, likewise
  std::uint32_t chunk_tokens = 0;   ///< tokens of a chunk, below max_tick_tokens; 0: what a sequence becomes does not
                                    ///< depend on row::chunked, which is 0
  sampling::row_limits row_max;     ///< of the parameters that start, restart_sampler and unpark take
  std::uint32_t top_logprobs_max = sampling::top_logprobs_max;  ///< of a row's parameters, and row::score_top
  std::uint32_t prompt_tokens_max = 1u << 30;                   ///< of one sequence: counts of tokens have 32 bits
  std::size_t state_floats = 0;  ///< of one sequence, canonical order (model/state_layout)
  memory_plan memory;            ///< taken at the start and held to the end
};

enum class row_kind : std::uint8_t {
  prefill,  ///< feed `tokens`
  decode,   ///< feed the slot's last sampled token; does nothing in a frozen slot
  score,    ///< feed `tokens` and return the log-probability of each given its predecessors in this row and the state,
            ///< with as many alternatives as the slot's top_logprobs
};

enum class logits_wanted : std::uint8_t { none, last, all };

/// What one slot does in a tick. A tick names a slot at most once.
///
/// A slot freezes when a draw hits a stop id or the token budget. Nothing is drawn in a frozen slot until start,
/// restart_sampler or unpark; prefill and score rows still feed it. A slot whose budget is spent already (max_tokens 0,
/// or a copied position) freezes at its first row with sample: a prefill feeds its tokens, a decode nothing, and no
/// token is drawn. A sampled token is fed once: a row that feeds without sampling leaves no last token to decode.
struct row {
  slot_id slot = 0;
  row_kind kind = row_kind::decode;
  std::uint32_t first_token = 0;  ///< into tick_plan::tokens (prefill, score)
  std::uint32_t tokens = 0;       ///< at least 1 for prefill and score, 0 for decode
  std::uint32_t chunked = 0;      ///< the first of them that go in chunks of engine_info::chunk_tokens, which is
                                  ///< faster; the last chunk may be smaller, by half at most. Which tokens go in which
                                  ///< chunk decides the bits; where rows end between chunks does not (prompt_parts.hpp)
  bool sample = false;            ///< draw a token after the row's last position
  std::uint32_t score_top = 0;    ///< score: alternatives to report for each token
  bool sync = false;              ///< with sample: stop before the draw; the host reads the logits and calls draw()
  token_id score_next = no_token;  ///< score: the token that follows the row, so that its last position is scored too
  logits_wanted logits = logits_wanted::none;  ///< copy logits into the result (tools and tests)
  std::uint32_t group = 0;  ///< rows of one non-zero group draw one token from the weighted sum of their logits,
                            ///< with the sampler of the group's first row; it becomes the last token of all. That
                            ///< sampler's stop ids and budget hold for all: a group freezes as one. Needs sample
                            ///< without sync
  float weight = 1.0f;      ///< above 0; share in the group's sum; the engine divides by the sum of weights
};

struct tick_plan {
  std::vector<row> rows;
  std::vector<token_id> tokens;
  void clear() {
    rows.clear();
    tokens.clear();
  }
};

enum class stop_cause : std::uint8_t { none, stop_id, budget };

struct row_result {
  slot_id slot = 0;
  bool sampled = false;  ///< a token was drawn (false for frozen slots, plain prefill and sync rows)
  token_id token = no_token;
  stop_cause stopped = stop_cause::none;  ///< the draw hit a stop id or the token budget (or found it spent): the slot
                                          ///< is now frozen
  bool frozen = false;       ///< the slot had stopped in an earlier tick: nothing was drawn, and a decode did nothing
  bool finite = true;  ///< false: a logit that the row was drawn or scored from was NaN or infinite. The numbers here
                       ///< count those as sampler::draw does, and mean nothing
  bool awaits_draw = false;  ///< a sync row: logits are in `logits`, the host must call draw() before its next decode
  sampling::token_logprobs logprobs;             ///< of the drawn token, when its sampler asks for it
  std::vector<sampling::token_logprobs> scores;  ///< score rows: entry i is the log-probability of the row's token i+1
                                                 ///< (for the last: of row::score_next, left out when that is no_token)
  std::vector<float> logits;                     ///< [1 or tokens, vocab] when asked for, or for sync rows
};

struct tick_result {
  std::uint64_t tick = 0;        ///< number given by submit, from 1
  std::vector<row_result> rows;  ///< one per row of the plan, same order
};

/// All that a parked sequence needs to go on, on any engine of the same model.
struct parked_sequence {
  std::vector<float> state;  ///< canonical order
  sampling::sampler::saved sampler;
  token_id last_token = no_token;  ///< sampled, not yet fed
  bool frozen = false;
};

/// How many states have moved since the engine was made.
struct moved_states {
  std::uint64_t departed = 0;  ///< of those that park and read_state were called for, in the order of these calls
  std::uint64_t arrived = 0;   ///< of those that unpark and write_state were called for, likewise
};

/// Calls come from one thread (the device actor's). Slot, token and size errors are our own mistakes (checked); a
/// result error means that the device is lost, and every later call answers the same. Ticks done before the loss can be
/// collected until a call has answered so; commands behind it are dropped, and states on their way out do not come.
class engine {
 public:
  virtual ~engine() = default;
  [[nodiscard]] virtual const engine_info& info() const = 0;

  /// Gives a slot a fresh sequence: state cleared to the initial state, sampler started, not frozen, no last token.
  virtual void start(slot_id slot, const sampling::sampling_params& params) = 0;
  /// Replaces the parameters' effect only: sampler started anew, slot thawed; state and last token stay.
  virtual void restart_sampler(slot_id slot, const sampling::sampling_params& params) = 0;
  /// State, sampler position, last token and frozen flag of `from` into `to`. `to` keeps the parameters of its own
  /// start() (so that rows of one request differ by `row`). Logits that await a draw are not copied.
  virtual void copy_state(slot_id from, slot_id to) = 0;
  /// Zeroes the slot's state and sampler (nothing of a tenant stays behind).
  virtual void clear(slot_id slot) = 0;
  /// Copies a slot out, as the commands before leave it. The copy leaves beside the ticks behind it, which do not wait
  /// for it: `out` stays untouched and alive until moved() counts it, or finish(). Where there is no memory for an
  /// `out` that came without any, it leaves without a state.
  virtual void park(slot_id slot, parked_sequence& out) = 0;
  /// Brings a parked sequence into a slot: start(params) with its state, sampler and last token. Ticks that do not name
  /// the slot do not wait for it; what names the slot does, and who asks for a state that is still on its way out. `in`
  /// stays alive until moved() counts it, or finish().
  virtual void unpark(slot_id slot, const sampling::sampling_params& params, const parked_sequence& in) = 0;
  /// Writes a state only (initial states, tools); floats in canonical order; all else as in unpark.
  virtual void write_state(slot_id slot, std::span<const float> state) = 0;
  /// Copies a state out as park does.
  virtual void read_state(slot_id slot, std::span<float> state) = 0;
  /// Does not wait. A loss is answered when no tick is left to collect.
  [[nodiscard]] virtual result<moved_states> moved() = 0;

  /// Queues a tick; the plan is copied. At most ticks_in_flight_max may be uncollected. Returns the tick's number.
  [[nodiscard]] virtual result<std::uint64_t> submit(const tick_plan& plan) = 0;
  /// Waits for the oldest uncollected tick. The result stays valid until the next collect().
  [[nodiscard]] virtual result<const tick_result*> collect() = 0;
  /// True when collect() would not wait.
  [[nodiscard]] virtual bool ready() const = 0;
  [[nodiscard]] virtual std::uint32_t ticks_in_flight() const = 0;
  /// Draws the token of a sync row that awaits it, from the logits of its tick, under a mask (see sampler::draw; empty:
  /// all allowed). Waits for the device.
  [[nodiscard]] virtual result<row_result> draw(slot_id slot, std::span<const std::uint32_t> allowed) = 0;
  /// Waits until every queued command has run. Uncollected results stay to be collected.
  virtual result<void> finish() = 0;
};

}  // namespace skein::engine
