#include "actors/request/service/cors.hpp"

#include <algorithm>

namespace skein::request {

constexpr const char* readable =
    "X-Request-Id, X-Session-State, Idempotent-Replayed, X-Skein-Ignored-Fields, Retry-After, X-Should-Retry, "
    "openai-processing-ms";

connection::header_list cors_headers(const connection::request_head& head, std::span<const std::string> origins,
                                     bool has_password) {
  const std::string_view origin = head.field("origin");
  if (origin.empty()) return {};
  const bool any = has_password || std::ranges::find(origins, "*") != origins.end();
  if (any) return {{"Access-Control-Allow-Origin", "*"}, {"Access-Control-Expose-Headers", readable}};
  if (std::ranges::find(origins, origin) == origins.end()) return {};
  return {{"Access-Control-Allow-Origin", std::string(origin)},
          {"Access-Control-Expose-Headers", readable},
          {"Vary", "Origin"}};
}

connection::header_list preflight_headers(const connection::request_head& head) {
  const std::string_view asked = head.field("access-control-request-headers");
  return {{"Access-Control-Allow-Methods", "GET, POST, PUT, DELETE, OPTIONS"},
          {"Access-Control-Allow-Headers", asked.empty() ? "Content-Type, Authorization" : std::string(asked)},
          {"Access-Control-Max-Age", "86400"}};
}

}  // namespace skein::request
