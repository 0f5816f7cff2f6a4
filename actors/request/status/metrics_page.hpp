#pragma once
#include <string>

#include "actors/request/shared/service_context.hpp"
#include "base/metrics/exposition.hpp"

namespace skein::request {

/// All metrics of the server, as /metrics returns them. Reads counters only; changes nothing.
[[nodiscard]] std::string metrics_page(const service_context& context, metrics::exposition::dialect dialect);

}  // namespace skein::request
