#include "protocol/body_password.hpp"

#include "protocol/object_reader.hpp"

namespace skein::protocol {

std::optional<std::string> body_password(std::string_view body, const request_limits& limits) {
  const auto document = parse_object(body, limits);
  if (!document) return std::nullopt;
  const auto member = document->root().member("password");
  const auto text = member ? member->text() : std::nullopt;
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

}  // namespace skein::protocol
