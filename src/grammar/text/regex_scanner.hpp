#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "grammar/automata/code_set.hpp"
#include "grammar/automata/limits.hpp"

namespace skein::grammar {

struct repetition {
  static constexpr std::uint32_t no_limit = ~std::uint32_t{0};
  std::uint32_t least = 0, most = no_limit;
};

/// What the flags i, s and m of an expression or a group change.
struct regex_flags {
  bool ignore_case = false;  ///< letters of ASCII stand for both cases; other letters are not supported
  bool dot_all = false;      ///< . matches line ends
  bool multiline = false;    ///< ^ and $ match at line feeds
  bool operator==(const regex_flags&) const = default;
};

/// Reads the parts of a regular expression from left to right: characters, escapes, classes and quantifiers.
class regex_scanner {
 public:
  /// `offset`: of the pattern in the text that messages refer to.
  regex_scanner(std::string_view pattern, budget& work, std::size_t offset = 0)
      : text_(pattern), work_(work), base_(offset) {}

  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] char peek() const { return at_end() ? '\0' : text_[at_]; }
  [[nodiscard]] bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  void skip(std::size_t bytes) { at_ += bytes; }
  [[nodiscard]] std::size_t offset() const { return base_ + at_; }
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }

  /// The next character; the pattern must not be at its end. Ill-formed UTF-8 is an error.
  [[nodiscard]] result<char32_t> character();
  /// The same as a set; with the flag i, of both cases.
  [[nodiscard]] result<code_set> literal();
  /// What follows a backslash outside of a class, as a set.
  [[nodiscard]] result<code_set> escape();
  /// The rest of a class, after its `[`.
  [[nodiscard]] result<code_set> set();
  /// A quantifier, with a `?` after it, which does not change the language. Nothing is consumed if there is none.
  [[nodiscard]] result<std::optional<repetition>> quantifier();

  /// The letters of flags up to one of the characters `ends`, after (?. Nothing is consumed if they are no flags.
  [[nodiscard]] result<std::optional<regex_flags>> read_flags(std::string_view ends, const regex_flags& before);

  regex_flags flags;  ///< those that hold for what is read next

  [[nodiscard]] error wrong(const std::string& what) const;
  [[nodiscard]] error not_supported(const std::string& what) const;

 private:
  struct member {
    code_set set;
    bool is_single = false;
    char32_t code = 0;
  };
  [[nodiscard]] result<void> add(const member& one, code_set& to) const;
  [[nodiscard]] result<void> add_range(char32_t first, char32_t last, code_set& to) const;
  [[nodiscard]] bool closes_literally() const;
  [[nodiscard]] result<member> escaped();
  [[nodiscard]] result<member> class_member();
  [[nodiscard]] std::optional<std::uint32_t> hex(std::size_t digits);
  [[nodiscard]] std::optional<std::uint32_t> number();
  [[nodiscard]] result<char32_t> unicode_escape();
  [[nodiscard]] result<code_set> property(bool inverted);

  std::string_view text_;
  budget& work_;
  std::size_t at_ = 0, base_ = 0;
};

}  // namespace skein::grammar
