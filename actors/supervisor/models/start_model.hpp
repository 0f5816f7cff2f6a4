#pragma once
#include <functional>
#include <memory>

#include "actors/device/device_actor.hpp"
#include "actors/request/shared/loaded_models.hpp"
#include "actors/supervisor/models/open_engine.hpp"
#include "base/error.hpp"
#include "config/config.hpp"

namespace skein::supervisor {

/// The environment of a model's devices; the sinks outlive them.
struct device_environment {
  device::event_sink& events;
  device::state_sink& states;
  std::function<void(const error&)> on_lost;  ///< the model lost its last device; called on a device thread
};

/// Starts one device actor for each engine. Throws std::exception if there is no thread or no memory.
[[nodiscard]] std::shared_ptr<request::loaded_model> start_model(opened_engine opened, const config::config& settings,
                                                                 const device_environment& around);

}  // namespace skein::supervisor
