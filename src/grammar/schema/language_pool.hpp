#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/schema/format_rule.hpp"
#include "grammar/text/regex.hpp"

namespace skein::grammar {

/// The patterns and formats of one schema, each compiled once.
class language_pool {
 public:
  explicit language_pool(budget& work) : work_(work) {}

  /// The index of a pattern; `search` keeps limits of length apart. Errors: those of compile_search.
  [[nodiscard]] result<std::uint32_t> pattern(std::string_view text);
  /// The index of a format of the standard. A format that no automaton can check is refused or, with `in_part`,
  /// narrowed: then its negation excludes more than the format. Errors: unsupported.
  [[nodiscard]] result<std::uint32_t> format(std::string_view name, bool in_part, bool negated);

  /// The texts of `automaton` that have `least` to `most` code points.
  struct language {
    std::shared_ptr<const dfa> automaton;
    std::uint32_t least = 0, most = pattern_language::no_limit;
  };
  [[nodiscard]] const language& operator[](std::uint32_t index) const { return languages_[index]; }
  /// The same without limits of length.
  [[nodiscard]] result<std::shared_ptr<const dfa>> whole(std::uint32_t index);

 private:
  budget& work_;
  std::map<std::string, std::uint32_t, std::less<>> patterns_, formats_;
  std::vector<language> languages_;
  std::vector<std::string> texts_;
  std::map<std::uint32_t, std::shared_ptr<const dfa>> whole_;
};

/// The formats of JSON Schema.
[[nodiscard]] std::span<const std::string_view> standard_formats();
/// True for these; others are annotations that nothing checks.
[[nodiscard]] bool is_standard_format(std::string_view name);
/// The first draft that has a standard format; validators of older ones may ignore it.
[[nodiscard]] dialect first_draft_of(std::string_view format);
/// True if no automaton can decide the format: language_pool narrows it.
[[nodiscard]] bool is_narrowed_format(std::string_view name);

}  // namespace skein::grammar
