#pragma once
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "kernels/gpu/types/elements.hpp"
#include "tests/support/thorough.hpp"

namespace skein::test {

/// The sizes that a case asks for; everything else is the engine's own.
struct engine_sizes {
  std::uint32_t slots = 4;
  std::uint32_t max_tick_tokens = 32;
  std::uint32_t max_tick_rows = 8;
  std::uint32_t forced_max = skein::engine::usual_forced_max;
};

/// One line of the table of engines that the contract is tried on. All engines of one line are the same model.
struct engine_under_test {
  std::string name;
  std::function<std::unique_ptr<skein::engine::engine>(const engine_sizes&)> make;
  bool emulated = false;  ///< kernels of the GPU, run by the emulator: slow, and taking memory as it goes

  /// By day an emulated engine has a part of the cases only.
  [[nodiscard]] bool in_part() const { return emulated && !is_nightly(); }
};
std::ostream& operator<<(std::ostream& out, const engine_under_test& line);

[[nodiscard]] const std::vector<engine_under_test>& engines_under_test();

/// Prompts that each of these engines takes.
inline const std::vector<token_id> six_tokens = {5, 17, 3, 3, 42, 11};
inline const std::vector<token_id> ten_tokens = {5, 17, 3, 3, 42, 11, 29, 8, 1, 33};

[[nodiscard]] inline bool takes_rules(const skein::engine::engine& e) { return e.info().constrains; }

#if defined(SKEIN_GPU_EMULATOR)
/// The emulated GPU's engine in fp32, and the reference of the same model.
[[nodiscard]] std::unique_ptr<skein::engine::engine> make_gpu_fp32(const engine_sizes& sizes);
/// In fp16, with states of this type.
[[nodiscard]] std::unique_ptr<skein::engine::engine> make_gpu_fp16(const engine_sizes& sizes,
                                                                   kernels::gpu::element state_type);
[[nodiscard]] std::unique_ptr<skein::engine::engine> make_reference_of_gpu(const engine_sizes& sizes);
#endif

/// Adds a row that feeds tokens.
engine::row& add_prefill(engine::tick_plan& plan, slot_id slot, std::span<const token_id> tokens, bool sample);
engine::row& add_decode(engine::tick_plan& plan, slot_id slot);

/// Submits one tick, collects it and returns a copy of its rows.
[[nodiscard]] std::vector<engine::row_result> run_tick(skein::engine::engine& e, const engine::tick_plan& plan);
/// The same for the one row of a tick.
[[nodiscard]] engine::row_result prefill(skein::engine::engine& e, slot_id slot, std::span<const token_id> tokens,
                                         bool sample);
[[nodiscard]] engine::row_result decode(skein::engine::engine& e, slot_id slot);

struct generated_text {
  std::vector<token_id> tokens;  ///< sampled and forced
  std::vector<float> logprobs;   ///< of the sampled ones, when the parameters ask for them
  engine::stop_cause stopped = engine::stop_cause::none;
  bool operator==(const generated_text&) const = default;
};
std::ostream& operator<<(std::ostream& out, const generated_text& text);

/// What a sequence gets when it is alone in `slot`: prefill in chunks of `chunk` tokens, then decode, one tick at a
/// time, until the slot stops.
[[nodiscard]] generated_text generate_alone(skein::engine::engine& e, slot_id slot, std::span<const token_id> prompt,
                                            const sampling::sampling_params& params, std::size_t chunk);

[[nodiscard]] model::state_value value_of(skein::engine::engine& e, slot_id slot);
/// As fp32.
[[nodiscard]] std::vector<float> state_of(skein::engine::engine& e, slot_id slot);

/// Greedy, with a budget.
[[nodiscard]] sampling::sampling_params greedy(std::uint32_t max_tokens);
/// Seeded, with penalties that decay.
[[nodiscard]] sampling::sampling_params seeded(std::uint64_t seed, std::uint32_t max_tokens);

}  // namespace skein::test
