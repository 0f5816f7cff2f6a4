#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "actors/request/service_context.hpp"
#include "base/error.hpp"
#include "protocol/http_error.hpp"

namespace skein::request {

/// Whether the model is on its way that a request means and that is not in memory, so that who needs it may wait. One
/// that rests is called by this.
[[nodiscard]] bool model_comes(const service_context& context, const loaded_models::meant& meant);

/// What a request hears where no model is loaded and none comes.
[[nodiscard]] error no_model(protocol::error_style style);

/// Why this one may not use that model; nothing: it may.
[[nodiscard]] std::optional<error> may_not_use(const caller& who, std::string_view model);

/// The model that a body names, where that may change who answers it.
[[nodiscard]] std::string named_in(std::string_view body, const service_context& context);

/// The model that somebody means who does not wait for one. Errors: forbidden; unavailable while it comes, which this
/// has it do; no_model.
[[nodiscard]] result<model_ref> model_at_hand(const service_context& context, const caller& who, std::string_view name,
                                              protocol::error_style style);

}  // namespace skein::request
