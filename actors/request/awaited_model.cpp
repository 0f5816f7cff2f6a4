#include "actors/request/awaited_model.hpp"

#include <utility>

namespace skein::request {

bool model_comes(const service_context& context) {
  using absence = loaded_models::absence;
  auto& why = context.models->why_none;
  absence resting = absence::resting;
  if (context.change_model && why.compare_exchange_strong(resting, absence::coming)) {
    model_change wake;
    wake.what = model_change::task::wake;
    context.change_model(std::move(wake), [](const result<std::string>&) {});
  }
  return why == absence::coming;
}

/// Clients of the older servers know this as their own mistake.
error no_model(protocol::error_style style) {
  const auto kind = style == protocol::error_style::flat ? error_kind::invalid_argument : error_kind::unavailable;
  return {kind, "no model is loaded; call POST /v1/model/load first", ""};
}

}  // namespace skein::request
