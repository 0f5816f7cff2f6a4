#include "protocol/json/json_indent.hpp"

#include <utility>

#include "protocol/json/json_copy.hpp"

namespace skein::protocol {
namespace {

// Recursion is limited by the parser's limit of nesting.
void write_indented(std::string& out, json_value value, std::size_t depth) {
  const bool is_object = value.is(json_kind::object);
  if (!is_object && !value.is(json_kind::array)) {
    json_writer writer(out);
    return copy_json(writer, value);
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
      write_indented(out, member, depth + 1);
    }
  } else {
    for (const auto element : value.elements()) {
      begin_line();
      write_indented(out, element, depth + 1);
    }
  }
  if (!first) out.append(1, '\n').append(2 * depth, ' ');
  out += is_object ? '}' : ']';
}

}  // namespace

void indent_json(std::string& out, json_value value) { write_indented(out, value, 0); }

}  // namespace skein::protocol
