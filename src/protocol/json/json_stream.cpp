#include "protocol/json/json_stream.hpp"

#include <algorithm>

#include "protocol/json/json.hpp"
#include "protocol/json/json_writer.hpp"

namespace skein::protocol {
namespace {

constexpr std::string_view json_spaces = " \t\r\n";
constexpr std::size_t word_bytes_max = 1024;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_byte(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || c == 'E' || c == '-' || c == '+' || c == '.';
}

/// Numbers beyond 64 bits, which the parser refuses.
bool is_long_integer(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.front() != '0' && std::ranges::all_of(text, is_digit);
}

}  // namespace

std::size_t json_stream::push(std::string_view text, std::string& out) {
  std::size_t at = 0;
  for (; at < text.size() && phase_ == phase::open; ++at)
    if (!read(text[at], out)) {
      phase_ = phase::broken;
      return at;
    }
  return at;
}

bool json_stream::read(char c, std::string& out) {
  if (quoted_) return read_quoted(c, out);
  if (!held_.empty()) {
    if (is_word_byte(c)) {
      if (held_.size() == word_bytes_max) return false;
      held_ += c;
      out += c;
      return true;
    }
    if (!end_word()) return false;
  }
  if (json_spaces.find(c) != std::string_view::npos) return true;
  switch (next_) {
    case expected::object:
      if (c != '{') return false;
      [[fallthrough]];
    case expected::value: return begin_value(c, out);
    case expected::value_or_end: return c == ']' ? close(c, out) : begin_value(c, out);
    case expected::name_or_end:
      if (c == '}') return close(c, out);
      [[fallthrough]];
    case expected::name:
      if (c != '"') return false;
      quoted_ = is_name_ = true;
      break;
    case expected::colon:
      if (c != ':') return false;
      next_ = expected::value;
      break;
    case expected::comma_or_end:
      if (c != ',') return close(c, out);
      next_ = open_.back() == '{' ? expected::name : expected::value;
      break;
  }
  out += c;
  return true;
}

bool json_stream::begin_value(char c, std::string& out) {
  if (c == '{' || c == '[') {
    if (open_.size() == written_json.depth_max) return false;  // the object could not be read again
    open_.push_back(c);
    next_ = c == '{' ? expected::name_or_end : expected::value_or_end;
  } else if (c == '"') {
    quoted_ = true;
    is_name_ = false;
  } else {
    if (!is_word_byte(c)) return false;
    held_ = c;
  }
  out += c;
  return true;
}

bool json_stream::close(char c, std::string& out) {
  if (open_.empty() || c != (open_.back() == '{' ? '}' : ']')) return false;
  open_.pop_back();
  after_value();
  if (open_.empty()) phase_ = phase::over;
  out += c;
  return true;
}

bool json_stream::read_quoted(char c, std::string& out) {
  if (!held_.empty()) {
    held_ += c;
    return end_escape(out);
  }
  if (static_cast<unsigned char>(c) < 0x20) return false;
  if (c == '\\') {
    held_ = c;
    return true;
  }
  out += c;
  if (c != '"') return true;
  quoted_ = false;
  is_name_ ? void(next_ = expected::colon) : after_value();
  return true;
}

/// Whether the escape is right so far. The two halves of a surrogate pair are one escape.
bool json_stream::end_escape(std::string& out) {
  constexpr std::size_t unit = 6;  // \u1234
  if (held_[1] == 'u') {
    const bool pair = held_.size() >= 4 && (held_[2] == 'd' || held_[2] == 'D') &&
                      std::string_view("89abAB").find(held_[3]) != std::string_view::npos;
    if (held_.size() < (pair ? 2 * unit : unit)) return true;
  } else if (held_[1] == '/') {
    out += '/';
    held_.clear();
    return true;
  } else if (std::string_view("\"\\bfnrt").find(held_[1]) != std::string_view::npos) {
    out += held_;
    held_.clear();
    return true;
  } else {
    return false;
  }
  const auto parsed = json_document::parse('"' + held_ + '"', {});
  if (!parsed || !parsed->root().text()) return false;
  std::string written;
  json_writer(written).value(*parsed->root().text());
  out.append(written, 1, written.size() - 2);
  held_.clear();
  return true;
}

bool json_stream::end_word() {
  if (!is_long_integer(held_) && !json_document::parse(held_, {})) return false;
  held_.clear();
  after_value();
  return true;
}

}  // namespace skein::protocol
