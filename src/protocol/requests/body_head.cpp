#include "protocol/requests/body_head.hpp"

#include "protocol/requests/object_reader.hpp"

namespace skein::protocol {

body_head read_body_head(std::string_view body, const request_limits& limits, const dialect* spoken) {
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
  if (spoken && spoken->choose) {
    first_fault nobody_asks;
    head.errors = spoken->choose(object_reader(document->root(), "", nobody_asks))->errors;
  }
  return head;
}

}  // namespace skein::protocol
