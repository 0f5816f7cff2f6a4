#include "grammar/schema/json_tree.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/utf8.hpp"

namespace skein::grammar {
namespace {

/// Reads one value after the other; open arrays and objects are on a stack.
class tree_reader {
 public:
  tree_reader(std::string_view text, const limits& of) : text_(text), limits_(of) {}

  result<json_tree> run() {
    do {
      if (const auto read = value(); !read) return read.error();
      if (const auto closed = close(); !closed) return closed.error();
    } while (!open_.empty());
    skip_blanks();
    if (at_ != text_.size()) return wrong("text after the end");
    return std::move(tree_);
  }

 private:
  error wrong(const std::string& what) const {
    return {error_kind::invalid_argument,
            "the schema is not valid JSON: " + what + " at offset " + std::to_string(at_),
            {}};
  }
  void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  std::uint32_t add(json_kind kind) {
    json_tree::value made;
    made.kind = kind;
    made.key = std::move(key_);
    key_.clear();
    const auto index = static_cast<std::uint32_t>(tree_.values.size());
    if (!open_.empty()) {
      made.parent = open_.back();
      auto& siblings = tree_.values[open_.back()].children;
      made.place = static_cast<std::uint32_t>(siblings.size());
      siblings.push_back(index);
    }
    tree_.values.push_back(std::move(made));
    return index;
  }

  result<void> value() {
    skip_blanks();
    const char c = peek();
    if (c == '{' || c == '[') {
      if (open_.size() >= limits_.schema_depth_max)
        return error{error_kind::too_large,
                     "the schema is nested more than " + std::to_string(limits_.schema_depth_max) + " levels deep",
                     {}};
      const auto index = add(c == '{' ? json_kind::object : json_kind::array);
      open_.push_back(index);
      ++at_;
      skip_blanks();
      if (peek() == (c == '{' ? '}' : ']')) return {};  // `close` takes it
      return c == '{' ? name_then_value() : value_is_next();
    }
    if (c == '"') {
      std::string read;
      if (const auto ok = string(read); !ok) return ok;
      tree_.values[add(json_kind::string)].text = std::move(read);
      return {};
    }
    for (const auto& [word, kind] : {std::pair<std::string_view, json_kind>{"true", json_kind::truth},
                                     {"false", json_kind::falsehood},
                                     {"null", json_kind::null}}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      add(kind);
      return {};
    }
    return number();
  }

  /// After an opening bracket there is a value to read: nothing to close yet.
  result<void> value_is_next() {
    more_ = true;
    return {};
  }
  result<void> name_then_value() {
    skip_blanks();
    if (peek() != '"') return wrong("expected a name");
    if (const auto ok = string(key_); !ok) return ok;
    skip_blanks();
    if (peek() != ':') return wrong("expected :");
    ++at_;
    more_ = true;
    return {};
  }

  /// Takes the closing brackets after a value, then the comma before the next one.
  result<void> close() {
    while (!open_.empty()) {
      if (more_) return more_ = false, result<void>();
      skip_blanks();
      const bool object = tree_.is(open_.back(), json_kind::object);
      if (peek() == (object ? '}' : ']')) {
        ++at_;
        if (object) {
          if (const auto unique = check_names(open_.back()); !unique) return unique;
        }
        open_.pop_back();
        continue;
      }
      if (peek() != ',' || tree_[open_.back()].children.empty()) return wrong("expected , or a closing bracket");
      ++at_;
      if (object) {
        if (const auto ok = name_then_value(); !ok) return ok;
        more_ = false;
      }
      return {};
    }
    return {};
  }

  result<void> check_names(std::uint32_t object) {
    std::vector<std::string_view> names;
    for (const auto child : tree_[object].children) names.push_back(tree_[child].key);
    std::ranges::sort(names);
    const auto twice = std::ranges::adjacent_find(names);
    if (twice == names.end()) return {};
    return wrong("the name " + std::string(utf8_prefix(*twice, 64)) + " occurs twice in an object that ends");
  }

  result<void> number() {
    const auto end = std::min(text_.find_first_not_of("0123456789+-.eE", at_), text_.size());
    const auto digits = text_.substr(at_, end - at_);
    if (digits.empty()) return wrong("expected a value");
    // The syntax is checked where the number is used; here only that it is one.
    const auto first = digits.front() == '-' ? digits.substr(1) : digits;
    if (first.empty() || first.front() < '0' || first.front() > '9') return wrong("bad number");
    at_ = end;
    tree_.values[add(json_kind::number)].text = digits;
    return {};
  }

  std::optional<std::uint32_t> unit() {
    std::uint32_t code = 0;
    if (text_.size() - at_ < 4) return std::nullopt;
    const auto digits = text_.substr(at_, 4);
    const auto [end, failed] = std::from_chars(digits.data(), digits.data() + 4, code, 16);
    if (failed != std::errc() || end != digits.data() + 4) return std::nullopt;
    at_ += 4;
    return code;
  }

  result<void> escape(std::string& out) {
    static constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
    const auto which = from.find(peek());
    if (at_ < text_.size() && which != std::string_view::npos) {
      out += to[which];
      ++at_;
      return {};
    }
    if (peek() != 'u') return wrong("bad escape");
    ++at_;
    const auto high = unit();
    if (!high) return wrong("bad escape");
    char32_t code = *high;
    if (code >= 0xd800 && code <= 0xdbff && text_.substr(at_).starts_with("\\u")) {
      at_ += 2;
      const auto low = unit();
      if (!low || *low < 0xdc00 || *low > 0xdfff) return wrong("lone surrogate");
      code = 0x10000 + ((code - 0xd800) << 10) + (*low - 0xdc00);
    }
    if (!is_scalar_value(code)) return wrong("lone surrogate");
    append_utf8(code, out);
    return {};
  }

  static bool is_plain(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\'; }
  result<void> string(std::string& out) {
    out.clear();
    ++at_;
    while (peek() != '"') {
      if (at_ >= text_.size()) return wrong("unterminated string");
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c < 0x20) return wrong("control character in a string");
      if (c == '\\') {
        ++at_;
        if (const auto ok = escape(out); !ok) return ok;
      } else {
        const auto begin = at_;
        do ++at_;
        while (at_ < text_.size() && is_plain(text_[at_]));
        out.append(text_, begin, at_ - begin);
      }
    }
    ++at_;
    return {};
  }

  std::string_view text_;
  const limits& limits_;
  json_tree tree_;
  std::vector<std::uint32_t> open_;
  std::string key_;
  std::size_t at_ = 0;
  bool more_ = false;
};

}  // namespace

std::uint32_t json_tree::member(std::uint32_t object, std::string_view name) const {
  if (!is(object, json_kind::object)) return none;
  for (const auto child : values[object].children)
    if (values[child].key == name) return child;
  return none;
}

std::uint32_t json_tree::child(std::uint32_t of, std::string_view name) const {
  if (!is(of, json_kind::array)) return member(of, name);
  std::size_t index = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), index);
  const bool canonical = name == "0" || (!name.empty() && name.front() != '0');
  if (failed != std::errc() || end != name.data() + name.size() || !canonical || index >= values[of].children.size())
    return none;
  return values[of].children[index];
}

std::string json_tree::pointer(std::uint32_t at) const {
  std::vector<std::uint32_t> path;
  for (; values[at].parent != none; at = values[at].parent) path.push_back(at);
  std::string text;
  for (std::size_t i = path.size(); i-- > 0;) {
    const auto& step = values[path[i]];
    text += '/';
    if (is(step.parent, json_kind::array)) {
      text += std::to_string(step.place);
      continue;
    }
    for (const char c : step.key) {
      if (c == '~')
        text += "~0";
      else if (c == '/')
        text += "~1";
      else
        text += c;
    }
  }
  return text;
}

result<json_tree> parse_json_tree(std::string_view text, const limits& of) {
  if (text.size() > of.source_bytes_max)
    return error{
        error_kind::too_large, "the schema has more than " + std::to_string(of.source_bytes_max) + " bytes", {}};
  if (!is_utf8(text)) return error{error_kind::invalid_argument, "the schema is not valid JSON: ill-formed UTF-8", {}};
  return tree_reader(text, of).run();
}

}  // namespace skein::grammar
