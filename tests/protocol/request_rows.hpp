#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "protocol/requests/dialect.hpp"

namespace skein::protocol::test {

using parser = result<generation_request> (*)(std::string_view, const model_preset&, const request_limits&);

/// A base body with one more member, and a fact about the request that comes out.
struct accepted_row {
  std::string member;
  std::function<bool(const generation_request&)> fact;
};

/// A base body with one more member, and the field that the refusal names.
struct refused_row {
  std::string member;
  std::string field;
  error_kind kind = error_kind::invalid_argument;
};

/// `base` without its closing brace, e.g. R"({"prompt":"x")".
void check_accepted(parser parse, const std::string& base, std::span<const accepted_row> rows);
void check_refused(parser parse, const std::string& base, std::span<const refused_row> rows);

/// A body as one dialect has it.
template <const dialect& As>
[[nodiscard]] result<generation_request> parse_as(std::string_view body, const model_preset& preset,
                                                  const request_limits& limits) {
  return read_request(body, As, preset, limits).request;
}
inline constexpr parser parse_chat_completion = parse_as<dialects::chat>;
inline constexpr parser parse_completion = parse_as<dialects::completions>;

/// The rows that hold on both routes.
[[nodiscard]] std::span<const accepted_row> common_accepted();
[[nodiscard]] std::span<const refused_row> common_refused();

}  // namespace skein::protocol::test
