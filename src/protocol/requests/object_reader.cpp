#include "protocol/requests/object_reader.hpp"

#include <charconv>
#include <limits>
#include <utility>

#include "base/check.hpp"

namespace skein::protocol {
namespace {

std::string in_words(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

std::optional<json_value> given(json_value object, std::string_view name) {
  const auto found = object.member(name);
  return found && !found->is(json_kind::null) ? found : std::nullopt;
}

/// The range after "must be a number"; an empty bound is no limit.
std::string in_range(const std::string& min, const std::string& max) {
  if (!min.empty() && !max.empty()) return " from " + min + " to " + max;
  if (!min.empty()) return " of at least " + min;
  return max.empty() ? "" : " of at most " + max;
}

/// The number in a text, if the whole text is a number.
template <typename Number>
std::optional<Number> number_in(std::optional<std::string_view> text) {
  Number number{};
  if (!text || text->empty()) return std::nullopt;
  const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), number);
  return code == std::errc() && end == text->data() + text->size() ? std::optional(number) : std::nullopt;
}

std::optional<bool> truth_in(std::optional<std::string_view> text) {
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  return std::nullopt;
}

}  // namespace

void first_fault::report(error_kind kind, std::string field, std::string message) {
  if (!first_) first_ = error{kind, std::move(message), std::move(field)};
}

object_reader::object_reader(json_value object, std::string path, first_fault& fault)
    : object_(object), path_(std::move(path)), fault_(fault) {
  check(object.is(json_kind::object));
}

object_reader object_reader::loosely(std::string_view more) const {
  object_reader loose(*this);
  loose.loose_ = true;
  const auto found = value(more);
  if (!found || !found->is(json_kind::object)) return loose;
  loose.more_ = found;
  loose.more_path_ = path_of(more);
  return loose;
}

object_reader object_reader::noting(asked_fields& asked) const {
  object_reader noting(*this);
  noting.asked_ = &asked;
  return noting;
}

std::optional<json_value> object_reader::value(std::string_view name) const {
  if (asked_) asked_->note(name);
  if (const auto found = given(object_, name)) return found;
  return more_ ? given(*more_, name) : std::nullopt;
}

std::vector<std::string_view> object_reader::names_with(std::string_view prefix) const {
  std::vector<std::string_view> names;
  for (const auto [name, value] : object_.members())
    if (name.starts_with(prefix)) names.push_back(name);
  if (more_)
    for (const auto [name, value] : more_->members())
      if (name.starts_with(prefix)) names.push_back(name);
  return names;
}

bool object_reader::is_null(std::string_view name) const {
  if (asked_) asked_->note(name);
  const auto found = object_.member(name);
  return found && found->is(json_kind::null);
}

std::string object_reader::path_of(std::string_view name) const {
  const bool further = more_ && !given(object_, name) && given(*more_, name);
  return member_path(further ? more_path_ : path_, name);
}

std::optional<bool> object_reader::boolean(std::string_view name) const {
  const auto found = value(name);
  if (!found) return std::nullopt;
  auto read = found->boolean();
  if (!read && loose_) read = truth_in(found->text());
  if (!read) refuse(name, "must be true or false");
  return read;
}

std::optional<std::int64_t> object_reader::integer(std::string_view name, std::int64_t min, std::int64_t max) const {
  const auto found = value(name);
  if (!found) return std::nullopt;
  const auto in_text = loose_ ? number_in<std::int64_t>(found->text()) : std::nullopt;
  if (in_text && *in_text >= min && *in_text <= max) return in_text;
  return read_integer(*found, path_of(name), min, max, fault_);
}

std::optional<std::uint64_t> object_reader::bits(std::string_view name) const {
  const auto found = value(name);
  if (!found) return std::nullopt;
  auto negative = found->integer();
  if (!negative && loose_) negative = number_in<std::int64_t>(found->text());
  if (negative) return static_cast<std::uint64_t>(*negative);
  auto large = found->unsigned_integer();
  if (!large && loose_) large = number_in<std::uint64_t>(found->text());
  if (!large) refuse(name, "must be a 64-bit integer");
  return large;
}

std::optional<double> object_reader::number(std::string_view name, double min, double max) const {
  const auto found = value(name);
  if (!found) return std::nullopt;
  auto read = found->number();
  if (!read && loose_) read = number_in<double>(found->text());
  if (read && *read >= min && *read <= max) return read;
  refuse(name, number_complaint(min, max));
  return std::nullopt;
}

std::optional<std::string_view> object_reader::text(std::string_view name) const {
  const auto found = value(name);
  if (!found) return std::nullopt;
  const auto read = found->text();
  if (!read) refuse(name, "must be a string");
  return read;
}

std::optional<json_value> object_reader::array(std::string_view name) const {
  const auto found = value(name);
  if (!found || found->is(json_kind::array)) return found;
  refuse(name, "must be a list");
  return std::nullopt;
}

std::optional<object_reader> object_reader::object(std::string_view name) const {
  const auto found = value(name);
  if (!found) return std::nullopt;
  if (found->is(json_kind::object)) return object_reader(*found, path_of(name), fault_);
  refuse(name, "must be an object");
  return std::nullopt;
}

void object_reader::refuse(std::string_view name, std::string_view complaint) const {
  const auto path = path_of(name);
  fault_.report(error_kind::invalid_argument, path, path + ' ' + std::string(complaint));
}

void object_reader::refuse_unsupported(std::string_view name) const {
  const auto path = path_of(name);
  fault_.report(error_kind::unsupported, path, path + " is not supported by this server");
}

std::string number_complaint(double min, double max) {
  constexpr double float_max = std::numeric_limits<float>::max();
  return "must be a number" + in_range(min > -float_max ? in_words(min) : "", max < float_max ? in_words(max) : "");
}

std::optional<std::int64_t> read_integer(json_value value, const std::string& path, std::int64_t min, std::int64_t max,
                                         first_fault& fault) {
  const auto read = value.integer();
  if (read && *read >= min && *read <= max) return read;
  constexpr std::numeric_limits<std::int64_t> all;
  std::string range = "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
  if (max == all.max()) range = "a 64-bit integer" + (min == all.min() ? "" : ", at least " + std::to_string(min));
  fault.report(error_kind::invalid_argument, path, path + " must be " + range);
  return std::nullopt;
}

std::vector<token_id> read_token_list(json_value list, const std::string& path, std::size_t tokens_max,
                                      first_fault& fault) {
  std::vector<token_id> tokens;
  for (const auto element : list.elements()) {
    const auto token = element.integer();
    if (!token || *token < 0 || *token > std::numeric_limits<token_id>::max()) {
      const auto at = element_path(path, tokens.size());
      fault.report(error_kind::invalid_argument, at, at + " must be a token id");
      break;
    }
    if (tokens.size() >= tokens_max) {
      fault.report(error_kind::too_large, path, path + " has more than " + std::to_string(tokens_max) + " tokens");
      break;
    }
    tokens.push_back(static_cast<token_id>(*token));
  }
  return tokens;
}

result<json_document> parse_object(std::string_view text, const request_limits& limits) {
  auto document = json_document::parse(text, {limits.body_bytes_max, limits.json_depth_max});
  if (document && !document->root().is(json_kind::object))
    return error{error_kind::invalid_argument, "Invalid JSON: the body must be an object", ""};
  return document;
}

}  // namespace skein::protocol
