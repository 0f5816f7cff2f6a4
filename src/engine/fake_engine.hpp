#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/engine.hpp"
#include "engine/fake_model.hpp"

namespace skein::engine {

struct fake_engine_options {
  fake_model model;
  std::uint32_t slots = 16;
  std::uint32_t max_tick_tokens = 512;
  std::uint32_t max_tick_rows = 64;
  std::chrono::microseconds tick_latency{0};
  std::chrono::microseconds tick_jitter{0};  ///< up to this much more, chosen by tick number
  std::uint64_t lost_at_tick = 0;            ///< the device is lost in the tick of this number; 0: never
  std::uint64_t throws_at_tick = 0;          ///< an exception leaves the tick of this number; 0: never
  std::string model_identity = "fake";
};

/// An engine without a model that keeps every rule of engine.hpp; what it answers is fake_text. A state that comes back
/// torn or mixed (unpark, write_state) loses the device with a message that says so.
[[nodiscard]] std::unique_ptr<engine> make_fake_engine(const fake_engine_options& options);

}  // namespace skein::engine
