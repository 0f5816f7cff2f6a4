#include "config/key.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "config/limits.hpp"

namespace skein::config {
namespace {

std::string number(double n) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", n);
  return text;
}

}  // namespace

std::string key::legal() const {
  if (!form.empty()) return std::string(form);
  const value like = standard();
  if (std::holds_alternative<bool>(like)) return "true, false";
  if (std::holds_alternative<std::int64_t>(like) || std::holds_alternative<double>(like))
    return number(min) + " .. " + number(max);
  return {};
}

std::vector<std::string> key::words() const {
  std::vector<std::string> found;
  if (is_legal) return found;
  for (std::string_view rest = form; !rest.empty();) {
    const auto comma = std::min(rest.find(", "), rest.size());
    found.emplace_back(rest.substr(0, comma));
    rest = rest.substr(std::min(comma + 2, rest.size()));
  }
  return found;
}

std::optional<std::string> key::objection(const value& v) const {
  const value like = standard();
  if (v.index() != like.index())
    return "must be " + std::string(type_name(like)) + ", not " + std::string(type_name(v));
  const auto in_range = [&](double n) { return n >= min && n <= max; };
  if (const auto* n = std::get_if<std::int64_t>(&v); n && !in_range(static_cast<double>(*n)))
    return std::to_string(*n) + " is out of range (" + legal() + ')';
  if (const auto* n = std::get_if<double>(&v); n && !in_range(*n))
    return number(*n) + " is out of range (" + legal() + ')';
  if (const auto* text = std::get_if<std::string>(&v)) {
    if (text->size() > limits::text_bytes_max)
      return "is longer than " + std::to_string(limits::text_bytes_max) + " bytes";
    if (text->find('\0') != std::string::npos) return "contains a NUL byte";
    const auto listed = [&] { return form.empty() || std::ranges::count(words(), *text) != 0; };
    if (!(is_legal ? is_legal(*text) : listed())) return quoted_text(*text) + " is not one of: " + legal();
  }
  if (const auto* list = std::get_if<std::vector<std::string>>(&v)) {
    if (list->size() > limits::list_entries_max)
      return "has more than " + std::to_string(limits::list_entries_max) + " entries";
    if (std::any_of(list->begin(), list->end(), [](const auto& entry) { return entry.empty(); }))
      return "has an empty entry";
  }
  return std::nullopt;
}

std::string key::environment_name() const {
  if (path.starts_with("models.")) return {};
  std::string name = "SKEIN_";
  for (const char c : path) name += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace skein::config
