#pragma once
#include <cstdint>

#include "actors/request/shared/loaded_models.hpp"

namespace skein::request {

/// Sums of the counters of all devices of all models in memory.
struct device_totals {
  std::uint64_t slots = 0, slots_used = 0, waiting = 0, parked = 0, paused = 0, requests = 0, parked_bytes = 0;
  std::uint64_t ticks = 0, prompt_tokens = 0, generated_tokens = 0;
  std::uint64_t finished = 0, rejected = 0, cancelled = 0, preemptions = 0;

  explicit device_totals(const loaded_models& models);
  [[nodiscard]] std::uint64_t running() const { return requests - waiting; }

 private:
  void add(const model_device& device);
};

}  // namespace skein::request
