#pragma once
#include "actors/request/service_context.hpp"
#include "base/error.hpp"
#include "protocol/http_error.hpp"

namespace skein::request {

/// Whether a model is on its way where none is loaded, so that who needs one may wait. One that rests is called by
/// this.
[[nodiscard]] bool model_comes(const service_context& context);

/// What a request hears where no model is loaded and none comes.
[[nodiscard]] error no_model(protocol::error_style style);

}  // namespace skein::request
