#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "protocol/generation_request.hpp"
#include "protocol/ignored_fields.hpp"
#include "protocol/json.hpp"

namespace skein::protocol {

/// Keeps the first thing found wrong with a body. A parser reads field after field as if all were well, and looks here
/// once at its end.
class first_fault {
 public:
  void report(error_kind kind, std::string field, std::string message);
  [[nodiscard]] bool found() const { return first_.has_value(); }
  [[nodiscard]] const error& get() const { return *first_; }

 private:
  std::optional<error> first_;
};

/// Reads the members of one JSON object. `null` equals absent. A member of the wrong type or out of range is reported
/// with its path and reads as absent; members that nobody asks for are ignored.
class object_reader {
 public:
  /// `object` must be an object (checked); `path` is how errors name it, empty for the body itself.
  object_reader(json_value object, std::string path, first_fault& fault);
  /// The same object as older clients fill it: numbers and truths may come as texts ("0.5", "True"), and what it lacks
  /// is looked for in its member `more`, where that is an object.
  [[nodiscard]] object_reader loosely(std::string_view more) const;

  /// The same object; what is asked of it, and of readers made of it by loosely(), is noted.
  [[nodiscard]] object_reader noting(asked_fields& asked) const;

  [[nodiscard]] std::optional<json_value> value(std::string_view name) const;
  /// The member is there, and null.
  [[nodiscard]] bool is_null(std::string_view name) const;
  [[nodiscard]] std::optional<bool> boolean(std::string_view name) const;
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name, std::int64_t min, std::int64_t max) const;
  /// A whole number of 64 bits, with a sign or without.
  [[nodiscard]] std::optional<std::uint64_t> bits(std::string_view name) const;
  [[nodiscard]] std::optional<double> number(std::string_view name, double min, double max) const;
  [[nodiscard]] std::optional<std::string_view> text(std::string_view name) const;
  [[nodiscard]] std::optional<json_value> array(std::string_view name) const;
  [[nodiscard]] std::optional<object_reader> object(std::string_view name) const;

  /// The members that `asked` has not.
  [[nodiscard]] std::vector<std::string> others(const asked_fields& asked) const { return asked.others_of(object_); }

  [[nodiscard]] std::string path_of(std::string_view name) const;
  [[nodiscard]] first_fault& fault() const { return fault_; }

  /// Reports that the member is wrong: "<path> <complaint>".
  void refuse(std::string_view name, std::string_view complaint) const;
  /// Reports that the member asks for something this server does not do.
  void refuse_unsupported(std::string_view name) const;

 private:
  json_value object_;
  std::string path_;
  first_fault& fault_;
  asked_fields* asked_ = nullptr;  // null: nobody wants to know
  bool loose_ = false;
  std::optional<json_value> more_;
  std::string more_path_;
};

/// What a number must be, as errors say it: "must be a number from 0 to 1". An end that is no limit is not named.
[[nodiscard]] std::string number_complaint(double min, double max);

/// A whole number from `min` to `max` at `path`, or nothing, reported.
[[nodiscard]] std::optional<std::int64_t> read_integer(json_value value, const std::string& path, std::int64_t min,
                                                       std::int64_t max, first_fault& fault);

/// Token ids of a list, at most `tokens_max`; ids are not compared with a vocabulary. Reports what is none.
[[nodiscard]] std::vector<token_id> read_token_list(json_value list, const std::string& path, std::size_t tokens_max,
                                                    first_fault& fault);

/// A body that must be one JSON object.
[[nodiscard]] result<json_document> parse_object(std::string_view text, const request_limits& limits);

/// What `read(body)` makes of such a body, unless something in it is wrong: the frame of every parser.
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
