#include "protocol/json/json_indent.hpp"

#include <utility>

#include "protocol/json/json_copy.hpp"

namespace skein::protocol {
namespace {

/// False: `out` has become longer than `size_max`. Recursion is limited by the parser's limit of nesting.
bool write_indented(std::string& out, json_value value, std::size_t depth, std::size_t size_max) {
  const bool is_object = value.is(json_kind::object);
  if (!is_object && !value.is(json_kind::array)) {
    json_writer writer(out);
    copy_json(writer, value);
    return out.size() <= size_max;
  }
  bool first = true;
  const auto begin_line = [&] {
    if (!std::exchange(first, false)) out += ',';
    out.append(1, '\n').append(2 * (depth + 1), ' ');
  };
  out += is_object ? '{' : '[';
  if (is_object) {
    for (const auto [name, member] : value.members()) {
      begin_line();
      json_writer(out).value(name);
      out += ": ";
      if (!write_indented(out, member, depth + 1, size_max)) return false;
    }
  } else {
    for (const auto element : value.elements()) {
      begin_line();
      if (!write_indented(out, element, depth + 1, size_max)) return false;
    }
  }
  if (!first) out.append(1, '\n').append(2 * depth, ' ');
  out += is_object ? '}' : ']';
  return out.size() <= size_max;
}

/// The same for compact JSON.
bool write_indented(std::string& out, std::string_view compact, std::size_t size_max) {
  std::size_t depth = 0;
  bool quoted = false;
  const auto begin_line = [&] { out.append(1, '\n').append(2 * depth, ' '); };
  for (std::size_t i = 0; i < compact.size() && out.size() <= size_max; ++i) {
    const char c = compact[i];
    const bool empty = i + 1 < compact.size() && (compact[i + 1] == '}' || compact[i + 1] == ']');
    if (quoted) {
      out += c;
      if (c == '\\' && i + 1 < compact.size()) out += compact[++i];
      quoted = c != '"';
      continue;
    }
    quoted = c == '"';
    if (c == '}' || c == ']') {
      --depth;
      begin_line();
    }
    out += c;
    if (c == ':') out += ' ';
    if (c == '{' || c == '[') {
      if (empty) {
        out += compact[++i];
        continue;
      }
      ++depth;
    }
    if (c == '{' || c == '[' || c == ',') begin_line();
  }
  return out.size() <= size_max;
}

std::size_t size_max_of(const std::string& out, std::size_t bytes_max) {
  constexpr auto most = std::numeric_limits<std::size_t>::max();
  return bytes_max > most - out.size() ? most : out.size() + bytes_max;
}

}  // namespace

void indent_json(std::string& out, json_value value, std::size_t bytes_max) {
  const std::size_t before = out.size();
  if (write_indented(out, value, 0, size_max_of(out, bytes_max))) return;
  out.resize(before);
  json_writer writer(out);
  copy_json(writer, value);
}

void indent_json(std::string& out, std::string_view compact, std::size_t bytes_max) {
  const std::size_t before = out.size();
  if (write_indented(out, compact, size_max_of(out, bytes_max))) return;
  out.resize(before);
  out += compact;
}

}  // namespace skein::protocol
