#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace skein::protocol {

/// Appends compact JSON to a string. Whatever text it is given, what it writes is valid UTF-8: bytes that are no
/// character become U+FFFD. Commas come by themselves; brackets and names are the caller's to pair.
///   json_writer out(body);
///   out.begin_object().key("n").value(1).key("text").value("x").end_object();   // {"n":1,"text":"x"}
class json_writer {
 public:
  explicit json_writer(std::string& out) : out_(out) {}

  json_writer& begin_object() { return open('{'); }
  json_writer& end_object() { return close('}'); }
  json_writer& begin_array() { return open('['); }
  json_writer& end_array() { return close(']'); }

  json_writer& key(std::string_view name);
  json_writer& value(std::string_view text);
  json_writer& value(const char* text) { return value(std::string_view(text)); }
  json_writer& value(std::same_as<bool> auto truth) { return literal(truth ? "true" : "false"); }
  json_writer& value(std::signed_integral auto number) { return integer(number); }
  json_writer& value(std::unsigned_integral auto number) requires(!std::same_as<decltype(number), bool>) {
    return whole(number);
  }
  /// The shortest digits that read back as the same number; null for what JSON cannot say (NaN, infinities).
  json_writer& value(float number);
  json_writer& value(double number);
  json_writer& null() { return literal("null"); }
  /// A value that is JSON already.
  json_writer& json(std::string_view text) { return literal(text); }

 private:
  json_writer& open(char bracket);
  json_writer& close(char bracket);
  json_writer& literal(std::string_view text);
  template <typename Real>
  json_writer& real(Real number);
  template <typename Number, typename... Format>
  json_writer& digits(Number number, Format... format);
  json_writer& integer(std::int64_t number);
  json_writer& whole(std::uint64_t number);
  void quoted(std::string_view text);
  void separate();

  std::string& out_;
  bool after_value_ = false;
};

/// Bytes that json_writer writes for the text, without the quotes around it.
[[nodiscard]] std::size_t json_bytes(std::string_view text);

}  // namespace skein::protocol
