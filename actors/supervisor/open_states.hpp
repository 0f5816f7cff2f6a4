#pragma once
#include "actors/request/service_context.hpp"
#include "base/result.hpp"
#include "config/config.hpp"

namespace skein::supervisor {

/// The tuned states of model.tuned_states. Errors name the entry: those of load_tuned_state, and unsupported for a
/// model that takes none.
[[nodiscard]] result<request::tuned_states::list> open_states(const config::config& c,
                                                              const request::served_model& model);

}  // namespace skein::supervisor
