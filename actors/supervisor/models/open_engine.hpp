#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "actors/request/shared/service_context.hpp"
#include "base/result.hpp"
#include "config/config.hpp"
#include "engine/engine.hpp"

namespace skein::supervisor {

/// The engine named in the configuration, and the properties of its model that requests need.
struct opened_engine {
  std::unique_ptr<engine::engine> engine;
  request::served_model model;
  std::vector<request::tuned_state> states;  ///< initial tuned states of the model
};

/// Options for loading a model while the server runs.
struct load_order {
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;  ///< called on the loading thread
  std::optional<std::size_t> memory_taken;  ///< bytes used by loaded models; none: without an admission check
};

/// Loads the model. In builds with SKEIN_FAKE_ENGINE, `engine.device` "fake" gets an engine without a model. Errors:
/// those of cli/open_model; no_memory, naming bytes, if the model does not fit.
[[nodiscard]] result<opened_engine> open_engine(const config::config& c, const load_order& order = {});

}  // namespace skein::supervisor
