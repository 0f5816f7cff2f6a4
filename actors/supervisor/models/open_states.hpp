#pragma once
#include "actors/supervisor/models/open_engine.hpp"
#include "base/result.hpp"
#include "config/config.hpp"

namespace skein::supervisor {

/// Adds the tuned states of model.tuned_states to a model. Errors name the entry: those of load_tuned_state, and
/// unsupported for a model that accepts none.
[[nodiscard]] result<void> open_states(const config::config& c, opened_engine& to);

/// The same for a model loaded later: skips states that do not fit and logs them.
void open_fitting_states(const config::config& c, opened_engine& to);

}  // namespace skein::supervisor
