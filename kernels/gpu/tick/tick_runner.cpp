// Ticks of a model on a GPU. One stream runs them one after another. The first kernel of a tick reads the host's plan,
// and the last one writes the sampled tokens to memory that the host reads; prompts arrive, and scores and logits
// leave, by copies. Nothing else comes from the host, so a tick is queued while the previous one still runs.
#include "kernels/gpu/tick/tick_runner.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "kernels/gpu/model/gpu_model.hpp"
#include "kernels/gpu/tick/state_stages.hpp"
#include "kernels/gpu/tick/tick_upload.hpp"

namespace skein::kernels::gpu {

namespace {

// The number of mixtures that are mixed at once: their means take twice as many rows of the vocabulary.
constexpr std::uint32_t mixtures_at_once = 16;
// The index of the mask in the words of a single sample.
constexpr std::size_t mask_at = 3;

// The sizes for which decode ticks are captured as CUDA graphs. A tick of another number of rows uses the next size;
// blocks beyond its rows do nothing.
constexpr std::array<std::uint32_t, 28> decode_sizes = {1,    2,    4,    8,    12,   16,   24,   32,  48,  64,
                                                        96,   128,  192,  256,  320,  384,  512,  640, 768, 960,
                                                        1152, 1344, 1536, 1792, 2048, 2560, 3072, 4096};

tick_room room_of(const gpu_options& options, std::uint32_t vocab) {
  const gpu_limits& limits = options.limits;
  tick_room room;
  room.rows = std::min({limits.max_tick_rows, limits.slots, limits.max_tick_tokens});
  room.tokens = limits.max_tick_tokens;
  room.logit_rows = std::max(room.rows, std::min(limits.max_logit_rows, limits.max_tick_tokens));
  room.mixtures_at_once = std::min(mixtures_at_once, room.rows);
  room.vocab = vocab;
  return room;
}

/// The size of the penalised means; the raw ones follow. Both begin at an address that allows 16-byte accesses.
std::size_t mixed_floats(const tick_room& room) {
  return (std::size_t{room.mixtures_at_once} * room.vocab + 3) / 4 * 4;
}

/// One slot more than there are sequences: see preparation::spare.
model_room model_room_of(const gpu_options& options, const tick_room& room) {
  return {room.tokens, room.logit_rows, options.limits.slots + 1};
}

sampler_limits sampler_limits_of(const gpu_options& options, const tick_room& room) {
  return {.vocab = room.vocab,
          .slots = options.limits.slots + options.limits.state_stages,
          .rows_max = room.logit_rows,
          .bias_max = options.limits.logit_bias_max,
          .stop_ids_max = options.limits.stop_ids_max,
          .penalties_max = 0};
}

std::size_t single_sample_words(const tick_room& room) { return mask_at + (room.vocab + 31) / 32; }

std::size_t mask_words(const tick_room& room) { return (room.vocab + 31) / 32; }

/// One mask for each row that samples.
std::size_t masks_words(const tick_room& room) { return std::size_t{room.rows} * mask_words(room); }

/// The size of the runner's own buffers.
std::size_t planned_bytes(const tick_room& room) {
  return 2 * room.tokens * sizeof(std::uint32_t)                        // run_of_row_ and wanted_rows_
         + room.rows * (sizeof(sequence_run) + 2 * sizeof(sample_row))  // runs_, draws_ and mixture_samples_
         + room.logit_rows * sizeof(token_scores) + room.mixtures_at_once * sizeof(sampled_token) +
         2 * mixed_floats(room) * sizeof(float) + single_sample_words(room) * sizeof(std::uint32_t) +
         masks_words(room) * sizeof(std::uint32_t);
}

class model_runner final : public tick_runner {
 public:
  model_runner(const model_weights& weights, const gpu_options& options)
      : device_(options.device),
        slots_(options.limits.slots),
        room_(room_of(options, dims_of(weights).vocab)),
        upload_(room_, ticks_),
        model_(make_model(weights, options, model_room_of(options, room_), ticks_)),
        samplers_(sampler_limits_of(options, room_)),
        stages_(options.limits.state_stages, model_->slot_bytes(), room_.vocab, slots_),
        run_of_row_(room_.tokens, "plans of ticks"),
        wanted_rows_(room_.tokens, "plans of ticks"),
        runs_(room_.rows, "plans of ticks"),
        samples_(room_.rows, "plans of ticks"),
        mixture_samples_(room_.rows, "plans of ticks"),
        scores_(room_.logit_rows, "results of ticks"),
        sampled_mixtures_(room_.mixtures_at_once, "results of ticks"),
        mixed_(2 * mixed_floats(room_), "mixtures"),
        single_sample_(single_sample_words(room_), "single samples"),
        single_sample_pinned_(single_sample_words(room_)),
        masks_(masks_words(room_), "masks of tokens"),
        single_sampled_(1),
        flights_{flight(room_), flight(room_)} {
    for (slot_id slot = 0; slot < slots_; ++slot) require(samplers_.start(ticks_, slot, {}, {}, {}));
    record_decodes();
    describe();
    require(ticks_.synchronize());
  }
  ~model_runner() override { ignore(ticks_.synchronize(), "only waits before the memory of running kernels is freed"); }

  const runner_sizes& sizes() const override { return sizes_; }

  result<void> start(slot_id slot, const sampler_start& params) override {
    enter();
    note(model_->queue_clear(slot, ticks_));
    return note(samplers_.start(ticks_, slot, params.settings, params.bias, params.stop_ids));
  }
  result<void> restart_sampler(slot_id slot, const sampler_start& params) override {
    enter();
    return note(samplers_.restart(ticks_, slot, params.settings, params.bias, params.stop_ids));
  }
  result<void> copy_slot(slot_id from, slot_id to) override {
    enter();
    note(model_->queue_copy(from, to, ticks_));
    return note(samplers_.copy_position(ticks_, from, to));
  }

  result<void> force(std::span<const forced_run> runs) override {
    enter();
    return note(samplers_.force(ticks_, runs));
  }

  result<void> launch(const tick& plan) override {
    check(launched_ - completed_ < ticks_in_flight_max);
    enter();
    const std::size_t turn = launched_++ % flights_.size();
    flight& f = flights_[turn];
    const tick_shape shape = upload_.write(plan, turn, f.places);
    if (shape.rows > 0) {
      note(upload_.send(turn, ticks_));
      note(queue_tick(shape, turn, send_masks(plan, f, shape)));
    }
    return note(f.done.record(ticks_));
  }

  bool ready() override { return flights_[completed_ % flights_.size()].done.passed(); }

  result<std::span<const row_outcome>> complete() override {
    check(completed_ < launched_);
    enter();
    flight& f = flights_[completed_++ % flights_.size()];
    if (auto r = note(f.done.synchronize()); !r) return r.error();
    const std::uint32_t* const status = f.status.data();
    f.outcomes.resize(f.places.size());
    for (std::size_t i = 0; i < f.places.size(); ++i) {
      const row_place& place = f.places[i];
      const bool has_sampled = (status[i] & samples) != 0 && place.sample != no_place;
      f.outcomes[i] = {status[i], has_sampled ? f.sampled.data() + place.sample : nullptr,
                       f.scores.all().subspan(place.first_score, place.scores),
                       place.last_score == no_place ? nullptr : f.scores.data() + place.last_score};
    }
    return std::span<const row_outcome>(f.outcomes);
  }

  result<void> begin_read(slot_id slot, std::uint32_t stage) override {
    enter();
    return note(stages_.begin_read(stage, slot, *model_, samplers_, ticks_));
  }
  bool arrived(std::uint32_t stage) override { return stages_.arrived(stage); }
  result<staged_state> end_read(std::uint32_t stage) override { return keep(stages_.end_read(stage)); }
  result<staged_state> begin_write(std::uint32_t stage) override { return keep(stages_.begin_write(stage)); }
  result<void> end_write(std::uint32_t stage, slot_id slot) override {
    enter();
    return note(stages_.end_write(stage, slot, *model_, ticks_));
  }
  result<void> send(std::uint32_t stage) override {
    enter();
    return note(stages_.send(stage));
  }
  result<void> restore(std::uint32_t stage, slot_id slot, const sampler_start& params) override {
    enter();
    const sampler_position position = stages_.position(stage);
    return note(samplers_.restore(ticks_, slot, params.settings, params.bias, params.stop_ids, position));
  }

  result<void> give_penalties(std::uint32_t stage, slot_id slot) override {
    enter();
    return note(stages_.give_penalties(stage, slot, samplers_, ticks_));
  }

  result<sampled_token> sample(slot_id slot, std::span<const float> logits,
                               std::span<const std::uint32_t> allowed) override {
    check(completed_ == launched_);
    check(logits.size() == room_.vocab);
    enter();
    // Words: the number of samples, the sample_row, its mask. The memory of logits is free between ticks.
    std::uint32_t* const words = single_sample_pinned_.data();
    words[0] = 1, words[1] = 0, words[2] = slot;
    std::ranges::copy(allowed, words + mask_at);
    const std::uint32_t* const sent = single_sample_.data();
    note(copy_to_device(single_sample_.data(), words, (mask_at + allowed.size()) * sizeof *words, ticks_));
    note(copy_to_device(model_->logits(), logits.data(), logits.size_bytes(), ticks_));
    note(samplers_.queue_samples(ticks_, {sent, reinterpret_cast<const sample_row*>(sent + 1), 1},
                                 {model_->logits(), nullptr, allowed.empty() ? nullptr : sent + mask_at},
                                 single_sampled_.data()));
    if (auto r = note(ticks_.synchronize()); !r) return r.error();
    return *single_sampled_.data();
  }

  result<void> settle() override {
    enter();
    note(ticks_.synchronize());
    return note(stages_.settle());
  }

 private:
  /// A tick from its launch to its completion.
  struct flight {
    explicit flight(const tick_room& room)
        : status(room.rows, "results of ticks"),
          sampled(room.rows, "results of ticks"),
          scores(room.tokens, "results of ticks"),
          masks(masks_words(room), "masks of tokens") {}
    event done;
    pinned_buffer<std::uint32_t> status;
    pinned_buffer<sampled_token> sampled;
    pinned_buffer<token_scores> scores;
    pinned_buffer<std::uint32_t> masks;
    std::vector<row_place> places;
    std::vector<row_outcome> outcomes;
  };
  /// One per flight, because a captured graph contains the addresses of its plan and results.
  struct decode_graphs {
    std::uint32_t rows;
    std::array<graph, ticks_in_flight_max> of_flight;
  };

  /// Calls that begin a tick or move a state may come from another thread than the constructor's.
  void enter() { note(use_device(device_)); }
  /// Keeps the first error: later ones are its consequences.
  const result<void>& note(const result<void>& done) {
    if (!done && trouble_) trouble_ = done;
    return trouble_;
  }
  template <typename T>
  result<T> keep(result<T> made) {
    enter();
    if (!made) note(made.error());
    if (!trouble_) return trouble_.error();
    return made;
  }

  /// Sends the masks of all rows that sample alone, if one has a mask. Null: none has.
  const std::uint32_t* send_masks(const tick& plan, flight& f, const tick_shape& shape) {
    const auto is_masked = [](const tick_row& row) { return row.allowed != nullptr; };
    if (std::ranges::none_of(plan.rows, is_masked)) return nullptr;
    const std::size_t words = mask_words(room_);
    for (std::size_t i = 0; i < plan.rows.size(); ++i) {
      const std::uint32_t sample = f.places[i].sample;
      if (sample >= shape.samples_alone) continue;  // no_place, or in a mixture
      std::uint32_t* const to = f.masks.data() + sample * words;
      if (plan.rows[i].allowed)
        std::copy_n(plan.rows[i].allowed, words, to);
      else
        std::fill_n(to, words, ~0u);
    }
    note(copy_to_device(masks_.data(), f.masks.data(), shape.samples_alone * words * sizeof(std::uint32_t), ticks_));
    return masks_.data();
  }

  /// `masks`: of the rows that sample alone; such ticks are not replayed.
  result<void> queue_tick(const tick_shape& shape, std::size_t turn, const std::uint32_t* masks) {
    if (shape.only_decodes && !masks)
      for (const decode_graphs& g : graphs_)
        if (shape.rows <= g.rows) return g.of_flight[turn].launch(ticks_);
    return queue_kernels(shape, turn, masks);
  }

  /// Queues all kernels of a tick. They depend only on its shape, its flight and whether it has masks.
  result<void> queue_kernels(const tick_shape& shape, std::size_t turn, const std::uint32_t* masks = nullptr) {
    flight& f = flights_[turn];
    if (auto r = prepare(ticks_, preparation(turn), shape.rows); !r) return r;
    if (auto r = model_->queue_forward(piece(shape, 0), shape.runs, ticks_); !r) return r;
    std::size_t scored = 0, copied = 0;
    for (std::uint32_t p = 0; p * room_.logit_rows < shape.wanted; ++p) {
      if (auto r = model_->queue_head(piece(shape, p), ticks_); !r) return r;
      if (auto r = hand_out(shape, p, f, scored, copied); !r) return r;
      if (p > 0) continue;  // the first piece holds all sampled rows
      if (auto r = queue_mixtures(shape, f); !r) return r;
      if (shape.samples_alone == 0) continue;
      const device_samples alone{upload_.sample_count(), samples_.data(), shape.samples_alone};
      const sample_logits from{.logits = model_->logits(), .allowed = masks};
      if (auto r = samplers_.queue_samples(ticks_, alone, from, f.sampled.data()); !r) return r;
    }
    return {};
  }

  [[nodiscard]] gpu::preparation preparation(std::size_t turn) const {
    gpu::preparation of;
    of.planned_counts = upload_.planned_counts(turn), of.rows = upload_.planned_rows(turn);
    of.count_words = upload_.count_words(), of.counts = upload_.counts();
    of.records = samplers_.records();
    of.spare = slots_, of.mixtures_at_once = room_.mixtures_at_once;
    of.tokens = upload_.tokens(), of.runs = runs_.data();
    of.run_of_row = run_of_row_.data(), of.wanted_rows = wanted_rows_.data();
    of.samples = samples_.data(), of.members = upload_.members(), of.mixture_samples = mixture_samples_.data();
    of.status = flights_[turn].status.data();
    return of;
  }

  [[nodiscard]] device_batch piece(const tick_shape& shape, std::uint32_t p) const {
    const std::uint32_t begin = p * room_.logit_rows;
    device_batch batch;
    batch.counts = upload_.batch(p);
    batch.tokens = upload_.tokens(), batch.runs = runs_.data(), batch.run_of_row = run_of_row_.data();
    batch.wanted_rows = wanted_rows_.data() + begin;
    batch.room = {shape.tokens, shape.rows, std::min(shape.wanted - begin, room_.logit_rows)};
    return batch;
  }

  /// The scores and logits of a piece that are wanted besides samples; before sampling, which modifies the logits.
  result<void> hand_out(const tick_shape& shape, std::uint32_t p, flight& f, std::size_t& scored, std::size_t& copied) {
    for (; copied < shape.copies.size() && shape.copies[copied].wanted / room_.logit_rows == p; ++copied) {
      const logits_copy& c = shape.copies[copied];
      const float* const from = model_->logits() + std::size_t{c.wanted % room_.logit_rows} * room_.vocab;
      if (auto r = copy_to_host(c.to, from, room_.vocab * sizeof(float), ticks_); !r) return r;
    }
    const std::uint32_t count = shape.scores.empty() ? 0 : shape.scores[p];
    if (count == 0) return {};
    const device_scores scores{upload_.score_count(p), upload_.scores() + scored, count};
    if (auto r = samplers_.queue_scores(ticks_, scores, model_->logits(), scores_.data()); !r) return r;
    token_scores* const to = f.scores.data() + scored;
    scored += count;
    return copy_to_host(to, scores_.data(), count * sizeof(token_scores), ticks_);
  }

  result<void> queue_mixtures(const tick_shape& shape, flight& f) {
    float* const raw = mixed_.data() + mixed_floats(room_);
    for (std::uint32_t begin = 0, group = 0; begin < shape.mixtures; begin += room_.mixtures_at_once, ++group) {
      const std::uint32_t room = std::min(room_.mixtures_at_once, shape.mixtures - begin);
      const std::uint32_t* const count = upload_.mixture_count(group);
      const device_mixtures mixtures{count, upload_.mixtures() + begin, upload_.members(), room};
      const device_samples samples{count, mixture_samples_.data() + begin, room};
      if (auto r = samplers_.queue_mixtures(ticks_, mixtures, model_->logits(), mixed_.data(), raw); !r) return r;
      if (auto r = samplers_.queue_samples(ticks_, samples, {mixed_.data(), raw, nullptr}, sampled_mixtures_.data());
          !r)
        return r;
      if (auto r = samplers_.spread_samples(ticks_, mixtures, sampled_mixtures_.data(), f.sampled.data()); !r) return r;
    }
    return {};
  }

  /// Each size runs once without rows before it is captured: a runtime cannot load during capture what it loads at a
  /// kernel's first launch.
  void record_decodes() {
    const auto begin = std::chrono::steady_clock::now();
    for (const std::uint32_t size : decode_sizes) {
      const std::uint32_t rows = std::min(size, room_.rows);
      tick_shape shape;
      shape.rows = shape.tokens = shape.wanted = shape.samples_alone = rows;
      require(queue_kernels(shape, 0));
      require(ticks_.synchronize());
      graphs_.push_back({rows, {record(shape, 0), record(shape, 1)}});
      if (rows == room_.rows) break;
    }
    sizes_.graph_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  graph record(const tick_shape& shape, std::size_t turn) {
    auto replay = graph::record(ticks_, [&] { return queue_kernels(shape, turn); });
    if (!replay) throw device_failure(replay.error());
    require(replay->launch(ticks_));  // the first replay uploads the graph to the device
    return std::move(*replay);
  }

  void describe() {
    sizes_.state_bytes = model_->slot_bytes();
    sizes_.state_stages = stages_.count();
    sizes_.logit_bias_max = samplers_.limits().bias_max;
    sizes_.stop_ids_max = samplers_.limits().stop_ids_max;
    sizes_.chunk_tokens = model_->chunk_tokens();
    memory_plan& memory = sizes_.memory;
    memory.slots = slots_;
    memory.slot_bytes = model_->slot_bytes() + samplers_.slot_bytes();
    memory.weight_bytes = model_->weight_bytes();
    memory.activation_bytes = model_->activation_bytes();
    memory.workspace_bytes = model_->state_bytes() + samplers_.bytes() - memory.bytes_of_slots() + upload_.bytes() +
                             stages_.bytes() + run_of_row_.bytes() + wanted_rows_.bytes() + runs_.bytes() +
                             samples_.bytes() + mixture_samples_.bytes() + scores_.bytes() + sampled_mixtures_.bytes() +
                             mixed_.bytes() + single_sample_.bytes() + masks_.bytes();
    sizes_.library = model_->library();
    sizes_.library_seconds = model_->library_seconds();
    sizes_.graphs = static_cast<std::uint32_t>(graphs_.size());
  }

  const int device_;
  const std::uint32_t slots_;  ///< the slot after them is unassigned, see preparation::spare
  const tick_room room_;
  runner_sizes sizes_;
  result<void> trouble_;

  stream ticks_;
  tick_upload upload_;
  const std::unique_ptr<gpu_model> model_;
  slot_samplers samplers_;
  state_stages stages_;

  // Written by kernels of a tick for later ones.
  device_buffer<std::uint32_t> run_of_row_, wanted_rows_;
  device_buffer<sequence_run> runs_;
  device_buffer<sample_row> samples_, mixture_samples_;
  device_buffer<token_scores> scores_;
  device_buffer<sampled_token> sampled_mixtures_;
  device_buffer<float> mixed_;
  device_buffer<std::uint32_t> single_sample_;
  pinned_buffer<std::uint32_t> single_sample_pinned_;
  device_buffer<std::uint32_t> masks_;  // [samples of a tick, mask_words]
  pinned_buffer<sampled_token> single_sampled_;

  std::array<flight, ticks_in_flight_max> flights_;
  std::uint64_t launched_ = 0, completed_ = 0;
  std::vector<decode_graphs> graphs_;  ///< in ascending order of size
};

}  // namespace

result<std::unique_ptr<tick_runner>> make_runner(const model_weights& weights, const gpu_options& options) {
  if (const auto r = check_model(weights, options.formats); !r) return r.error();
  if (const auto r = use_device(options.device); !r) return r.error();
  if (options.tuning.tile_us != tile_times{}) set_tile_times(options.device, options.tuning.tile_us);
  try {
    return std::make_unique<model_runner>(weights, options);
  } catch (const device_failure& failure) {
    return failure.why();
  } catch (const std::bad_alloc&) {
    return error{error_kind::unavailable, "not enough host memory to load the model", ""};
  } catch (const std::exception& other) {  // such as std::system_error: a thread cannot be started
    return error{error_kind::unavailable, std::string("the model cannot be loaded: ") + other.what(), ""};
  }
}

namespace {

memory_plan plan_parts(const model_weights& weights, const gpu_options& options) {
  const tick_room room = room_of(options, dims_of(weights).vocab);
  const sampler_limits samplers = sampler_limits_of(options, room);
  memory_plan plan = plan_model(weights, options, model_room_of(options, room));
  const std::size_t state_bytes = plan.slot_bytes;
  const std::size_t of_sampler = slot_samplers::slot_bytes(samplers);
  plan.slot_bytes += of_sampler;
  plan.workspace_bytes += slot_samplers::planned_bytes(samplers) - plan.slots * of_sampler +
                          tick_upload::planned_bytes(room) +
                          state_stages::planned_bytes(options.limits.state_stages, state_bytes) + planned_bytes(room);
  return plan;
}

}  // namespace

result<memory_plan> plan_runner(const model_weights& weights, const gpu_options& options) {
  if (const auto r = check_model(weights, options.formats); !r) return r.error();
  if (const auto r = use_device(options.device); !r) return r.error();
  try {
    return plan_parts(weights, options);
  } catch (const device_failure& failure) {  // no exception may cross the plug-in interface
    return failure.why();
  } catch (const std::bad_alloc&) {
    return error{error_kind::unavailable, "not enough host memory to plan the model", ""};
  } catch (const std::exception& other) {
    return error{error_kind::unavailable, std::string("the model cannot be planned: ") + other.what(), ""};
  }
}

}  // namespace skein::kernels::gpu
