#include "grammar/text/regex_scanner.hpp"

#include "base/utf8.hpp"
#include "grammar/text/unicode_properties.hpp"

namespace skein::grammar {
namespace {

constexpr std::uint32_t count_max = 1'000'000;
constexpr std::uint64_t property_work = 6'000;  // steps that a Unicode property takes

std::optional<std::uint32_t> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint32_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint32_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint32_t>(c - 'A' + 10);
  return std::nullopt;
}

bool is_letter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

error regex_scanner::wrong(const std::string& what) const {
  return {error_kind::invalid_argument, "regular expression: " + what + " at offset " + std::to_string(offset()), {}};
}

error regex_scanner::not_supported(const std::string& what) const {
  return {error_kind::unsupported,
          "regular expression: " + what + " at offset " + std::to_string(offset()) + " is not supported",
          {}};
}

result<char32_t> regex_scanner::character() {
  const auto head = first_character(text_.substr(at_));
  if (!head.is_character()) return wrong("ill-formed UTF-8");
  static constexpr unsigned char mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  char32_t code = static_cast<unsigned char>(text_[at_]) & mask[head.bytes];
  for (std::size_t i = 1; i < head.bytes; ++i) code = code << 6 | (static_cast<unsigned char>(text_[at_ + i]) & 0x3f);
  at_ += head.bytes;
  return code;
}

std::optional<std::uint32_t> regex_scanner::hex(std::size_t digits) {
  if (text_.size() - at_ < digits) return std::nullopt;
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    const auto digit = hex_digit(text_[at_ + i]);
    if (!digit) return std::nullopt;
    value = value << 4 | *digit;
  }
  at_ += digits;
  return value;
}

result<char32_t> regex_scanner::unicode_escape() {
  if (peek() == '{') {
    std::uint32_t value = 0;
    ++at_;
    while (!at_end() && peek() != '}') {
      const auto digit = hex_digit(peek());
      if (!digit || value > 0x10ffff) return wrong("bad \\u escape");
      value = value << 4 | *digit;
      ++at_;
    }
    if (at_end() || value > 0x10ffff) return wrong("bad \\u escape");
    ++at_;
    return static_cast<char32_t>(value);
  }
  const auto unit = hex(4);
  if (!unit) return wrong("bad \\u escape");
  if (*unit >= 0xd800 && *unit <= 0xdbff && starts("\\u")) {
    const auto before = at_;
    at_ += 2;
    const auto low = hex(4);
    if (low && *low >= 0xdc00 && *low <= 0xdfff)
      return static_cast<char32_t>(0x10000 + ((*unit - 0xd800) << 10) + (*low - 0xdc00));
    at_ = before;
  }
  return static_cast<char32_t>(*unit);  // a lone surrogate is in no text, so nothing matches it
}

result<regex_scanner::member> regex_scanner::escaped() {
  if (at_end()) return wrong("backslash at the end");
  const auto next = character();
  if (!next) return next.error();
  const auto single = [](char32_t code) { return member{.set = {}, .is_single = true, .code = code}; };
  const auto set_of = [](code_set set) { return member{.set = std::move(set), .is_single = false, .code = 0}; };
  switch (*next) {
    case 'd': return set_of(digit_set());
    case 'D': return set_of(digit_set().inverted());
    case 'w': return set_of(word_set());
    case 'W': return set_of(word_set().inverted());
    case 's': return set_of(space_set());
    case 'S': return set_of(space_set().inverted());
    case 't': return single('\t');
    case 'n': return single('\n');
    case 'v': return single('\v');
    case 'f': return single('\f');
    case 'r': return single('\r');
    case 'a': return single('\a');
    case '0':
      if (peek() >= '0' && peek() <= '9') return not_supported("an octal escape");
      return single(0);
    case 'c': {
      if (at_end() || !is_letter(static_cast<unsigned char>(peek()))) return wrong("bad \\c escape");
      const char32_t code = static_cast<unsigned char>(peek()) & 31u;
      ++at_;
      return single(code);
    }
    case 'x': {
      const auto value = hex(2);
      if (!value) return wrong("bad \\x escape");
      return single(*value);
    }
    case 'u': {
      const auto code = unicode_escape();
      if (!code) return code.error();
      return single(*code);
    }
    case 'b': return single('\b');  // in a class; regex_parser reads word boundaries
    case 'k': return not_supported("a back reference");
    case 'p':
    case 'P': {
      auto read = property(*next == 'P');
      if (!read) return read.error();
      return set_of(std::move(*read));
    }
    default: break;
  }
  if (*next >= '1' && *next <= '9') return not_supported("a back reference");
  if (is_letter(*next)) return wrong(std::string("unknown escape \\") + static_cast<char>(*next));
  return single(*next);
}

result<code_set> regex_scanner::property(bool inverted) {
  const auto is_in_name = [](char c) { return is_letter(static_cast<unsigned char>(c)) || c == '_' || c == '='; };
  const auto begin = at_ + 1;
  auto end = begin;
  while (end < text_.size() && is_in_name(text_[end])) ++end;
  if (peek() != '{' || end == text_.size() || text_[end] != '}') return wrong("bad \\p escape");
  const auto name = text_.substr(begin, end - begin);
  if (flags.ignore_case) return not_supported("a Unicode property without regard to case");
  if (!work_.spend(property_work)) return too_much_work(work_);
  auto made = unicode_property(name);
  if (!made) return not_supported("the Unicode property " + std::string(name.substr(0, 64)));
  at_ = end + 1;
  return inverted ? made->inverted() : std::move(*made);
}

result<code_set> regex_scanner::escape() {
  auto read = escaped();
  if (!read) return read.error();
  code_set made;
  if (const auto added = add(*read, made); !added) return added.error();
  return made.normalised();
}

result<void> regex_scanner::add(const member& one, code_set& to) const {
  if (one.is_single) return add_range(one.code, one.code, to);
  to.add(one.set);
  return {};
}

result<void> regex_scanner::add_range(char32_t first, char32_t last, code_set& to) const {
  to.add(first, last);
  if (!flags.ignore_case) return {};
  if (last >= 0x80) return not_supported("a character beyond ASCII without regard to case");
  for (char32_t code = first; code <= last; ++code) {
    if (!is_letter(code)) continue;
    to.add(code ^ 32);
    if ((code | 32) == 'k') to.add(0x212a);  // the sign of Kelvin
    if ((code | 32) == 's') to.add(0x17f);   // the long s
  }
  return {};
}

result<code_set> regex_scanner::literal() {
  const auto code = character();
  if (!code) return code.error();
  code_set made;
  if (const auto added = add_range(*code, *code, made); !added) return added.error();
  return flags.ignore_case ? made.normalised() : made;
}

result<regex_scanner::member> regex_scanner::class_member() {
  if (peek() == '\\') {
    ++at_;
    return escaped();
  }
  const auto code = character();
  if (!code) return code.error();
  return member{.set = {}, .is_single = true, .code = *code};
}

/// True if the class begins with a bracket that does not close it: in []a] and [^]]. By ECMA-262 the class would be
/// empty and the later bracket an error, so this is the meaning of other dialects.
bool regex_scanner::closes_literally() const {
  if (peek() != ']') return false;
  bool in_class = false;
  for (std::size_t i = at_ + 1; i < text_.size(); ++i) {
    if (text_[i] == '\\') {
      ++i;
    } else if (text_[i] == ']') {
      if (!in_class) return true;
      in_class = false;
    } else if (text_[i] == '[') {
      in_class = true;
    }
  }
  return false;
}

result<code_set> regex_scanner::set() {
  const bool inverted = peek() == '^';
  if (inverted) ++at_;
  code_set made;
  for (bool first = closes_literally();; first = false) {
    if (at_end()) return wrong("unterminated class");
    if (peek() == ']' && !first) break;
    const auto low = class_member();
    if (!low) return low.error();
    if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
      const auto before = at_;
      ++at_;
      const auto high = class_member();
      if (!high) return high.error();
      if (low->is_single && high->is_single) {
        if (high->code < low->code) return wrong("range out of order in a class");
        if (const auto added = add_range(low->code, high->code, made); !added) return added.error();
        continue;
      }
      at_ = before;  // as in [\w-.]: the hyphen is an ordinary character
    }
    if (const auto added = add(*low, made); !added) return added.error();
  }
  ++at_;
  return inverted ? made.inverted() : made.normalised();
}

std::optional<std::uint32_t> regex_scanner::number() {
  if (at_end() || peek() < '0' || peek() > '9') return std::nullopt;
  std::uint32_t value = 0;
  while (!at_end() && peek() >= '0' && peek() <= '9') {
    if (value <= count_max) value = value * 10 + static_cast<std::uint32_t>(peek() - '0');
    ++at_;
  }
  return value;
}

result<std::optional<repetition>> regex_scanner::quantifier() {
  repetition read;
  if (peek() == '*' || peek() == '+' || peek() == '?') {
    read.least = peek() == '+' ? 1 : 0;
    if (peek() == '?') read.most = 1;
    ++at_;
  } else if (peek() == '{') {
    const auto before = at_;
    ++at_;
    auto least = number();
    std::optional<std::uint32_t> most = least;
    if (!least && peek() == ',' && at_ + 1 < text_.size() && text_[at_ + 1] >= '0' && text_[at_ + 1] <= '9')
      least = 0;  // {,n} of other dialects, an error by ECMA-262
    if (least && peek() == ',') {
      ++at_;
      most = number();
      if (!most) most = repetition::no_limit;
    }
    if (!least || peek() != '}') {  // then it is an ordinary character
      at_ = before;
      return std::optional<repetition>();
    }
    ++at_;
    if (*least > count_max || (*most > count_max && *most != repetition::no_limit))
      return error{error_kind::too_large, "regular expression: a repetition above " + std::to_string(count_max), {}};
    if (*most < *least) return wrong("repetition out of order");
    read = {*least, *most};
  } else {
    return std::optional<repetition>();
  }
  if (peek() == '?') ++at_;
  return std::optional<repetition>(read);
}

result<std::optional<regex_flags>> regex_scanner::read_flags(std::string_view ends, const regex_flags& before) {
  auto read = before;
  bool value = true;
  for (std::size_t i = at_; i < text_.size(); ++i) {
    switch (text_[i]) {
      case 'i': read.ignore_case = value; break;
      case 's': read.dot_all = value; break;
      case 'm': read.multiline = value; break;
      case 'a':
      case 'u': break;  // which letters \w matches: those of ASCII, as in ECMA-262
      case 'x': return not_supported("the flag x");
      case '-':
        if (!value) return std::optional<regex_flags>();
        value = false;
        break;
      default:
        if (i == at_ || ends.find(text_[i]) == std::string_view::npos) return std::optional<regex_flags>();
        at_ = i + 1;
        return std::optional(read);
    }
  }
  return std::optional<regex_flags>();
}

}  // namespace skein::grammar
