#pragma once
#include <string>

#include "actors/connection/http.hpp"
#include "actors/request/service_context.hpp"

namespace skein::request {

/// What every answer to a request carries, whoever gives it and whatever it is.
struct answer_start {
  std::string name;                 ///< of the request, in X-Request-Id and the log
  connection::header_list headers;  ///< with its name, and what a page's browser wants to know
};

[[nodiscard]] answer_start start_answer(const connection::request_head& head, const service_context& context);
/// Of a request that is refused for what its header says.
[[nodiscard]] answer_start start_answer(const connection::header_list& fields, const service_context& context);

}  // namespace skein::request
