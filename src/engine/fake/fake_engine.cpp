#include "engine/fake/fake_engine.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "engine/fake/fake_stages.hpp"
#include "engine/host_engine.hpp"
#include "engine/stages/stage_backend.hpp"
#include "engine/stages/stage_engine.hpp"
#include "sampling/philox.hpp"

namespace skein::engine {
namespace {

/// A stage backend with injected faults: slow ticks, a lost device and exceptions. Rejects damaged states.
class fake_backend final : public stage_backend {
 public:
  fake_backend(const fake_engine_options& options, std::unique_ptr<kernels::stages> stages,
               const stage_engine_options& shape)
      : stage_backend(std::move(stages), shape), options_(options) {}

  [[nodiscard]] result<void> unpark(slot_id slot, const sampling::sampling_params& params,
                                    const parked_sequence& in) override {
    if (auto whole = inspect(slot, in.state.view()); !whole) return whole;
    return stage_backend::unpark(slot, params, in);
  }

  [[nodiscard]] result<void> write_state(slot_id slot, const model::state_view& state) override {
    if (auto whole = inspect(slot, state); !whole) return whole;
    return stage_backend::write_state(slot, state);
  }

  [[nodiscard]] result<void> launch(const tick_plan& plan, tick_result& out) override {
    const auto jitter = sampling::uniform(0, 0, static_cast<std::uint32_t>(out.tick)) * options_.tick_jitter;
    std::this_thread::sleep_for(options_.tick_latency + jitter);
    if (out.tick == options_.lost_at_tick)
      return error{error_kind::unavailable, "fake device lost in tick " + std::to_string(out.tick), {}};
    if (out.tick == options_.throws_at_tick)
      throw std::runtime_error("tick " + std::to_string(out.tick) + " threw on purpose");
    return stage_backend::launch(plan, out);
  }

 private:
  static result<void> inspect(slot_id slot, const model::state_view& state) {
    sha256_digest whole;
    if (read_fake_state(floats_of(state), whole)) return {};
    return error{error_kind::internal, "the state written to slot " + std::to_string(slot) + " is torn or mixed", {}};
  }

  const fake_engine_options options_;
};

}  // namespace

std::unique_ptr<engine> make_fake_engine(const fake_engine_options& options) {
  const fake_model& model = options.model;
  check(model.first_text_token >= 0);
  check(model.first_text_token <= model.last_text_token);
  check(static_cast<std::uint32_t>(model.last_text_token) < model.vocab);
  check(model.state_floats >= sha256_digest().size());

  const stage_engine_options shape{.device = "fake",
                                   .model_identity = options.model_identity,
                                   .weight_type = "none",
                                   .state = fake_state_layout(model),
                                   .layers = 1,
                                   .vocab = model.vocab,
                                   .max_tick_rows = options.max_tick_rows,
                                   .forced_max = options.forced_max,
                                   .limits = {.slots = options.slots,
                                              .max_rows = options.max_tick_tokens,
                                              .max_logit_rows = std::min(options.max_tick_tokens, 64u)}};
  auto stages = std::make_unique<fake_stages>(model, options.slots);
  engine_info info = describe_stage_engine(*stages, shape);
  return make_host_engine(std::move(info), std::make_unique<fake_backend>(options, std::move(stages), shape));
}

}  // namespace skein::engine
