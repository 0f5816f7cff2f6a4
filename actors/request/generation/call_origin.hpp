#pragma once
#include <functional>
#include <string>

#include "actors/byte_share.hpp"
#include "actors/connection/http/http.hpp"
#include "actors/request/shared/service_context.hpp"
#include "base/clock.hpp"
#include "protocol/requests/dialect.hpp"

namespace skein::request {

/// What a call needs to know of its HTTP request.
struct call_origin {
  const protocol::dialect* dialect = &protocol::dialects::chat;
  std::string route;
  std::string request_name;         ///< X-Request-Id
  std::string client;               ///< address
  connection::header_list headers;  ///< that every response of this exchange carries
  bool authenticated = true;        ///< false: the body must bring the password
  byte_share share{};               ///< of the memory budget
  caller_ref who = anybody();       ///< once it is known
  steady_time received{};
  protocol::error_style errors = protocol::error_style::openai;
  std::string if_match, request_key;  ///< header fields If-Match and Idempotency-Key, as sent
  model_ref model;                    ///< answers the request; null: the body names it
  /// Called with the id of a response as soon as its turn is accepted; may be empty.
  std::function<void(const std::string& id)> named{};
};

}  // namespace skein::request
