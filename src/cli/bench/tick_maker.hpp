#pragma once
#include <chrono>
#include <cstdint>
#include <random>

#include "base/result.hpp"
#include "engine/engine.hpp"

namespace skein::cli {

[[nodiscard]] double seconds_since(std::chrono::steady_clock::time_point begin);

/// Runs ticks one after another, with new random tokens for each.
class tick_maker {
 public:
  static constexpr std::uint32_t first_tokens = 4;  ///< fed to each sequence before it decodes

  tick_maker(engine::engine& on, float temperature);

  /// Starts sequences in slots 0 to `count` - 1, ready to decode, each with its own tokens and seed.
  [[nodiscard]] result<void> begin(std::uint32_t count);
  [[nodiscard]] static engine::tick_plan decoding(std::uint32_t count);
  [[nodiscard]] engine::tick_plan feeding(slot_id first, std::uint32_t count, std::uint32_t tokens);
  [[nodiscard]] result<void> run(const engine::tick_plan& plan);

  /// Seconds for `count` ticks. Each tick is submitted before the previous one is collected, as in a server.
  template <typename Next>
  [[nodiscard]] result<double> time(std::uint32_t count, const Next& next) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::uint32_t submitted = 0, collected = 0; collected < count; ++collected) {
      for (; submitted < count && on_.ticks_in_flight() < on_.info().ticks_in_flight_max; ++submitted)
        if (const auto tick = on_.submit(next()); !tick) return tick.error();
      if (const auto outcome = on_.collect(); !outcome) return outcome.error();
    }
    return seconds_since(begin);
  }

 private:
  engine::engine& on_;
  std::mt19937 random_;
  sampling::sampling_params params_;
};

}  // namespace skein::cli
