#pragma once
#include <string>

#include "actors/request/service_context.hpp"
#include "base/exposition.hpp"

namespace skein::request {

/// All numbers of the server, as /metrics tells them. Reads what others count; changes nothing.
[[nodiscard]] std::string metrics_page(const service_context& context, metrics::exposition::dialect dialect);

}  // namespace skein::request
