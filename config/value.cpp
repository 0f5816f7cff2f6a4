#include "config/value.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace skein::config {
namespace {

template <typename Number>
std::optional<value> parse_number(std::string_view text) {
  Number number{};
  const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (trouble != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(number)) return std::nullopt;
  }
  return value(number);
}

std::optional<value> parse_boolean(std::string_view text) {
  if (text == "true" || text == "True" || text == "1") return value(true);
  if (text == "false" || text == "False" || text == "0") return value(false);
  return std::nullopt;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return parts;
}

std::string number_text(double number) {
  char buffer[32];
  const auto [end, trouble] = std::to_chars(buffer, buffer + sizeof buffer, number);
  std::string text(buffer, end);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";  // TOML distinguishes 1 from 1.0
  return text;
}

}  // namespace

std::string_view type_name(const value& v) {
  constexpr std::string_view names[] = {"a boolean", "an integer", "a number", "a string", "a list of strings"};
  return names[v.index()];
}

std::optional<value> parse_value(std::string_view text, const value& like) {
  if (std::holds_alternative<bool>(like)) return parse_boolean(text);
  if (std::holds_alternative<std::int64_t>(like)) return parse_number<std::int64_t>(text);
  if (std::holds_alternative<double>(like)) return parse_number<double>(text);
  if (std::holds_alternative<std::string>(like)) return value(std::string(text));
  return value(split(text));
}

std::string quoted_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          char escape[8];
          std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
          out += escape;
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

std::string to_toml(const value& v) {
  if (const auto* boolean = std::get_if<bool>(&v)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&v)) return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&v)) return number_text(*number);
  if (const auto* text = std::get_if<std::string>(&v)) return quoted_text(*text);
  std::string list;
  for (const auto& entry : std::get<std::vector<std::string>>(v)) {
    list += list.empty() ? "" : ", ";
    list += quoted_text(entry);
  }
  return '[' + list + ']';
}

}  // namespace skein::config
