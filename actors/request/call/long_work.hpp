#pragma once
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "actors/byte_share.hpp"
#include "actors/request/call/attempt.hpp"
#include "actors/request/shared/service_context.hpp"

namespace skein::request {

/// How the outcome of long work returns to its call.
struct way_back {
  std::function<void(std::function<void()>)> post;  ///< runs work on the io thread of the call; thread safe
  std::string request_name;
  std::stop_token gone;  ///< requested when the call is over
  byte_share share{};    ///< of the client; its holders take turns on the worker pool
};

/// Posts `deliver`. If that throws for lack of memory, retries until it succeeds or the call is over.
inline void hand_back(const way_back& way, const std::function<void()>& deliver) {
  constexpr std::chrono::milliseconds breath{10};
  while (!way.gone.stop_requested()) {
    try {
      return way.post(deliver);
    } catch (const std::exception&) {
      std::this_thread::sleep_for(breath);
    }
  }
}

/// Runs `work`, which returns a result, on the worker pool and passes the result to `next` on the io thread, or an
/// error (internal) if it throws. Once the call is over, `work` does not start and `next` is not called. False: the
/// pool is full.
template <typename Work, typename Next>
[[nodiscard]] bool run_long(const service_context& context, way_back way, Work work, Next next) {
  // Made here, so that the error can come back even if memory is short.
  const auto outcome = std::make_shared<std::invoke_result_t<const Work&>>(server_failed());
  std::function<void()> deliver = [outcome, next = std::move(next)] { next(std::move(*outcome)); };
  const auto whose = way.share.holder();
  return context.run_long(whose, [way = std::move(way), work = std::move(work), outcome, deliver = std::move(deliver)] {
    if (way.gone.stop_requested()) return;
    try {
      *outcome = attempt(way.request_name, work);
    } catch (const std::exception&) {  // not even memory for a line in the log
    }
    hand_back(way, deliver);
  });
}

}  // namespace skein::request
