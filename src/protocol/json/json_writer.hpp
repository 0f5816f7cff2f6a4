#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace skein::protocol {

/// Appends compact JSON to a string. The output is always valid UTF-8: ill-formed bytes become U+FFFD. Commas are
/// inserted automatically; the caller pairs brackets and names.
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
  /// The shortest digits that parse to the same number; null for NaN and infinities, which JSON does not have.
  json_writer& value(float number);
  json_writer& value(double number);
  json_writer& null() { return literal("null"); }
  /// A value that is already JSON.
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

/// Number of bytes that json_writer writes for the text, without the quotes.
[[nodiscard]] std::size_t json_bytes(std::string_view text);

}  // namespace skein::protocol
