#include "actors/supervisor/models/start_model.hpp"

#include <atomic>
#include <cstddef>
#include <utility>

#include "actors/supervisor/settings/settings.hpp"
#include "base/clock.hpp"

namespace skein::supervisor {
namespace {

/// For one of several devices: calls `on_lost` when the last of them is lost. A call may be repeated.
std::function<void(const error&)> last_of(const std::shared_ptr<std::atomic<std::size_t>>& working,
                                          const std::function<void(const error&)>& on_lost) {
  return [=, counted = false, is_last = false](const error& why) mutable {
    if (!std::exchange(counted, true)) is_last = --*working == 0;
    if (is_last) on_lost(why);
  };
}

}  // namespace

std::shared_ptr<request::loaded_model> start_model(opened_engine opened, const config::config& settings,
                                                   const device_environment& around) {
  auto started = std::make_shared<request::loaded_model>();
  started->served = std::move(opened.model);
  auto options = device_options(settings);
  options.scheduling.prefill_chunk_tokens = started->served.prefill_chunk_tokens;
  const auto working = std::make_shared<std::atomic<std::size_t>>(opened.engines.size());
  for (auto& engine : opened.engines) {
    options.id = static_cast<device_id>(started->devices.size());
    started->devices.add(std::make_unique<device::device_actor>(std::move(engine), options, around.events, real_clock(),
                                                                last_of(working, around.on_lost), &around.states));
  }
  for (auto& state : opened.states)
    ignore(started->tuned.put(std::move(state), settings.model.tuned_states_max), "their number was checked");
  return started;
}

}  // namespace skein::supervisor
