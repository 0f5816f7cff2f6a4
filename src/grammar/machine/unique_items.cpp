#include "grammar/machine/unique_items.hpp"

namespace skein::grammar {
namespace digest {
namespace {

// thread::escape of a number.
constexpr std::uint32_t in_fraction = 1, in_exponent = 2, is_negative = 4, exponent_is_negative = 8;
constexpr std::uint32_t exponent_shift = 4, exponent_max = 10'000'000;

}  // namespace

std::uint64_t of_text(std::string_view content) {
  std::uint64_t made = text;
  for (const char c : content) made = add_byte(made, static_cast<unsigned char>(c));
  return made;
}

void begin_number(thread& t) {
  t.value = number;
  t.c = t.d = t.escape = 0;
}

void add_number_byte(thread& t, unsigned char byte) {
  const bool digit = byte >= '0' && byte <= '9';
  if ((t.escape & in_exponent) != 0) {
    if (byte == '-') t.escape |= exponent_is_negative;
    const std::uint32_t so_far = t.escape >> exponent_shift;
    if (digit && so_far < exponent_max)
      t.escape = (t.escape & ((1u << exponent_shift) - 1)) | (so_far * 10 + (byte - '0')) << exponent_shift;
    return;
  }
  if (byte == '-') t.escape |= is_negative;
  if (byte == '.') t.escape |= in_fraction;
  if (byte == 'e' || byte == 'E') t.escape |= in_exponent;
  if (!digit) return;
  if ((t.escape & in_fraction) != 0) ++t.d;
  if (byte == '0') {
    if (t.value != number) ++t.c;
    return;
  }
  for (; t.c > 0; --t.c) t.value = add_byte(t.value, '0');
  t.value = add_byte(t.value, byte);
}

std::uint64_t of_number(const thread& t) {
  if (t.value == number) return mixed(number, 1);  // zero
  auto exponent = static_cast<std::int64_t>(t.escape >> exponent_shift);
  if ((t.escape & exponent_is_negative) != 0) exponent = -exponent;
  exponent += static_cast<std::int64_t>(t.c) - t.d;
  return mixed(mixed(t.value, static_cast<std::uint64_t>(exponent)), (t.escape & is_negative) != 0 ? 3 : 2);
}

}  // namespace digest

namespace {

constexpr std::uint32_t number_visits_max = 512;
constexpr std::string_view number_bytes = "0123456789-.eE+";

}  // namespace

bool unique_items::is_used(const frame& array, std::uint64_t value) const {
  for (auto at = array.last; at != program::none; at = frames_[at].earlier)
    if (frames_[at].item == value) return true;
  return false;
}

bool unique_items::has_literal(const frame& array, const program::string_spec& of, std::uint32_t first,
                               std::uint32_t last) const {
  if (last - first > array.count) return true;
  for (; first < last; ++first)
    if (!is_used(array, digest::of_text(of.literals[first]))) return true;
  return false;
}

bool unique_items::has_literal(const thread& t) const {
  const auto& spec = program_.strings[t.spec];
  if (!spec.literal || t.top == program::none || !is_unique(frames_[t.top])) return true;
  return has_literal(frames_[t.top], spec, t.a, t.b);
}

bool unique_items::has_number(const frame& array, const program::node& node, const thread& t) const {
  const auto& of = *node.number;
  std::uint32_t visits = 0;
  if (of.accepting[t.a] != 0 && !is_used(array, digest::of_number(t))) return true;
  std::vector<thread> open{t};
  while (!open.empty()) {
    const thread here = open.back();
    open.pop_back();
    for (const char c : number_bytes) {
      const auto byte = static_cast<unsigned char>(c);
      const auto next = node.number_step(here.a, byte, here.b + 1);
      if (next == dfa::dead) continue;
      if (++visits > number_visits_max) return true;
      thread longer = here;
      longer.a = next;
      ++longer.b;
      digest::add_number_byte(longer, byte);
      if (of.accepting[next] != 0 && !is_used(array, digest::of_number(longer))) return true;
      open.push_back(longer);
    }
  }
  return false;
}

bool unique_items::has_number(const thread& t) const {
  if (t.top == program::none || !is_unique(frames_[t.top])) return true;
  return has_number(frames_[t.top], program_.nodes[t.spec], t);
}

bool unique_items::has_value(const frame& array, std::uint32_t node) const {
  const auto& of = program_.nodes[node];
  if (!of.arrays.empty() || !of.objects.empty()) return true;
  const bool words[] = {of.null, of.truth, of.falsehood};
  for (std::uint32_t i = 0; i < 3; ++i)
    if (words[i] && !is_used(array, digest::of_word(i))) return true;
  for (const auto spec : of.strings) {
    const auto& s = program_.strings[spec];
    if (!s.literal || has_literal(array, s, 0, static_cast<std::uint32_t>(s.literals.size()))) return true;
  }
  if (!of.number) return false;
  thread t{.where = thread::at::number, .spec = node, .a = of.number->start};
  digest::begin_number(t);
  return has_number(array, of, t);
}

}  // namespace skein::grammar
