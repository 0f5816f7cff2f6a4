#include "grammar/automata/code_set.hpp"

#include <algorithm>

namespace skein::grammar {
namespace {

constexpr char32_t last_code = 0x10ffff;

void add_without_surrogates(char32_t first, char32_t last, std::vector<code_range>& out) {
  if (first < 0xd800) out.push_back({first, std::min<char32_t>(last, 0xd7ff)});
  if (last > 0xdfff) out.push_back({std::max<char32_t>(first, 0xe000), last});
}

int utf8_bytes_of(char32_t code) { return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4; }

/// Encodes into `length` bytes.
void encode_code(char32_t code, int length, unsigned char* bytes) {
  static constexpr unsigned char lead[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
  for (int i = length - 1; i > 0; --i) {
    bytes[i] = static_cast<unsigned char>(0x80 | (code & 0x3f));
    code >>= 6;
  }
  bytes[0] = static_cast<unsigned char>(lead[length] | code);
}

/// Splits a range until the encodings of its ends differ only by ranges of bytes that are independent of each other.
void add_sequences(char32_t first, char32_t last, std::vector<utf8_sequence>& out) {
  std::vector<code_range> pending{{first, last}};
  while (!pending.empty()) {
    const auto [low, high] = pending.back();
    pending.pop_back();
    const int length = utf8_bytes_of(low);
    static constexpr char32_t highest[] = {0, 0x7f, 0x7ff, 0xffff, last_code};
    if (high > highest[length]) {
      pending.push_back({highest[length] + 1, high});
      pending.push_back({low, highest[length]});
      continue;
    }
    bool split = false;
    for (int i = 1; i < length && !split; ++i) {
      const char32_t mask = (char32_t{1} << (6 * i)) - 1;
      if ((low & ~mask) == (high & ~mask)) continue;
      if ((low & mask) != 0) {
        pending.push_back({(low | mask) + 1, high});
        pending.push_back({low, low | mask});
        split = true;
      } else if ((high & mask) != mask) {
        pending.push_back({high & ~mask, high});
        pending.push_back({low, (high & ~mask) - 1});
        split = true;
      }
    }
    if (split) continue;
    unsigned char a[4], b[4];
    encode_code(low, length, a);
    encode_code(high, length, b);
    utf8_sequence sequence;
    sequence.length = length;
    for (int i = 0; i < length; ++i) sequence.part[i] = {a[i], b[i]};
    out.push_back(sequence);
  }
}

}  // namespace

code_set code_set::normalised() const {
  auto sorted = ranges_;
  std::ranges::sort(sorted, {}, &code_range::first);
  std::vector<code_range> merged;
  for (const auto& range : sorted) {
    if (!merged.empty() && range.first <= merged.back().last + 1)
      merged.back().last = std::max(merged.back().last, range.last);
    else
      merged.push_back(range);
  }
  code_set made;
  for (const auto& range : merged) add_without_surrogates(range.first, std::min(range.last, last_code), made.ranges_);
  return made;
}

code_set code_set::inverted() const {
  code_set made;
  char32_t next = 0;
  for (const auto& range : normalised().ranges_) {
    if (range.first > next) made.add(next, range.first - 1);
    next = range.last + 1;
  }
  if (next <= last_code) made.add(next, last_code);
  return made.normalised();
}

code_set digit_set() {
  code_set set;
  set.add('0', '9');
  return set;
}

code_set word_set() {
  code_set set;
  set.add('0', '9');
  set.add('A', 'Z');
  set.add('_');
  set.add('a', 'z');
  return set;
}

code_set space_set() {
  code_set set;
  set.add(9, 13);
  for (const char32_t code : {0x20, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff}) set.add(code);
  set.add(0x2000, 0x200a);
  return set.normalised();
}

code_set dot_set() {
  code_set ends;
  for (const char32_t code : {0x0a, 0x0d, 0x2028, 0x2029}) ends.add(code);
  return ends.inverted();
}

code_set any_set() {
  code_set set;
  set.add(0, last_code);
  return set.normalised();
}

std::vector<utf8_sequence> utf8_sequences(const code_set& set) {
  std::vector<utf8_sequence> sequences;
  for (const auto& range : set.ranges()) add_sequences(range.first, range.last, sequences);
  return sequences;
}

}  // namespace skein::grammar
