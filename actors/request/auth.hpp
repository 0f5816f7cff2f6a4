#pragma once
#include <string_view>

#include "actors/connection/http.hpp"

namespace skein::request {

/// Compares in a time that depends on the length of `given` only.
[[nodiscard]] bool same_secret(std::string_view given, std::string_view secret);

enum class credentials : std::uint8_t { none, right, wrong };

/// What the header says: `Authorization: Bearer <password>` or `x-api-key: <password>`.
[[nodiscard]] credentials check_header(const connection::request_head& head, std::string_view password);

}  // namespace skein::request
