#include "protocol/requests/lenient_fields.hpp"

#include <charconv>
#include <numeric>
#include <string>

namespace skein::protocol {
namespace {

constexpr double weight_max = 1e6;

/// A number, or digits in a string; nullopt unless it is from `min` to `max`.
std::optional<double> number_of(json_value value, double min, double max) {
  auto number = value.number();
  if (const auto text = value.text()) {
    double read = 0;
    const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), read);
    if (code == std::errc() && end == text->data() + text->size()) number = read;
  }
  return number && *number >= min && *number <= max ? number : std::nullopt;
}

}  // namespace

std::string required_text(const object_reader& body, std::string_view name) {
  const auto text = body.text(name);
  if (!text || text->empty()) body.refuse(name, "must be a non-empty string");
  return std::string(text.value_or(""));
}

std::optional<float> lenient_number(const object_reader& body, std::string_view name, double min, double max) {
  const auto value = body.value(name);
  if (!value) return std::nullopt;
  const auto number = number_of(*value, min, max);
  if (!number) body.refuse(name, number_complaint(min, max));
  return number ? std::optional(static_cast<float>(*number)) : std::nullopt;
}

std::optional<bool> lenient_flag(const object_reader& body, std::string_view name) {
  const auto value = body.value(name);
  const auto text = value ? value->text() : std::nullopt;
  if (!text) return body.boolean(name);
  if (*text == "True" || *text == "true") return true;
  if (*text == "False" || *text == "false") return false;
  body.refuse(name, "must be true or false");
  return std::nullopt;
}

std::optional<std::vector<float>> read_weights(const object_reader& body, std::string_view name,
                                               std::size_t count_max) {
  const auto list = body.array(name);
  if (!list || list->is_empty_array()) return std::nullopt;
  std::vector<float> weights;
  for (const auto element : list->elements()) {
    const auto weight = number_of(element, 0, weight_max);
    if (!weight) body.refuse(name, "must be a list of numbers from 0 to 1000000");
    weights.push_back(static_cast<float>(weight.value_or(1)));
    if (weights.size() <= count_max) continue;
    body.refuse(name, "must have at most " + std::to_string(count_max) + " numbers");
    return std::nullopt;
  }
  if (!(std::accumulate(weights.begin(), weights.end(), 0.0f) > 0)) body.refuse(name, "must have a sum above 0");
  return weights;
}

std::string_view or_empty_object(std::string_view body) {
  return body.find_first_not_of(" \t\r\n") == std::string_view::npos ? "{}" : body;
}

}  // namespace skein::protocol
