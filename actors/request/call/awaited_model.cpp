#include "actors/request/call/awaited_model.hpp"

#include <string>
#include <utility>

#include "protocol/requests/body_head.hpp"

namespace skein::request {

bool model_comes(const service_context& context, const loaded_models::meant& meant) {
  using absence = loaded_models::absence;
  const bool sleeps = meant.why == absence::resting || meant.why == absence::available;
  if (!sleeps || !context.change_model) return meant.why == absence::coming;
  if (context.models->call(meant.id)) {
    model_change wake;
    wake.what = model_change::task::wake;
    wake.file = meant.id;
    context.change_model(std::move(wake), [](const result<std::string>&) {});
  }
  return true;
}

/// The older servers return this as a client error.
error no_model(protocol::error_style style) {
  const auto kind = style == protocol::error_style::flat ? error_kind::invalid_argument : error_kind::unavailable;
  return {kind, "no model is loaded; call POST /v1/model/load first", ""};
}

std::optional<error> may_not_use(const caller& who, std::string_view model) {
  if (model.empty() || who.may_use(model)) return std::nullopt;
  return error{error_kind::forbidden, "this key may not use the model '" + std::string(model) + "'", "model"};
}

std::string named_in(std::string_view body, const service_context& context) {
  if (!context.models->may_choose()) return {};
  return protocol::read_body_head(body, context.settings.limits).model;
}

result<model_ref> model_at_hand(const service_context& context, const caller& who, std::string_view name,
                                protocol::error_style style) {
  const auto meant = context.models->find(name, who.admin);
  if (auto no = may_not_use(who, meant.id)) return *no;
  if (meant.model) return meant.model;
  if (model_comes(context, meant)) return error{error_kind::unavailable, "the model is being loaded", ""};
  return no_model(style);
}

}  // namespace skein::request
