#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

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
  model::state_layout layout;                ///< of the engine's states
  std::vector<request::tuned_state> states;  ///< that the model begins with
};

/// How a model is loaded while the server runs.
struct load_order {
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;  ///< called on the loading thread
  std::optional<std::size_t> memory_taken;  ///< bytes of models that are loaded; none: the engine finds out what fits
};

/// Loads the model, or makes the fake engine of `engine.device = "fake"` (load tests of everything but the model).
/// Errors: those of cli/open_model; no_memory, naming bytes, for what does not fit beside them.
[[nodiscard]] result<opened_engine> open_engine(const config::config& c, const load_order& order = {});

}  // namespace skein::supervisor
