#pragma once
#include <boost/system/result.hpp>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace skein::connection {

/// A refusal of a request by the connection itself, before the service sees it: a status and a message for the client.
/// The connection always closes after one, since the rest of its bytes can no longer be trusted.
struct refusal {
  refusal() = default;
  refusal(unsigned http_status, std::string text) : status(http_status), message(std::move(text)) {}
  unsigned status = 400;
  std::string message;
};

/// 413: the body exceeds `bytes_max`.
[[nodiscard]] inline refusal body_too_large(std::uint64_t bytes_max) {
  return {413, "the body is larger than " + std::to_string(bytes_max) + " bytes"};
}

/// 413, 429 or 503: there is no memory for a body, see byte_share.
[[nodiscard]] inline refusal no_memory(const error& why) {
  const bool later = why.kind == error_kind::unavailable;
  return {why.kind == error_kind::too_large ? 413u : later ? 503u : 429u, why.message};
}

/// Called by result::value() on a refusal; request paths always test first.
[[noreturn]] inline void throw_exception_from_error(const refusal& why, const boost::source_location&) {
  throw std::runtime_error(why.message);
}

/// A value or a refusal.
template <typename T>
using accepted = boost::system::result<T, refusal>;

}  // namespace skein::connection
