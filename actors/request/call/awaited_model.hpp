#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "actors/request/shared/service_context.hpp"
#include "base/error.hpp"
#include "protocol/json/http_error.hpp"

namespace skein::request {

/// Whether the requested model, which is not in memory, is being loaded, so that the request may wait. Starts the load
/// of a model that rests or is available.
[[nodiscard]] bool model_comes(const service_context& context, const loaded_models::meant& meant);

/// The refusal when no model is loaded or being loaded.
[[nodiscard]] error no_model(protocol::error_style style);

/// Why the caller may not use that model; nothing: it may.
[[nodiscard]] std::optional<error> may_not_use(const caller& who, std::string_view model);

/// The model that a body names; empty if the name cannot change which model answers.
[[nodiscard]] std::string named_in(std::string_view body, const service_context& context);

/// The model for a request that does not wait for one. Starts a load like model_comes.
/// Errors: forbidden; unavailable while the model is being loaded; no_model.
[[nodiscard]] result<model_ref> model_at_hand(const service_context& context, const caller& who, std::string_view name,
                                              protocol::error_style style);

}  // namespace skein::request
