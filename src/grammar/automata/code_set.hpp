#pragma once
#include <string_view>
#include <vector>

namespace skein::grammar {

/// Code points first .. last.
struct code_range {
  char32_t first, last;
  bool operator==(const code_range&) const = default;
};

/// A set of Unicode scalar values.
class code_set {
 public:
  void add(char32_t first, char32_t last) { ranges_.push_back({first, last}); }
  void add(char32_t code) { add(code, code); }
  void add(const code_set& other) { ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end()); }

  /// Sorted and disjoint, without surrogates.
  [[nodiscard]] code_set normalised() const;
  [[nodiscard]] code_set inverted() const;
  /// Of a normalised set.
  [[nodiscard]] const std::vector<code_range>& ranges() const { return ranges_; }

 private:
  std::vector<code_range> ranges_;
};

/// The sets of ECMA-262: \d, \w, \s (white space and line ends), and what `.` matches (all but line ends).
[[nodiscard]] code_set digit_set();
[[nodiscard]] code_set word_set();
[[nodiscard]] code_set space_set();
[[nodiscard]] code_set dot_set();
[[nodiscard]] code_set any_set();

/// A sequence of byte ranges, 1 to 4 long.
struct utf8_sequence {
  struct bytes {
    unsigned char first, last;
  };
  bytes part[4];
  int length = 0;
};

/// The UTF-8 encodings of a normalised set as sequences of byte ranges.
[[nodiscard]] std::vector<utf8_sequence> utf8_sequences(const code_set& set);

}  // namespace skein::grammar
