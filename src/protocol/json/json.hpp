#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "config/limits.hpp"

namespace simdjson::dom {
class parser;
}

/// Reading JSON from clients. simdjson takes seconds to compile, so only json.cpp includes it and hands out views.
namespace skein::protocol {

enum class json_kind : std::uint8_t { null, boolean, number, string, array, object };

/// A value of a json_document; a cheap view that lives as long as the document.
class json_value {
 public:
  class element_iterator;
  class member_iterator;
  template <typename Iterator>
  struct range {
    Iterator first, last;
    [[nodiscard]] Iterator begin() const { return first; }
    [[nodiscard]] Iterator end() const { return last; }
  };

  [[nodiscard]] json_kind kind() const;
  [[nodiscard]] bool is(json_kind k) const { return kind() == k; }
  [[nodiscard]] bool is_empty_array() const;

  // The value, if it has that type and fits. `integer` accepts 3.0 as 3; `unsigned_integer` accepts up to 2^64 - 1.
  [[nodiscard]] std::optional<bool> boolean() const;
  [[nodiscard]] std::optional<double> number() const;
  [[nodiscard]] std::optional<std::int64_t> integer() const;
  [[nodiscard]] std::optional<std::uint64_t> unsigned_integer() const;
  [[nodiscard]] std::optional<std::string_view> text() const;

  /// The member of an object, or nullopt. Scans the object from its start, so use it for a few known names only.
  [[nodiscard]] std::optional<json_value> member(std::string_view name) const;

  /// The values of an array, in order; the kind must be array (checked).
  [[nodiscard]] range<element_iterator> elements() const;
  /// The names and values of an object, in order; the kind must be object (checked).
  [[nodiscard]] range<member_iterator> members() const;

 private:
  [[maybe_unused]] const void* document_ = nullptr;  // with index_: the bits of a simdjson::dom::element
  std::size_t index_ = 0;
};

struct json_member {
  std::string_view name;
  json_value value;
};

class json_value::element_iterator {
 public:
  json_value operator*() const { return at_; }
  element_iterator& operator++();
  bool operator!=(const element_iterator& other) const { return at_.index_ != other.at_.index_; }

 private:
  friend class json_value;
  json_value at_;
};

class json_value::member_iterator {
 public:
  json_member operator*() const;
  member_iterator& operator++();
  bool operator!=(const member_iterator& other) const { return at_.index_ != other.at_.index_; }

 private:
  friend class json_value;
  json_value at_;  // the name; its value follows on the tape
};

struct json_limits {
  std::size_t bytes_max = 8u << 20;
  std::size_t depth_max = 64;  ///< nesting of arrays and objects that are not empty
  bool unique_names = true;    ///< refuse an object with two members of one name
};

/// For JSON that was part of a request, or that the log keeps: it met the limits of a body when it came, whatever these
/// are now, and is as long as its record. The log nests the members of a request a few levels deeper.
inline constexpr json_limits known_json{.bytes_max = std::numeric_limits<std::size_t>::max(),
                                        .depth_max = config::limits::json_depth_max + 8};

/// For JSON that a model wrote, which a grammar lets be nested this deeply.
inline constexpr json_limits written_json{.depth_max = 256, .unique_names = false};

/// A parsed text. Owns up to about 12 times the text's size and frees it on destruction, so memory does not grow with
/// the largest body ever parsed.
class json_document {
 public:
  /// Errors: too_large above bytes_max; invalid_argument if the text is not JSON in valid UTF-8 or is nested too
  /// deeply; and, with the path in `field`, for duplicate names in an object (parsers disagree on which one counts).
  [[nodiscard]] static result<json_document> parse(std::string_view text, const json_limits& limits);

  json_document(json_document&&) noexcept;
  json_document& operator=(json_document&&) noexcept;
  ~json_document();

  [[nodiscard]] json_value root() const { return root_; }

 private:
  json_document();
  std::unique_ptr<simdjson::dom::parser> parser_;
  json_value root_;
};

/// The path of a member or an element as errors name it: member_path("messages[1]", "role") is "messages[1].role".
/// Names longer than 64 bytes are cut.
[[nodiscard]] std::string member_path(std::string_view parent, std::string_view name);
[[nodiscard]] std::string element_path(std::string_view parent, std::size_t index);

}  // namespace skein::protocol
