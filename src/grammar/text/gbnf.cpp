#include "grammar/text/gbnf.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/utf8.hpp"
#include "grammar/text/rule_set.hpp"

namespace skein::grammar {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

class gbnf_parser : rule_set {
 public:
  gbnf_parser(std::string_view text, budget& work) : rule_set(work), text_(text) {}

  result<program> run() {
    skip(true);
    while (at_ < text_.size()) {
      if (const auto read = rule(); !read) return read.error();
      skip(true);
    }
    return finish("root");
  }

 private:
  error wrong(const std::string& what) const {
    const auto line = 1 + std::ranges::count(text_.substr(0, at_), '\n');
    return {error_kind::invalid_argument, "grammar, line " + std::to_string(line) + ": " + what, {}};
  }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  /// Skips blanks and comments, and ends of lines if those are allowed here.
  void skip(bool lines) {
    while (at_ < text_.size()) {
      if (peek() == '#')
        at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
      else if (peek() == ' ' || peek() == '\t' || (lines && (peek() == '\n' || peek() == '\r')))
        ++at_;
      else
        return;
    }
  }

  std::string_view name() {
    const auto begin = at_;
    while (at_ < text_.size() && is_name_character(peek())) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  result<void> rule() {
    const auto called = name();
    if (called.empty()) return wrong("expected the name of a rule");
    const auto index = index_of(called);
    skip(false);
    if (!text_.substr(at_).starts_with("::=")) return wrong("expected ::=");
    at_ += 3;
    if (entries_[index] != nfa::none) return wrong("the rule " + std::string(called) + " is defined twice");
    skip(true);
    std::vector<group> groups(1);
    while (true) {
      if (!work_.spend(10)) return too_much_work(work_);
      if (code_.size() > work_.of().instructions_max)
        return too_much("instructions of a grammar", work_.of().instructions_max);
      const bool nested = groups.size() > 1;
      skip(nested);
      const char c = peek();
      if (at_ >= text_.size() || c == '\n' || c == '\r') break;
      if (c == '(') {
        ++at_;
        groups.emplace_back();
      } else if (c == ')') {
        if (!nested) return wrong("unmatched )");
        ++at_;
        const auto made = end_group(groups.back());
        groups.pop_back();
        if (const auto added = add(groups.back(), made); !added) return added;
      } else if (c == '|') {
        ++at_;
        groups.back().choices.push_back(take(groups.back()));
        skip(true);
      } else {
        const auto made = element();
        if (!made) return made.error();
        if (const auto added = add(groups.back(), *made); !added) return added;
      }
    }
    if (groups.size() > 1) return wrong("unterminated group");
    const auto body = end_group(groups.front());
    entries_[index] = body.entry;
    code_.end_in_match(body);
    return {};
  }

  /// Appends an element with the repetition after it.
  result<void> add(group& to, nfa::fragment made) {
    skip(false);
    std::uint32_t least = 1, most = 1;
    if (peek() == '*' || peek() == '+' || peek() == '?') {
      least = peek() == '+' ? 1 : 0;
      most = peek() == '?' ? 1 : nfa::none;
      ++at_;
    } else if (peek() == '{') {
      ++at_;
      skip(false);
      const auto low = number();
      if (!low) return wrong("bad repetition");
      least = most = *low;
      skip(false);
      if (peek() == ',') {
        ++at_;
        skip(false);
        most = number().value_or(nfa::none);
      }
      skip(false);
      if (peek() != '}' || most < least) return wrong("bad repetition");
      ++at_;
    }
    if (least != 1 || most != 1) {
      bool fits = true;
      made = code_.repeat(made, least, most, work_.of().instructions_max, fits);
      if (!fits) return too_much("instructions of a grammar", work_.of().instructions_max);
    }
    to.sequence = to.sequence ? code_.concat(*to.sequence, made) : made;
    return {};
  }

  std::optional<std::uint32_t> number() {
    if (peek() < '0' || peek() > '9') return std::nullopt;
    std::uint32_t value = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at_)
      value = std::min(value * 10 + static_cast<std::uint32_t>(peek() - '0'), 100'000'000u);
    return value;
  }

  result<nfa::fragment> element() {
    if (peek() == '"') {
      std::string literal;
      ++at_;
      while (peek() != '"') {
        const auto code = character();
        if (!code) return code.error();
        append_utf8(*code, literal);
      }
      ++at_;
      return code_.text(literal);
    }
    if (peek() == '[') return set();
    if (peek() == '.') {
      ++at_;
      return code_.codes(any_set());
    }
    const auto called = name();
    if (called.empty()) return wrong("unexpected character");
    return code_.call(index_of(called));
  }

  result<nfa::fragment> set() {
    ++at_;
    const bool inverted = peek() == '^';
    if (inverted) ++at_;
    code_set made;
    while (peek() != ']') {
      const auto low = character();
      if (!low) return low.error();
      auto high = low;
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        high = character();
        if (!high) return high.error();
        if (*high < *low) return wrong("range out of order");
      }
      made.add(*low, *high);
    }
    ++at_;
    return code_.codes(inverted ? made.inverted() : made.normalised());
  }

  /// A character of a literal or a class, with its escape.
  result<char32_t> character() {
    if (at_ >= text_.size() || peek() == '\n') return wrong("unterminated literal or class");
    if (peek() != '\\') {
      const auto head = first_character(text_.substr(at_));
      if (!head.is_character()) return wrong("ill-formed UTF-8");
      static constexpr unsigned char mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
      char32_t code = static_cast<unsigned char>(text_[at_]) & mask[head.bytes];
      for (std::size_t i = 1; i < head.bytes; ++i)
        code = code << 6 | (static_cast<unsigned char>(text_[at_ + i]) & 0x3f);
      at_ += head.bytes;
      return code;
    }
    ++at_;
    const char kind = peek();
    if (at_ < text_.size()) ++at_;
    switch (kind) {
      case 'n': return U'\n';
      case 'r': return U'\r';
      case 't': return U'\t';
      case '"':
      case '\\':
      case '[':
      case ']':
      case '-':
      case '^': return static_cast<char32_t>(kind);
      case 'x': return hex(2);
      case 'u': return hex(4);
      case 'U': return hex(8);
      default: return wrong("unknown escape");
    }
  }

  result<char32_t> hex(int digits) {
    char32_t value = 0;
    for (; digits > 0; --digits, ++at_) {
      const char c = peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0 || value > 0x10ffff) return wrong("bad escape");
      value = value << 4 | static_cast<char32_t>(digit);
    }
    if (!is_scalar_value(value)) return wrong("an escape that is not a character");
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

result<program> compile_gbnf(std::string_view text, budget& work) {
  if (text.size() > work.of().source_bytes_max) return too_much("bytes", work.of().source_bytes_max);
  return gbnf_parser(text, work).run();
}

}  // namespace skein::grammar
