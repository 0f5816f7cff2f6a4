#pragma once
#include <exception>
#include <string>
#include <type_traits>

#include "base/log/log.hpp"
#include "base/result.hpp"

namespace skein::request {

[[nodiscard]] inline error server_failed() {
  return {error_kind::internal, "the server failed while it processed this request", ""};
}

/// Returns the result of `work`. If `work` throws, logs the reason with the request's name and returns a generic error
/// (internal). For work whose caller waits for an answer.
template <typename Work>
[[nodiscard]] std::invoke_result_t<Work> attempt(const std::string& request_name, Work&& work) {
  try {
    return work();
  } catch (const std::exception& trouble) {
    log::error("a request failed", {{"request_id", request_name}, {"why", trouble.what()}});
    return server_failed();
  }
}

/// The same for work without a result.
template <typename Work>
[[nodiscard]] result<void> attempt_step(const std::string& request_name, Work&& work) {
  return attempt(request_name, [&]() -> result<void> {
    work();
    return {};
  });
}

}  // namespace skein::request
