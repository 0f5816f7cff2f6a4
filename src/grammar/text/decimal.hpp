#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace skein::grammar {

/// A decimal number of any size, exactly: 0.DIGITS * 10^point, without leading or trailing zeros; zero has no digits.
struct decimal {
  bool negative = false;
  std::string digits;
  int point = 0;

  [[nodiscard]] bool is_zero() const { return digits.empty(); }
  [[nodiscard]] bool is_integer() const { return static_cast<int>(digits.size()) <= point || is_zero(); }
  /// The digits before and after the point; both may be empty.
  [[nodiscard]] std::string whole() const;
  [[nodiscard]] std::string fraction() const;

  friend bool operator==(const decimal&, const decimal&) = default;
};

/// Reads a JSON number. Nullopt if it is not one, or has more than `digits_max` digits before or after the point.
[[nodiscard]] std::optional<decimal> parse_decimal(std::string_view text, std::size_t digits_max);

[[nodiscard]] std::strong_ordering compare(const decimal& a, const decimal& b);

/// `steps` * 10^-`scale`, both as small as possible; nullopt if steps does not fit 32 bits.
struct scaled {
  std::uint32_t steps = 1;
  std::uint32_t scale = 0;
};
[[nodiscard]] std::optional<scaled> scaled_of(const decimal& positive);

/// True if `value` is a whole multiple of the divisor.
[[nodiscard]] bool is_multiple(const decimal& value, const scaled& divisor);

}  // namespace skein::grammar
