#include "protocol/json/json.hpp"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/utf8.hpp"

namespace skein::protocol {

namespace dom = simdjson::dom;

/// Converts between json_value and simdjson's views, all of which are a document pointer and a tape index.
struct json_access {
  template <typename View>
  static View view(const json_value& value) {
    static_assert(sizeof(View) == sizeof(json_value) && std::is_trivially_copyable_v<View>);
    return std::bit_cast<View>(value);
  }
  template <typename View>
  static json_value value(const View& view) {
    static_assert(sizeof(View) == sizeof(json_value) && std::is_trivially_copyable_v<View>);
    return std::bit_cast<json_value>(view);
  }
  template <typename T>
  static std::optional<T> get(const json_value& value) {
    T out{};
    if (view<dom::element>(value).get(out) != simdjson::SUCCESS) return std::nullopt;
    return out;
  }
};

namespace {

constexpr std::size_t path_name_bytes_max = 64;
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";  // some editors and shells prepend it to a file

bool has_repeated_name(dom::object object, std::string_view& repeated) {
  if (object.size() < 2) return false;
  std::vector<std::string_view> names;
  names.reserve(object.size());
  for (const auto member : object) names.push_back(member.key);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return false;
  repeated = *twice;
  return true;
}

/// The path of a repeated name in `value`, if there is one. Recursion is bounded by depth_max.
std::optional<std::string> repeated_name(dom::element value, const std::string& path) {
  if (value.is_array()) {
    std::size_t index = 0;
    const dom::array array = value.get_array().value_unsafe();
    for (const auto element : array) {
      if (element.is_array() || element.is_object())
        if (auto found = repeated_name(element, element_path(path, index))) return found;
      ++index;
    }
  } else if (value.is_object()) {
    const dom::object object = value.get_object().value_unsafe();
    if (std::string_view name; has_repeated_name(object, name)) return member_path(path, name);
    for (const auto member : object)
      if (member.value.is_array() || member.value.is_object())
        if (auto found = repeated_name(member.value, member_path(path, member.key))) return found;
  }
  return std::nullopt;
}

error not_json(simdjson::error_code code, const json_limits& limits) {
  if (code == simdjson::DEPTH_ERROR)
    return {error_kind::invalid_argument,
            "the JSON body is nested deeper than " + std::to_string(limits.depth_max) + " levels", ""};
  if (code == simdjson::MEMALLOC) return {error_kind::unavailable, "not enough memory to read the body", ""};
  const auto why = [code]() -> const char* {
    if (code == simdjson::NUMBER_ERROR) return "a number is malformed or does not fit into 64 bits";
    if (code == simdjson::STRING_ERROR) return "a string has an invalid escape or an unpaired surrogate";
    return simdjson::error_message(code);
  };
  return {error_kind::invalid_argument, std::string("Invalid JSON: ") + why(), ""};
}

}  // namespace

json_kind json_value::kind() const {
  switch (json_access::view<dom::element>(*this).type()) {
    case dom::element_type::NULL_VALUE: return json_kind::null;
    case dom::element_type::BOOL: return json_kind::boolean;
    case dom::element_type::INT64:
    case dom::element_type::UINT64:
    case dom::element_type::DOUBLE: return json_kind::number;
    case dom::element_type::STRING: return json_kind::string;
    case dom::element_type::ARRAY: return json_kind::array;
    case dom::element_type::OBJECT: return json_kind::object;
  }
  return json_kind::null;
}

bool json_value::is_empty_array() const { return is(json_kind::array) && !(elements().begin() != elements().end()); }

std::optional<bool> json_value::boolean() const { return json_access::get<bool>(*this); }
std::optional<double> json_value::number() const { return json_access::get<double>(*this); }
std::optional<std::uint64_t> json_value::unsigned_integer() const { return json_access::get<std::uint64_t>(*this); }
std::optional<std::string_view> json_value::text() const { return json_access::get<std::string_view>(*this); }

std::optional<std::int64_t> json_value::integer() const {
  if (const auto whole = json_access::get<std::int64_t>(*this)) return whole;
  constexpr double exact_max = 9007199254740992.0;  // 2^53: above it doubles skip integers
  if (!json_access::view<dom::element>(*this).is_double()) return std::nullopt;
  const auto real = number();
  if (!real || std::abs(*real) > exact_max || std::trunc(*real) != *real) return std::nullopt;
  return static_cast<std::int64_t>(*real);
}

std::optional<json_value> json_value::member(std::string_view name) const {
  dom::element found;
  if (json_access::view<dom::element>(*this).at_key(name).get(found) != simdjson::SUCCESS) return std::nullopt;
  return json_access::value(found);
}

json_value::range<json_value::element_iterator> json_value::elements() const {
  check(is(json_kind::array));
  const auto array = json_access::view<dom::element>(*this).get_array().value_unsafe();
  range<element_iterator> all;
  all.first.at_ = json_access::value(array.begin());
  all.last.at_ = json_access::value(array.end());
  return all;
}

json_value::range<json_value::member_iterator> json_value::members() const {
  check(is(json_kind::object));
  const auto object = json_access::view<dom::element>(*this).get_object().value_unsafe();
  range<member_iterator> all;
  all.first.at_ = json_access::value(object.begin());
  all.last.at_ = json_access::value(object.end());
  return all;
}

json_value::element_iterator& json_value::element_iterator::operator++() {
  auto position = json_access::view<dom::array::iterator>(at_);
  at_ = json_access::value(++position);
  return *this;
}

json_member json_value::member_iterator::operator*() const {
  const auto position = json_access::view<dom::object::iterator>(at_);
  return {position.key(), json_access::value(position.value())};
}

json_value::member_iterator& json_value::member_iterator::operator++() {
  auto position = json_access::view<dom::object::iterator>(at_);
  at_ = json_access::value(++position);
  return *this;
}

json_document::json_document() : parser_(std::make_unique<dom::parser>()) {}
json_document::json_document(json_document&&) noexcept = default;
json_document& json_document::operator=(json_document&&) noexcept = default;
json_document::~json_document() = default;

result<json_document> json_document::parse(std::string_view text, const json_limits& limits) {
  if (text.size() > limits.bytes_max)
    return error{
        error_kind::too_large,
        "the body has " + std::to_string(text.size()) + " bytes; the limit is " + std::to_string(limits.bytes_max), ""};
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  if (text.empty()) return not_json(simdjson::EMPTY, limits);
  json_document document;
  // simdjson counts the document itself as one level; the depth can be set only here.
  if (const auto code = document.parser_->allocate(std::max<std::size_t>(text.size(), 64), limits.depth_max + 1))
    return not_json(code, limits);
  dom::element root;
  constexpr bool copy_to_padded = true;
  if (const auto code = document.parser_->parse(text.data(), text.size(), copy_to_padded).get(root))
    return not_json(code, limits);
  if (const auto path = limits.unique_names ? repeated_name(root, "") : std::nullopt)
    return error{error_kind::invalid_argument, "the name '" + *path + "' appears twice", *path};
  document.root_ = json_access::value(root);
  return document;
}

std::string member_path(std::string_view parent, std::string_view name) {
  std::string path(parent);
  if (!path.empty()) path += '.';
  path += utf8_prefix(name, path_name_bytes_max);
  return path;
}

std::string element_path(std::string_view parent, std::size_t index) {
  return std::string(parent) + '[' + std::to_string(index) + ']';
}

}  // namespace skein::protocol
