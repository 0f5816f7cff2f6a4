#pragma once
#include <random>

#include "protocol/responses_api/response_id.hpp"

namespace skein::request {

/// Random bytes that cannot be guessed from earlier ones.
[[nodiscard]] inline protocol::random_name new_name() {
  thread_local std::random_device random;
  protocol::random_name name;
  for (auto& byte : name) byte = static_cast<std::uint8_t>(random());
  return name;
}

}  // namespace skein::request
