#pragma once
#include <cstdint>
#include <exception>

#include "base/log/log.hpp"

namespace skein::connection {

/// Runs a call into the service; false if it threw.
template <typename Function>
bool into_service(std::uint64_t connection_number, Function&& call) {
  try {
    call();
    return true;
  } catch (const std::exception& e) {
    log::error("a request handler failed", {{"what", e.what()}, {"connection", connection_number}});
    return false;
  }
}

}  // namespace skein::connection
