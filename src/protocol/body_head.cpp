#include "protocol/body_head.hpp"

#include "protocol/object_reader.hpp"

namespace skein::protocol {

body_head read_body_head(std::string_view body, const request_limits& limits) {
  body_head head;
  const auto document = parse_object(body, limits);
  if (!document) return head;
  const auto text = [&](const char* name) -> std::optional<std::string> {
    const auto member = document->root().member(name);
    const auto found = member ? member->text() : std::nullopt;
    return found ? std::optional<std::string>(*found) : std::nullopt;
  };
  head.password = text("password");
  head.model = text("model").value_or("");
  head.request_id = text("request_id").value_or(text("session_id").value_or(""));
  return head;
}

}  // namespace skein::protocol
