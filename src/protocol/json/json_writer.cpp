#include "protocol/json/json_writer.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "base/utf8.hpp"

namespace skein::protocol {
namespace {

void append_escaped(std::string& out, char c) {
  constexpr std::string_view hex = "0123456789abcdef";
  switch (c) {
    case '"': out += "\\\""; break;
    case '\\': out += "\\\\"; break;
    case '\b': out += "\\b"; break;
    case '\f': out += "\\f"; break;
    case '\n': out += "\\n"; break;
    case '\r': out += "\\r"; break;
    case '\t': out += "\\t"; break;
    default:
      out += "\\u00";
      out += hex[static_cast<unsigned char>(c) >> 4];
      out += hex[static_cast<unsigned char>(c) & 15];
  }
}

bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

}  // namespace

json_writer& json_writer::key(std::string_view name) {
  separate();
  quoted(name);
  out_ += ':';
  after_value_ = false;
  return *this;
}

json_writer& json_writer::value(std::string_view text) {
  separate();
  quoted(text);
  after_value_ = true;
  return *this;
}

json_writer& json_writer::value(float number) { return real(number); }
json_writer& json_writer::value(double number) { return real(number); }
json_writer& json_writer::integer(std::int64_t number) { return digits(number); }
json_writer& json_writer::whole(std::uint64_t number) { return digits(number); }

template <typename Real>
json_writer& json_writer::real(Real number) {
  if (!std::isfinite(number)) return null();
  // Without an exponent, a large number looks like an integer, and parsers reject integers above 64 bits.
  return std::abs(number) < Real(1e15) ? digits(number) : digits(number, std::chars_format::scientific);
}

template <typename Number, typename... Format>
json_writer& json_writer::digits(Number number, Format... format) {
  std::array<char, 32> buffer;  // the shortest form of a double has at most 24 characters
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, format...).ptr;
  return literal({buffer.data(), end});
}

json_writer& json_writer::open(char bracket) {
  separate();
  out_ += bracket;
  after_value_ = false;
  return *this;
}

json_writer& json_writer::close(char bracket) {
  out_ += bracket;
  after_value_ = true;
  return *this;
}

json_writer& json_writer::literal(std::string_view text) {
  separate();
  out_ += text;
  after_value_ = true;
  return *this;
}

void json_writer::quoted(std::string_view text) {
  out_ += '"';
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && is_plain(text[plain])) ++plain;
    out_ += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const utf8_head head = first_character(text);
    if (!head.is_character())
      out_ += "\xEF\xBF\xBD";
    else if (head.bytes > 1)
      out_ += text.substr(0, head.bytes);
    else
      append_escaped(out_, text[0]);
    text.remove_prefix(head.bytes);
  }
  out_ += '"';
}

void json_writer::separate() {
  if (after_value_) out_ += ',';
}

std::size_t json_bytes(std::string_view text) {
  std::string written;
  json_writer(written).value(text);
  return written.size() - 2;
}

}  // namespace skein::protocol
