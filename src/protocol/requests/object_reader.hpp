#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "protocol/json/json.hpp"
#include "protocol/requests/generation_request.hpp"
#include "protocol/requests/ignored_fields.hpp"

namespace skein::protocol {

/// Keeps the first error found in a body. A parser reads all fields without checking for errors, and checks here once
/// at the end.
class first_fault {
 public:
  void report(error_kind kind, std::string field, std::string message);
  [[nodiscard]] bool found() const { return first_.has_value(); }
  [[nodiscard]] const error& get() const { return *first_; }

 private:
  std::optional<error> first_;
};

/// Reads the members of one JSON object. `null` equals absent. A member of the wrong type or out of range is reported
/// with its path and reads as absent. Members that are never read are ignored.
class object_reader {
 public:
  /// `object` must be an object (checked); `path` is its name in errors, empty for the body itself.
  object_reader(json_value object, std::string path, first_fault& fault);
  /// A lenient reader of the same object: numbers and booleans may be strings ("0.5", "True"), and missing members are
  /// searched in its member `more`, if that is an object.
  [[nodiscard]] object_reader loosely(std::string_view more) const;

  /// A reader of the same object that records the members read from it, and from readers that loosely() derives from
  /// it.
  [[nodiscard]] object_reader noting(asked_fields& asked) const;

  [[nodiscard]] std::optional<json_value> value(std::string_view name) const;
  /// Whether the member is present and null.
  [[nodiscard]] bool is_null(std::string_view name) const;
  [[nodiscard]] std::optional<bool> boolean(std::string_view name) const;
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name, std::int64_t min, std::int64_t max) const;
  /// A 64-bit integer, signed or unsigned.
  [[nodiscard]] std::optional<std::uint64_t> bits(std::string_view name) const;
  [[nodiscard]] std::optional<double> number(std::string_view name, double min, double max) const;
  [[nodiscard]] std::optional<std::string_view> text(std::string_view name) const;
  [[nodiscard]] std::optional<json_value> array(std::string_view name) const;
  [[nodiscard]] std::optional<object_reader> object(std::string_view name) const;

  /// The names of the members that begin with `prefix`. Does not count as reading them.
  [[nodiscard]] std::vector<std::string_view> names_with(std::string_view prefix) const;

  /// The members that are not in `asked`.
  [[nodiscard]] std::vector<std::string> others(const asked_fields& asked) const { return asked.others_of(object_); }

  [[nodiscard]] std::string path_of(std::string_view name) const;
  [[nodiscard]] first_fault& fault() const { return fault_; }

  /// Reports that the member is invalid: "<path> <complaint>".
  void refuse(std::string_view name, std::string_view complaint) const;
  /// Reports that the member requests an unsupported feature.
  void refuse_unsupported(std::string_view name) const;

 private:
  json_value object_;
  std::string path_;
  first_fault& fault_;
  asked_fields* asked_ = nullptr;  // null: reads are not recorded
  bool loose_ = false;
  std::optional<json_value> more_;
  std::string more_path_;
};

/// The text for errors: "must be a number from 0 to 1". Bounds that are no limit are left out.
[[nodiscard]] std::string number_complaint(double min, double max);

/// An integer from `min` to `max`; anything else is reported at `path` and gives nullopt.
[[nodiscard]] std::optional<std::int64_t> read_integer(json_value value, const std::string& path, std::int64_t min,
                                                       std::int64_t max, first_fault& fault);

/// Token ids of a list, at most `tokens_max`; ids are not checked against a vocabulary. Reports invalid elements.
[[nodiscard]] std::vector<token_id> read_token_list(json_value list, const std::string& path, std::size_t tokens_max,
                                                    first_fault& fault);

/// Parses a body that must be one JSON object.
[[nodiscard]] result<json_document> parse_object(std::string_view text, const request_limits& limits);

/// Parses such a body and returns the result of `read(body)`, or the first error: the frame of every parser.
template <typename Read>
[[nodiscard]] auto read_body(std::string_view text, const request_limits& limits, Read read)
    -> result<std::invoke_result_t<Read, const object_reader&>> {
  const auto document = parse_object(text, limits);
  if (!document) return document.error();
  first_fault fault;
  auto made = read(object_reader(document->root(), "", fault));
  if (fault.found()) return fault.get();
  return made;
}

}  // namespace skein::protocol
