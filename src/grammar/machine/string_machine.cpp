#include "grammar/machine/string_machine.hpp"

#include <algorithm>
#include <bit>
#include <string_view>

namespace skein::grammar {
namespace {

// thread::escape: the mode in the lowest 3 bits, then what the mode needs.
//   digits, low_digits  bits 3-4: digits read; 5-16: their value; 17-26: the high surrogate before them, less 0xd800
//   backslash, letter_u bits 17-26: likewise
//   bytes               bits 3-4: bytes to come; 5-12 and 13-20: lowest and highest next byte
enum mode : std::uint32_t { plain, escaped, digits, low_backslash, low_letter, low_digits, bytes };

constexpr std::uint32_t item_characters = 16;
constexpr std::uint32_t longest_token = 256;
constexpr std::uint32_t listed_max = 512;  // literals that are looked at one by one

std::uint32_t digits_state(mode m, std::uint32_t count, std::uint32_t value, std::uint32_t high) {
  return m | count << 3 | value << 5 | high << 17;
}

/// Narrows the sorted texts first .. last - 1, which agree in their first `depth` bytes, to those with this next byte.
void narrow(const std::vector<std::string>& texts, std::uint32_t& first, std::uint32_t& last, std::uint32_t depth,
            unsigned char byte) {
  const auto begin = texts.begin();
  const auto low = std::partition_point(begin + first, begin + last, [&](const std::string& text) {
    return text.size() <= depth || static_cast<unsigned char>(text[depth]) < byte;
  });
  const auto high = std::partition_point(
      low, begin + last, [&](const std::string& text) { return static_cast<unsigned char>(text[depth]) <= byte; });
  first = static_cast<std::uint32_t>(low - begin);
  last = static_cast<std::uint32_t>(high - begin);
}

/// The character of a text of whole characters that begins at this byte.
char32_t code_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned lead = byte(at);
  if (lead < 0x80) return lead;
  const std::size_t more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
  char32_t code = lead & (0x3fu >> more);
  for (std::size_t i = 1; i <= more; ++i) code = code << 6 | (byte(at + i) & 0x3f);
  return code;
}

/// A JSON string has this byte only as an escape sequence.
bool needs_escape(unsigned char byte) { return byte < 0x20 || byte == '"' || byte == '\\'; }

std::size_t words_of(const program::object_spec& spec) { return spec.required.size(); }

}  // namespace

bool string_machine::begin_string(thread& t, std::uint32_t spec) const {
  const auto& s = program_.strings[spec];
  t.where = thread::at::string;
  t.spec = spec;
  t.a = t.b = t.c = t.d = t.escape = 0;
  t.value = t.top != program::none && frames_[t.top].digested ? digest::text : 0;
  if (s.literal)
    t.b = static_cast<std::uint32_t>(s.literals.size());
  else if (s.automaton)
    t.a = s.automaton->start;
  return t.value == 0 || unique_.has_literal(t);
}

/// The thread is in a string that must differ from other items of its array.
bool string_machine::is_item(const thread& t) const {
  return t.value != 0 && t.where == thread::at::string && unique_.is_unique(frames_[t.top]);
}

bool string_machine::begin_name(thread& t) const {
  const auto& object = frames_[t.top];
  const auto& spec = program_.objects[object.spec];
  const auto count = static_cast<std::uint32_t>(spec.names.size());
  const bool others = has_other_name(object);
  if (!others && !has_name(object, 0, count)) return false;
  t.where = thread::at::name;
  t.spec = object.spec;
  t.a = t.c = t.escape = 0;
  const bool counts = others && spec.counts_others && object.count < spec.counted_max();
  t.value = object.digested || counts ? digest::text : 0;
  t.b = count;
  t.d = !others ? 0 : spec.other_names ? spec.other_names->start : 1;
  return true;
}

bool string_machine::has_other_name(const frame& object) const {
  const auto& spec = program_.objects[object.spec];
  if (!spec.allows_others()) return false;
  if (spec.most == ~std::uint64_t{0}) return true;
  const auto seen = frames_.seen(object, words_of(spec));
  std::uint64_t missing = 0;
  for (std::size_t i = 0; i < seen.size(); ++i)
    missing += static_cast<std::uint64_t>(std::popcount(spec.required[i] & ~seen[i]));
  return object.count + 1 + missing <= spec.most;
}

bool string_machine::has_name(const frame& object, std::uint32_t first, std::uint32_t last) const {
  const auto& spec = program_.objects[object.spec];
  const auto seen = frames_.seen(object, words_of(spec));
  bool only_required = false;
  if (spec.most != ~std::uint64_t{0}) {
    std::uint64_t missing = 0;
    for (std::size_t i = 0; i < seen.size(); ++i)
      missing += static_cast<std::uint64_t>(std::popcount(spec.required[i] & ~seen[i]));
    only_required = object.count + 1 + missing > spec.most;
  }
  for (std::uint32_t i = first; i < last; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << (i % 64);
    if ((seen[i / 64] & bit) != 0 || spec.labels[i].node == program::none) continue;
    if (spec.second_first && i == 0 && (seen[0] & 2) == 0) continue;
    if (!only_required || (spec.required[i / 64] & bit) != 0) return true;
  }
  return false;
}

bool string_machine::feed(thread& t, unsigned char byte) const {
  const bool begins = (byte & 0xc0) != 0x80;
  if (t.value != 0) t.value = digest::add_byte(t.value, byte);
  if (t.where == thread::at::name) {
    const auto& spec = program_.objects[t.spec];
    if (t.a < t.b) {
      narrow(spec.names, t.a, t.b, t.c, byte);
      ++t.c;
      if (t.a == t.b) t.a = t.b = t.c = 0;
    }
    if (t.d != 0 && spec.other_names) t.d = spec.other_names->step(t.d, byte);
    return t.d != 0 || (t.a < t.b && has_name(frames_[t.top], t.a, t.b));
  }
  const auto& spec = program_.strings[t.spec];
  if (spec.literal) {
    narrow(spec.literals, t.a, t.b, t.c, byte);
    ++t.c;
    return t.a < t.b && (t.value == 0 || unique_.has_literal(t));
  }
  if (begins) {
    if (spec.most != program::none) {
      if (t.c >= spec.most) return false;
      ++t.c;
    } else {
      t.c = std::min(t.c + 1, spec.least);
    }
  }
  if (!spec.automaton) return true;
  t.a = spec.automaton->step(t.a, byte);
  return t.a != dfa::dead;
}

/// Some string within the limits of length begins so. The thread may be within a character, which is counted already.
bool string_machine::has_length(const thread& t) const {
  if (t.where == thread::at::name) return true;
  const auto& spec = program_.strings[t.spec];
  if (!spec.lengths) return true;
  const std::uint64_t least = spec.least - std::min(spec.least, t.c);
  return spec.lengths->possible(t.a, least, spec.most == program::none ? ~std::uint64_t{0} : spec.most - t.c);
}

bool string_machine::ended_character(const thread& t) const {
  if (t.where == thread::at::name) return true;
  if (t.c == program_.strings[t.spec].most && is_item(t) && unique_.is_used(frames_[t.top], t.value)) return false;
  return has_length(t);
}

bool string_machine::feed_code(thread& t, char32_t code) const {
  t.escape = plain;
  if (code < 0x80) return feed(t, static_cast<unsigned char>(code)) && ended_character(t);
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static constexpr unsigned lead[] = {0, 0xc0, 0xe0, 0xf0};
  if (!feed(t, static_cast<unsigned char>(lead[more] | code >> (6 * more)))) return false;
  for (int i = more; i-- > 0;)
    if (!feed(t, static_cast<unsigned char>(0x80 | (code >> (6 * i) & 0x3f)))) return false;
  return ended_character(t);
}

void string_machine::add_bytes(const thread& t, byte_set& to) const {
  const auto add = [&](std::string_view some) {
    for (const char byte : some) to.add(static_cast<unsigned char>(byte));
  };
  switch (t.escape & 7) {
    case plain: break;
    case escaped: return add("\"\\/bfnrtu");
    case bytes:
      if (is_listed(t)) break;
      return to.add(static_cast<unsigned char>(t.escape >> 5), static_cast<unsigned char>(t.escape >> 13));
    case low_backslash: return add("\\");
    case low_letter: return add("u");
    default: return add("0123456789abcdefABCDEF");
  }
  if (!is_listed(t)) return to.add(0x20, 0xff);
  const auto& texts = listed(t);
  if (!program_.bounds.plain_texts) to.add('\\');
  for (auto first = t.a; first < t.b;) {
    if (texts[first].size() <= t.c) {
      to.add('"');
      ++first;
      continue;
    }
    const auto byte = static_cast<unsigned char>(texts[first][t.c]);
    to.add(needs_escape(byte) ? '\\' : byte);
    auto last = t.b;
    narrow(texts, first, last, t.c, byte);
    first = last;
  }
}

/// Only literals or listed names continue the thread.
bool string_machine::is_listed(const thread& t) const {
  return t.where == thread::at::name ? t.d == 0 : program_.strings[t.spec].literal;
}

const std::vector<std::string>& string_machine::listed(const thread& t) const {
  return t.where == thread::at::name ? program_.objects[t.spec].names : program_.strings[t.spec].literals;
}

/// True if an escape sequence may come next.
bool string_machine::may_escape(const thread& t) const {
  if (!program_.bounds.plain_texts || !is_listed(t)) return any_code(t, 0, 0x10ffff);
  return any_code(t, 0, 0x1f) || any_code(t, '"', '"') || any_code(t, '\\', '\\');
}

bool string_machine::any_listed(const thread& t, char32_t first, char32_t last) const {
  const bool is_name = t.where == thread::at::name;
  const auto& texts = listed(t);
  for (auto i = t.a; i < t.b; ++i) {
    if (texts[i].size() <= t.c) continue;
    const auto code = code_at(texts[i], t.c);
    if (code < first || code > last) continue;
    thread one = t;
    one.a = i;
    one.b = i + 1;
    if (is_name ? has_name(frames_[t.top], i, i + 1) : t.value == 0 || unique_.has_literal(one)) return true;
  }
  return false;
}

/// True if one of these code points may come next. Skips all that share a beginning that is not possible.
bool string_machine::any_code(const thread& t, char32_t first, char32_t last) const {
  std::uint64_t characters = 0;
  if (freedom_of(t, characters) == freedom::any) return true;
  if (t.b - t.a <= listed_max && is_listed(t)) return any_listed(t, first, last);
  for (char32_t code = first; code <= last;) {
    if (code >= 0xd800 && code <= 0xdfff) {
      code = 0xe000;
      continue;
    }
    thread next = t;
    next.escape = plain;
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static constexpr unsigned lead[] = {0, 0xc0, 0xe0, 0xf0};
    bool alive = feed(next, static_cast<unsigned char>(more == 0 ? code : lead[more] | code >> (6 * more)));
    int left = more;
    while (alive && left > 0) {
      --left;
      alive = feed(next, static_cast<unsigned char>(0x80 | (code >> (6 * left) & 0x3f)));
    }
    if (alive && ended_character(next)) return true;
    code = (code | ((char32_t{1} << (6 * left)) - 1)) + 1;
  }
  return false;
}

bool string_machine::read(thread& t, unsigned char byte) const {
  if (t.escape == plain) {
    if (byte == '\\') {
      t.escape = escaped;
      return may_escape(t);
    }
    if (byte < 0x20) return false;
    if (byte < 0x80) return feed(t, byte) && ended_character(t);
    if (byte < 0xc2 || byte > 0xf4) return false;
    const std::uint32_t more = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    const std::uint32_t low = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
    const std::uint32_t high = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
    t.escape = bytes | more << 3 | low << 5 | high << 13;
    return feed(t, byte) && has_length(t);
  }
  if ((t.escape & 7) == bytes) {
    if (byte < (t.escape >> 5 & 0xff) || byte > (t.escape >> 13 & 0xff)) return false;
    const std::uint32_t more = (t.escape >> 3 & 3) - 1;
    t.escape = more == 0 ? std::uint32_t{plain} : bytes | more << 3 | 0x80u << 5 | 0xbfu << 13;
    return feed(t, byte) && (more > 0 ? has_length(t) : ended_character(t));
  }
  return read_escape(t, byte);
}

bool string_machine::read_escape(thread& t, unsigned char byte) const {
  switch (t.escape & 7) {
    case escaped:
      switch (byte) {
        case '"':
        case '\\':
        case '/': return feed_code(t, byte);
        case 'b': return feed_code(t, '\b');
        case 'f': return feed_code(t, '\f');
        case 'n': return feed_code(t, '\n');
        case 'r': return feed_code(t, '\r');
        case 't': return feed_code(t, '\t');
        case 'u': t.escape = digits; return true;
        default: return false;
      }
    case low_backslash: t.escape = (t.escape & ~7u) | low_letter; return byte == '\\';
    case low_letter: t.escape = (t.escape & ~7u) | low_digits; return byte == 'u';
    default: return read_digit(t, byte);
  }
}

bool string_machine::read_digit(thread& t, unsigned char byte) const {
  const auto m = static_cast<mode>(t.escape & 7);
  const std::uint32_t digit = byte >= '0' && byte <= '9'   ? byte - '0'
                              : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10u
                              : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10u
                                                           : 16u;
  if (digit == 16) return false;
  const std::uint32_t count = (t.escape >> 3 & 3) + 1, high = t.escape >> 17;
  const std::uint32_t value = (t.escape >> 5 & 0xfff) << 4 | digit;
  // The units that may still follow, and what they stand for.
  const unsigned open = 4 * (4 - count);
  std::uint32_t first = value << open, last = first | ((1u << open) - 1);
  if (m == low_digits) {
    first = std::max(first, 0xdc00u);
    last = std::min(last, 0xdfffu);
    if (first > last) return false;
    const char32_t base = 0x10000 + (high << 10) - 0xdc00;
    if (count == 4) return feed_code(t, base + value);
    t.escape = digits_state(low_digits, count, value, high);
    return any_code(t, base + first, base + last);
  }
  if (count < 4) {
    t.escape = digits_state(digits, count, value, 0);
    if (any_code(t, first, last)) return true;
    first = std::max(first, 0xd800u);
    last = std::min(last, 0xdbffu);
    return first <= last && any_code(t, 0x10000 + ((first - 0xd800) << 10), 0x10000 + ((last - 0xd800) << 10) + 0x3ff);
  }
  if (value >= 0xdc00 && value <= 0xdfff) return false;
  if (value < 0xd800 || value > 0xdbff) return feed_code(t, value);
  t.escape = digits_state(low_backslash, 0, 0, value - 0xd800);
  const char32_t base = 0x10000 + ((value - 0xd800) << 10);
  return any_code(t, base, base + 0x3ff);
}

bool string_machine::may_end(const thread& t) const {
  if (t.escape != plain) return false;
  const auto& spec = program_.strings[t.spec];
  if (spec.literal) return spec.literals[t.a].size() == t.c;
  return t.c >= spec.least && (!spec.automaton || spec.automaton->accepting[t.a] != 0);
}

bool string_machine::end_name(const thread& t, ended_name& out) const {
  if (t.escape != plain) return false;
  const auto& object = frames_[t.top];
  const auto& spec = program_.objects[t.spec];
  if (t.a < t.b && spec.names[t.a].size() == t.c) {
    out.bit = t.a;
    out.label = spec.labels[t.a];
    return has_name(object, t.a, t.a + 1);
  }
  if (t.d == 0) return false;
  out.bit = program::none;
  out.label = spec.other;
  if (spec.other_names) {
    const auto label = spec.other_names->accepting[t.d];
    out.label = {};
    for (const auto& [each, follows] : spec.other_by_label)
      if (each == label) out.label = follows;
  }
  return out.label.node != program::none;
}

string_machine::freedom string_machine::freedom_of(const thread& t, std::uint64_t& characters) const {
  characters = ~std::uint64_t{0};
  if (t.where == thread::at::name) {
    const auto& spec = program_.objects[t.spec];
    if (t.d == 0) return freedom::listed;
    if (!spec.other_names) return freedom::any;
    if (spec.other_names->open[t.d]) return freedom::any;
    return freedom::automaton;  // or by the listed names
  }
  const auto& spec = program_.strings[t.spec];
  if (spec.literal) return freedom::listed;
  // The last characters depend on the other items. Longer tokens are not expected to end as one of them.
  if (spec.most != program::none && spec.most - t.c <= item_characters && is_item(t)) return freedom::listed;
  if (spec.most != program::none) characters = spec.most - t.c;
  if (spec.lengths && !spec.lengths->is_free(t.a)) {
    // Far from both limits the table changes nothing, because every state can still accept.
    const bool roomy = t.c >= spec.least && characters >= spec.lengths->last + std::uint64_t{longest_token};
    if (!roomy) return is_item(t) ? freedom::listed : freedom::counted;
  }
  if (spec.automaton && !spec.automaton->open[t.a]) return freedom::automaton;
  return spec.most == program::none ? freedom::any : freedom::limited;
}

}  // namespace skein::grammar
