#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace skein::protocol {

/// Writes a JSON object that arrives in pieces without white space, with each character of a string in the form of
/// copy_json, and with its numbers as they are written. The output does not depend on how the text is cut. Names that
/// occur twice are passed on.
class json_stream {
 public:
  enum class phase : std::uint8_t { open, over, broken };

  /// Appends to `out` as far as the output is certain, and returns how many bytes of `text`, which is valid UTF-8, were
  /// read: all, unless the object ended, a byte continues no JSON, or values are nested more deeply than written_json.
  std::size_t push(std::string_view text, std::string& out);
  [[nodiscard]] phase now() const { return phase_; }

 private:
  enum class expected : std::uint8_t { object, value, value_or_end, name_or_end, name, colon, comma_or_end };

  [[nodiscard]] bool read(char c, std::string& out);
  [[nodiscard]] bool read_quoted(char c, std::string& out);
  [[nodiscard]] bool end_escape(std::string& out);
  [[nodiscard]] bool end_word();
  [[nodiscard]] bool begin_value(char c, std::string& out);
  [[nodiscard]] bool close(char c, std::string& out);
  void after_value() { next_ = open_.empty() ? expected::object : expected::comma_or_end; }

  phase phase_ = phase::open;
  expected next_ = expected::object;
  std::vector<char> open_;  // brackets
  bool quoted_ = false, is_name_ = false;
  std::string held_;  // an escape that is not over; or a number or a word, which was passed on as far as it came
};

}  // namespace skein::protocol
