#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/engine.hpp"
#include "engine/fake/fake_model.hpp"

namespace skein::engine {

struct fake_engine_options {
  fake_model model;
  std::uint32_t slots = 16;
  std::uint32_t max_tick_tokens = 512;
  std::uint32_t max_tick_rows = 64;
  std::uint32_t forced_max = usual_forced_max;
  std::chrono::microseconds tick_latency{0};
  std::chrono::microseconds tick_jitter{0};  ///< added on top of tick_latency, up to this value, chosen by tick number
  std::uint64_t lost_at_tick = 0;            ///< the device is lost in this tick; 0: never
  std::uint64_t throws_at_tick = 0;          ///< this tick throws an exception; 0: never
  std::string model_identity = "fake";
};

/// An engine without a model that follows every rule of engine.hpp; its output is fake_text. A torn or mixed state
/// passed to unpark or write_state loses the device, with a message that says so.
[[nodiscard]] std::unique_ptr<engine> make_fake_engine(const fake_engine_options& options);

}  // namespace skein::engine
