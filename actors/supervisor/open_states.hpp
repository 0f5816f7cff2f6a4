#pragma once
#include "actors/supervisor/open_engine.hpp"
#include "base/result.hpp"
#include "config/config.hpp"

namespace skein::supervisor {

/// Gives a model the tuned states of model.tuned_states. Errors name the entry: those of load_tuned_state, and
/// unsupported for a model that takes none.
[[nodiscard]] result<void> open_states(const config::config& c, opened_engine& to);

/// Those of them that fit, for a model that came later; the log says which do not.
void open_fitting_states(const config::config& c, opened_engine& to);

}  // namespace skein::supervisor
