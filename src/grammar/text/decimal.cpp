#include "grammar/text/decimal.hpp"

#include <algorithm>
#include <cstdlib>

namespace skein::grammar {
namespace {

std::strong_ordering compare_sizes(const decimal& a, const decimal& b) {
  if (a.is_zero() || b.is_zero()) return !a.is_zero() <=> !b.is_zero();
  if (a.point != b.point) return a.point <=> b.point;
  return a.digits.compare(b.digits) <=> 0;
}

bool is_decimal_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string decimal::whole() const {
  if (point <= 0 || is_zero()) return {};
  std::string text = digits.substr(0, static_cast<std::size_t>(point));
  text.resize(static_cast<std::size_t>(point), '0');
  return text;
}

std::string decimal::fraction() const {
  if (is_integer()) return {};
  if (point <= 0) return std::string(static_cast<std::size_t>(-point), '0') + digits;
  return digits.substr(static_cast<std::size_t>(point));
}

std::optional<decimal> parse_decimal(std::string_view text, std::size_t digits_max) {
  decimal read;
  std::size_t at = 0;
  if (at < text.size() && text[at] == '-') {
    read.negative = true;
    ++at;
  }
  std::size_t before_point = 0;
  const std::size_t begin = at;
  for (; at < text.size() && is_decimal_digit(text[at]); ++at, ++before_point) read.digits += text[at];
  if (at == begin || (before_point > 1 && text[begin] == '0')) return std::nullopt;
  if (at < text.size() && text[at] == '.') {
    const std::size_t fraction = ++at;
    for (; at < text.size() && is_decimal_digit(text[at]); ++at) read.digits += text[at];
    if (at == fraction) return std::nullopt;
  }
  long exponent = 0;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    const bool down = at < text.size() && text[at] == '-';
    if (down || (at < text.size() && text[at] == '+')) ++at;
    const std::size_t digits = at;
    for (; at < text.size() && is_decimal_digit(text[at]); ++at)
      exponent = std::min(exponent * 10 + (text[at] - '0'), 1'000'000l);
    if (at == digits) return std::nullopt;
    if (down) exponent = -exponent;
  }
  if (at != text.size()) return std::nullopt;

  const std::size_t zeros = std::min(read.digits.find_first_not_of('0'), read.digits.size());
  read.digits.erase(0, zeros);
  read.digits.erase(read.digits.find_last_not_of('0') + 1);
  if (read.digits.empty()) return decimal{};
  const long point = static_cast<long>(before_point) - static_cast<long>(zeros) + exponent;
  const long most = static_cast<long>(digits_max);
  if (point > most || static_cast<long>(read.digits.size()) - point > most) return std::nullopt;
  read.point = static_cast<int>(point);
  return read;
}

std::strong_ordering compare(const decimal& a, const decimal& b) {
  const bool a_below = a.negative && !a.is_zero(), b_below = b.negative && !b.is_zero();
  if (a_below != b_below) return b_below <=> a_below;
  return a_below ? compare_sizes(b, a) : compare_sizes(a, b);
}

std::optional<scaled> scaled_of(const decimal& positive) {
  std::uint64_t steps = 0;
  const auto digits = positive.whole() + positive.fraction();
  for (const char c : digits) {
    steps = steps * 10 + static_cast<std::uint64_t>(c - '0');
    if (steps > 0xffffffffu) return std::nullopt;
  }
  return scaled{static_cast<std::uint32_t>(steps), static_cast<std::uint32_t>(positive.fraction().size())};
}

bool is_multiple(const decimal& value, const scaled& divisor) {
  const std::string fraction = value.fraction();
  if (fraction.size() > divisor.scale) return false;  // the rest is not zero
  std::uint64_t rest = 0;
  for (const char c : value.whole() + fraction)
    rest = (rest * 10 + static_cast<std::uint64_t>(c - '0')) % divisor.steps;
  for (std::size_t i = fraction.size(); i < divisor.scale; ++i) rest = rest * 10 % divisor.steps;
  return rest == 0;
}

}  // namespace skein::grammar
