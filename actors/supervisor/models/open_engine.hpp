#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/request/shared/service_context.hpp"
#include "base/result.hpp"
#include "config/config.hpp"
#include "engine/engine.hpp"

namespace skein::supervisor {

/// The engines of the devices named in the configuration, and the properties of their model that requests need.
struct opened_engine {
  std::vector<std::unique_ptr<engine::engine>> engines;  ///< by device_id; at least one
  request::served_model model;
  std::vector<request::tuned_state> states;  ///< initial tuned states of the model
  std::string former_identity = {};          ///< of the model, in versions up to 0.2.0; empty: none
};

/// Options for loading a model while the server runs.
struct load_order {
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;  ///< called on the loading thread
  std::optional<std::size_t> memory_taken;  ///< bytes used by loaded models; none: without an admission check
  /// Refuse patterns of engine.weight_format that match no matrix. They may be meant for other models of the server.
  bool refuse_unmatched_patterns = true;
};

/// Loads the model on each device of `engine.device`, one after another. In builds with SKEIN_FAKE_ENGINE, the device
/// "fake" gets an engine without a model. Errors: those of cli/open_model; no_memory, naming bytes, if the model does
/// not fit; unavailable for devices of different kinds, whose answers would differ.
[[nodiscard]] result<opened_engine> open_engine(const config::config& c, const load_order& order = {});

/// Opens the files and devices that open_engine would, without reading weights or taking memory. Returns what
/// open_states needs of the model; nullopt if it cannot be opened. Appends the errors of open_engine, except no_memory
/// and those of the weights' values: the first one, and those that are independent of it.
[[nodiscard]] std::optional<request::served_model> check_engine(const config::config& c, std::vector<error>& faults);

}  // namespace skein::supervisor
