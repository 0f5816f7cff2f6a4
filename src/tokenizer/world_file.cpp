#include "tokenizer/world_file.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "tokenizer/python_literal.hpp"

namespace skein::tokenizer {
namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";  // some editors write it at the start of UTF-8 files

error fault(std::string_view where, std::size_t line, const std::string& what) {
  return {error_kind::bad_file, std::string(where) + " line " + std::to_string(line) + ": " + what, {}};
}

std::optional<std::uint32_t> parse_count(std::string_view digits) {
  std::uint32_t value = 0;
  const auto [end, trouble] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (trouble != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

class world_file_parser {
 public:
  explicit world_file_parser(std::string_view where) : where_(where) {}

  result<token_list> parse(std::string_view text) {
    std::size_t number = 0;
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end == text.npos ? text.size() : end + 1);
      ++number;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty()) continue;
      if (auto read = read_line(line, number); !read) return read.error();
    }
    if (list_.tokens.empty()) return error{error_kind::bad_file, std::string(where_) + ": no tokens", {}};
    if (auto sorted = sort(); !sorted) return sorted.error();
    return std::move(list_);
  }

 private:
  result<void> read_line(std::string_view line, std::size_t number) {
    if (line.size() > world_line_bytes_max) return fault(where_, number, "the line is too long for a token");
    const std::size_t first = line.find(' ');
    const std::size_t last = line.rfind(' ');
    if (first == last) return fault(where_, number, "not `<id> <literal> <byte count>`");

    const auto id = parse_count(line.substr(0, first));
    if (!id) return fault(where_, number, "the id is not a number");
    if (*id == 0) return fault(where_, number, "id 0 is the end of text and has no line");
    if (*id >= world_ids_max)
      return fault(where_, number, "id " + std::to_string(*id) + " is not below " + std::to_string(world_ids_max));
    if (*id >= line_of_.size()) line_of_.resize(*id + 1);
    if (line_of_[*id] != 0)
      return fault(where_, number,
                   "id " + std::to_string(*id) + " is already used in line " + std::to_string(line_of_[*id]));
    line_of_[*id] = static_cast<std::uint32_t>(number);

    const std::size_t offset = list_.bytes.size();
    const auto literal = decode_python_literal(line.substr(first + 1, last - first - 1), list_.bytes);
    if (!literal) return fault(where_, number, literal.error().message);
    const std::size_t length = list_.bytes.size() - offset;
    if (parse_count(line.substr(last + 1)) != length)
      return fault(where_, number, "the byte count does not match the text (" + std::to_string(length) + " bytes)");
    if (length == 0) return fault(where_, number, "the text is empty");
    if (length > token_bytes_max)
      return fault(where_, number, "the text has more than " + std::to_string(token_bytes_max) + " bytes");
    list_.tokens.push_back(
        {static_cast<token_id>(*id), static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(length)});
    return {};
  }

  /// Sorts the tokens by their bytes, so that equal ones are adjacent.
  result<void> sort() {
    auto& tokens = list_.tokens;
    const auto line = [&](const token_list::token& t) { return line_of_[static_cast<std::size_t>(t.id)]; };
    std::sort(tokens.begin(), tokens.end(), [&](const auto& a, const auto& b) {
      const int order = list_.text(a).compare(list_.text(b));
      return order != 0 ? order < 0 : line(a) < line(b);
    });
    const auto same = [&](const auto& a, const auto& b) { return list_.text(a) == list_.text(b); };
    const auto twice = std::adjacent_find(tokens.begin(), tokens.end(), same);
    if (twice == tokens.end()) return {};
    return fault(where_, line(twice[1]), "the same text as line " + std::to_string(line(twice[0])));
  }

  std::string_view where_;
  token_list list_;
  std::vector<std::uint32_t> line_of_;  // by id; 0: no line yet
};

}  // namespace

result<token_list> parse_world_file(std::string_view text, std::string_view where) {
  if (text.size() > world_file_bytes_max)
    return error{error_kind::bad_file,
                 std::string(where) + ": the file has more than " + std::to_string(world_file_bytes_max) + " bytes",
                 {}};
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  return world_file_parser(where).parse(text);
}

}  // namespace skein::tokenizer
