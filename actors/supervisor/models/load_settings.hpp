#pragma once
#include "actors/request/shared/loaded_models.hpp"
#include "actors/supervisor/models/model_catalogue.hpp"
#include "base/result.hpp"
#include "config/config.hpp"

namespace skein::supervisor {

/// The configuration with which the model of a client's request is opened: that of the server, with what the request
/// and the file change. Errors: those of model::parse_strategy, model::buildable and of the catalogue.
[[nodiscard]] result<config::config> load_settings(const request::model_change& change,
                                                   const model_catalogue& catalogue, const config::config& server);

}  // namespace skein::supervisor
