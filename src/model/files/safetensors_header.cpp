#include "model/files/safetensors_header.hpp"

#include "model/files/checkpoint_limits.hpp"

namespace skein::model {
namespace {

constexpr std::pair<std::string_view, dtype> type_names[] = {
    {"F32", dtype::f32}, {"BF16", dtype::bf16}, {"F16", dtype::f16}, {"F64", dtype::f64},
    {"I8", dtype::i8},   {"U8", dtype::u8},     {"I32", dtype::i32}, {"I64", dtype::i64}};

/// Each member function parses one rule of the grammar and returns false after the first fault, which `fault_` keeps.
class header_parser {
 public:
  header_parser(byte_span file, std::uint64_t begin, std::uint64_t end, file_metadata* metadata)
      : text_(text_at(file, 0, end)), at_(static_cast<std::size_t>(begin)), metadata_(metadata) {}

  result<std::vector<safetensors_entry>> run() {
    if (!header()) return fault_;
    return std::move(entries_);
  }

 private:
  bool header() {
    if (!valid_utf8(text_.substr(at_))) return fail("the header is not UTF-8");
    const auto entry = [this] {
      const std::size_t start = at_;
      std::string name;
      if (!string(name) || !expect(':')) return false;
      if (name == "__metadata__") return metadata();
      if (entries_.size() == max_tensors) return fail("more than " + std::to_string(max_tensors) + " tensors");
      if (name.empty() || name.size() > max_tensor_name_bytes) return fail("a tensor name is empty or too long");
      entries_.push_back({std::move(name), {}, {}, 0, 0, start});
      return tensor(entries_.back());
    };
    if (!list('{', '}', entry)) return false;
    skip_space();
    return at_ == text_.size() || fail("text after the end of the header");
  }

  bool metadata() {
    return list('{', '}', [this] {
      std::string key, value;
      if (!string(key) || !expect(':') || !string(value)) return false;
      if (metadata_) metadata_->emplace_back(std::move(key), std::move(value));
      return true;
    });
  }

  bool tensor(safetensors_entry& entry) {
    enum : unsigned { has_type = 1, has_shape = 2, has_offsets = 4, complete = 7 };
    unsigned seen = 0;
    const auto once = [&](unsigned key) {
      if (seen & key) return fail("a key of tensor " + printable(entry.name) + " appears twice");
      seen |= key;
      return true;
    };
    const auto field = [&] {
      std::string key;
      if (!string(key) || !expect(':')) return false;
      if (key == "dtype") return once(has_type) && string(entry.type);
      if (key == "shape") return once(has_shape) && numbers(entry.shape, max_dimensions);
      if (key != "data_offsets") return fail("unknown key " + printable(key) + " in tensor " + printable(entry.name));
      std::vector<std::uint64_t> range;
      if (!once(has_offsets) || !numbers(range, 2)) return false;
      if (range.size() != 2) return fail("data_offsets of tensor " + printable(entry.name) + " is not a pair");
      entry.begin = range[0];
      entry.end = range[1];
      return true;
    };
    if (!list('{', '}', field)) return false;
    return seen == complete || fail("tensor " + printable(entry.name) + " has no dtype, shape or data_offsets");
  }

  bool numbers(std::vector<std::uint64_t>& out, std::size_t most) {
    return list('[', ']', [&] {
      if (out.size() == most) return fail("more than " + std::to_string(most) + " numbers");
      out.push_back(0);
      return number(out.back());
    });
  }

  /// open, items separated by commas, close.
  template <typename Item>
  bool list(char open, char close, Item item) {
    if (!expect(open)) return false;
    if (accept(close)) return true;
    do {
      if (!item()) return false;
    } while (accept(','));
    return expect(close);
  }

  bool number(std::uint64_t& out) {
    skip_space();
    const std::size_t start = at_;
    out = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
      if (__builtin_mul_overflow(out, 10u, &out) || __builtin_add_overflow(out, digit, &out))
        return fail("a number exceeds 64 bits");
    }
    if (at_ == start) return fail("expected a non-negative integer");
    if (text_[start] == '0' && at_ > start + 1) return fail("a number has a leading zero");
    return true;
  }

  bool string(std::string& out) {
    if (!expect('"')) return false;
    out.clear();
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return true;
      if (static_cast<unsigned char>(c) < 0x20) return fail("a control character in a string");
      if (c != '\\') {
        out += c;
      } else if (!escape(out)) {
        return false;
      }
    }
    return fail("the header ends inside a string");
  }

  bool escape(std::string& out) {
    constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    if (at_ == text_.size()) return fail("the header ends inside a string");
    const char c = text_[at_++];
    if (c == 'u') return unicode_escape(out);
    const std::size_t which = letters.find(c);
    if (which == std::string_view::npos) return fail("unknown escape in a string");
    out += meanings[which];
    return true;
  }

  bool unicode_escape(std::string& out) {
    std::uint32_t code = 0;
    if (!hex4(code)) return false;
    if (code >= 0xd800 && code < 0xe000) {  // a surrogate pair, or a fault
      std::uint32_t low = 0;
      if (code >= 0xdc00 || text_.substr(at_, 2) != "\\u") return fail("half of a surrogate pair in a string");
      at_ += 2;
      if (!hex4(low)) return false;
      if (low < 0xdc00 || low >= 0xe000) return fail("half of a surrogate pair in a string");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    const auto add = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
    const auto tail = [&](int shift) { add(0x80 | ((code >> shift) & 0x3f)); };
    if (code < 0x80) {
      add(code);
    } else if (code < 0x800) {
      add(0xc0 | (code >> 6)), tail(0);
    } else if (code < 0x10000) {
      add(0xe0 | (code >> 12)), tail(6), tail(0);
    } else {
      add(0xf0 | (code >> 18)), tail(12), tail(6), tail(0);
    }
    return true;
  }

  bool hex4(std::uint32_t& out) {
    out = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = at_ < text_.size() ? text_[at_] : ' ';
      if (c >= '0' && c <= '9')
        out = out * 16 + static_cast<std::uint32_t>(c - '0');
      else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        out = out * 16 + static_cast<std::uint32_t>((c | 0x20) - 'a' + 10);
      else
        return fail("expected four hexadecimal digits after \\u");
    }
    return true;
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }

  bool accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool expect(char c) { return accept(c) || fail("expected " + printable({&c, 1})); }

  bool fail(std::string_view what) {
    fault_ = damaged(at_, what);
    return false;
  }

  std::string_view text_;  // the file up to the end of the header
  std::size_t at_;
  std::vector<safetensors_entry> entries_;
  file_metadata* metadata_;
  error fault_;
};

}  // namespace

std::string_view safetensors_name(dtype type) {
  for (const auto& [name, known] : type_names)
    if (known == type) return name;
  return "?";
}

std::optional<dtype> safetensors_type(std::string_view name) {
  for (const auto& [known, type] : type_names)
    if (known == name) return type;
  return std::nullopt;
}

result<std::vector<safetensors_entry>> parse_safetensors_header(byte_span file, std::uint64_t begin, std::uint64_t end,
                                                                file_metadata* metadata) {
  return header_parser(file, begin, end, metadata).run();
}

}  // namespace skein::model
