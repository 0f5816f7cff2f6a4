#include "protocol/lenient_fields.hpp"

#include <charconv>

namespace skein::protocol {

std::string required_text(const object_reader& body, std::string_view name) {
  const auto text = body.text(name);
  if (!text || text->empty()) body.refuse(name, "must be a string that is not empty");
  return std::string(text.value_or(""));
}

std::optional<float> lenient_number(const object_reader& body, std::string_view name, double min, double max) {
  const auto value = body.value(name);
  const auto text = value ? value->text() : std::nullopt;
  std::optional<double> number;
  if (text) {
    double read = 0;
    const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), read);
    if (code == std::errc() && end == text->data() + text->size()) number = read;
    if (!number || !(*number >= min && *number <= max)) body.refuse(name, "is not a number in its range");
  } else {
    number = body.number(name, min, max);
  }
  return number ? std::optional(static_cast<float>(*number)) : std::nullopt;
}

bool lenient_flag(const object_reader& body, std::string_view name) {
  const auto value = body.value(name);
  const auto text = value ? value->text() : std::nullopt;
  if (!text) return body.boolean(name).value_or(false);
  if (*text == "true" || *text == "True" || *text == "1") return true;
  if (!text->empty() && *text != "false" && *text != "False" && *text != "0")
    body.refuse(name, "must be true or false");
  return false;
}

}  // namespace skein::protocol
