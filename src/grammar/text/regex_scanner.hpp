#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "grammar/automata/code_set.hpp"

namespace skein::grammar {

struct repetition {
  static constexpr std::uint32_t no_limit = ~std::uint32_t{0};
  std::uint32_t least = 0, most = no_limit;
};

/// Reads the parts of a regular expression from left to right: characters, escapes, classes and quantifiers.
class regex_scanner {
 public:
  explicit regex_scanner(std::string_view pattern) : text_(pattern) {}

  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] char peek() const { return at_end() ? '\0' : text_[at_]; }
  [[nodiscard]] bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  void skip(std::size_t bytes) { at_ += bytes; }
  [[nodiscard]] std::size_t offset() const { return at_; }
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }

  /// The next character; the pattern must not be at its end. Ill-formed UTF-8 is an error.
  [[nodiscard]] result<char32_t> character();
  /// What follows a backslash outside of a class, as a set.
  [[nodiscard]] result<code_set> escape();
  /// The rest of a class, after its `[`.
  [[nodiscard]] result<code_set> set();
  /// A quantifier, with a `?` after it, which does not change the language. Nothing is consumed if there is none.
  [[nodiscard]] result<std::optional<repetition>> quantifier();

  [[nodiscard]] error wrong(const std::string& what) const;
  [[nodiscard]] error not_supported(const std::string& what) const;

 private:
  struct member {
    code_set set;
    bool is_single = false;
    char32_t code = 0;
  };
  [[nodiscard]] result<member> escaped(bool in_class);
  [[nodiscard]] result<member> class_member();
  [[nodiscard]] std::optional<std::uint32_t> hex(std::size_t digits);
  [[nodiscard]] std::optional<std::uint32_t> number();
  [[nodiscard]] result<char32_t> unicode_escape();

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace skein::grammar
