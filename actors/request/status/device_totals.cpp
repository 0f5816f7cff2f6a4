#include "actors/request/status/device_totals.hpp"

#include <algorithm>

namespace skein::request {

device_totals::device_totals(const loaded_models& models) {
  for (const auto& model : models.resident())
    for (const model_device& device : model->devices) add(device);
}

void device_totals::add(const model_device& device) {
  const device::device_counters& d = *device.counters;
  const std::uint32_t all = d.requests;
  slots += d.slots;
  slots_used += d.slots_used;
  requests += all;
  waiting += std::min(all, d.waiting.load());
  parked += d.parked;
  paused += d.paused;
  parked_bytes += d.parked_bytes;
  ticks += d.ticks;
  prompt_tokens += d.prompt_tokens;
  generated_tokens += d.generated_tokens;
  finished += d.finished;
  rejected += d.rejected;
  cancelled += d.cancelled;
  preemptions += d.preemptions;
}

}  // namespace skein::request
