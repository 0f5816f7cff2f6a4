#pragma once
#include <memory>

#include "actors/request/service_context.hpp"
#include "base/result.hpp"
#include "config/config.hpp"
#include "engine/engine.hpp"
#include "model/state_layout.hpp"

namespace skein::supervisor {

/// The engine that the configuration names, and what requests must know of its model.
struct opened_engine {
  std::unique_ptr<engine::engine> engine;
  request::served_model model;
  model::state_layout layout;  ///< of the engine's states
};

/// Loads the model, or makes the fake engine of `engine.device = "fake"` (load tests of everything but the model).
/// Errors: those of cli/open_model.
[[nodiscard]] result<opened_engine> open_engine(const config::config& c);

}  // namespace skein::supervisor
