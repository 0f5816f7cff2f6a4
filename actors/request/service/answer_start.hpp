#pragma once
#include <string>

#include "actors/connection/http/http.hpp"
#include "actors/request/shared/service_context.hpp"

namespace skein::request {

/// What every answer to a request carries, refusals included.
struct answer_start {
  std::string name;                 ///< of the request, in X-Request-Id and the log
  connection::header_list headers;  ///< X-Request-Id, CORS and the like
};

[[nodiscard]] answer_start start_answer(const connection::request_head& head, const service_context& context);
/// For a request that is refused because of its header.
[[nodiscard]] answer_start start_answer(const connection::header_list& fields, const service_context& context);

}  // namespace skein::request
