#include "tokenizer/python_literal.hpp"

#include <charconv>
#include <cstdint>
#include <optional>

#include "base/utf8.hpp"

namespace skein::tokenizer {
namespace {

error fault(const char* what) { return {error_kind::bad_file, what, {}}; }

/// Removes between `least` and `most` digits from the front of `text`.
std::optional<char32_t> take_digits(std::string_view& text, std::size_t least, std::size_t most, int base) {
  const std::string_view digits = text.substr(0, most);
  std::uint32_t value = 0;
  const char* const end = std::from_chars(digits.data(), digits.data() + digits.size(), value, base).ptr;
  const auto taken = static_cast<std::size_t>(end - digits.data());
  if (taken < least) return std::nullopt;
  text.remove_prefix(taken);
  return value;
}

/// The value of an escape of one letter, such as `n`.
std::optional<char> simple_escape(char letter) {
  switch (letter) {
    case '\\':
    case '\'':
    case '"': return letter;
    case 'a': return '\a';
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'v': return '\v';
    default: return std::nullopt;
  }
}

result<void> append_code(std::optional<char32_t> code, bool is_bytes, std::string& out) {
  if (!code) return fault("an escape has too few digits");
  if (is_bytes) {
    if (*code > 0xff) return fault("an escape exceeds one byte");
    out.push_back(static_cast<char>(*code));
    return {};
  }
  if (!is_scalar_value(*code)) return fault("an escape is not a Unicode character");
  append_utf8(*code, out);
  return {};
}

/// `rest` begins after the backslash; removes the escape from its front.
result<void> decode_escape(std::string_view& rest, bool is_bytes, std::string& out) {
  if (rest.empty()) return fault("the literal has no closing quote");
  const char letter = rest.front();
  if (const auto value = simple_escape(letter)) {
    rest.remove_prefix(1);
    out.push_back(*value);
    return {};
  }
  if (letter >= '0' && letter <= '7') return append_code(take_digits(rest, 1, 3, 8), is_bytes, out);
  const std::size_t digits = letter == 'x' ? 2 : is_bytes ? 0 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
  if (digits > 0) {
    rest.remove_prefix(1);
    return append_code(take_digits(rest, digits, digits, 16), is_bytes, out);
  }
  if (letter == 'N' && !is_bytes) return fault("escapes by character name are not supported");
  out.push_back('\\');
  return {};
}

}  // namespace

result<void> decode_python_literal(std::string_view literal, std::string& out) {
  const bool is_bytes = literal.starts_with('b');
  if (is_bytes) literal.remove_prefix(1);
  if (literal.empty() || (literal.front() != '\'' && literal.front() != '"')) return fault("not a quoted literal");
  const char quote = literal.front();
  if (literal.size() < 2 || literal.back() != quote) return fault("the literal has no closing quote");

  std::string_view rest = literal.substr(1, literal.size() - 2);
  while (!rest.empty()) {
    if (rest.front() == quote) return fault("there is text after the closing quote");
    if (rest.front() == '\\') {
      rest.remove_prefix(1);
      if (auto escape = decode_escape(rest, is_bytes, out); !escape) return escape.error();
      continue;
    }
    const utf8_head head = first_character(rest);
    if (!head.is_character()) return fault("the literal is not UTF-8");
    if (is_bytes && head.bytes > 1) return fault("a bytes literal has a character that is not ASCII");
    out.append(rest.substr(0, head.bytes));
    rest.remove_prefix(head.bytes);
  }
  return {};
}

}  // namespace skein::tokenizer
