#include "grammar/machine/next_bytes.hpp"

#include <string_view>

namespace skein::grammar {
namespace {

using at = thread::at;

}  // namespace

void next_bytes::add_value(std::uint32_t node, byte_set& to) const {
  if (node == program::none) return;
  const auto& of = program_.nodes[node];
  if (!of.strings.empty()) to.add('"');
  if (!of.objects.empty()) to.add('{');
  if (!of.arrays.empty()) to.add('[');
  if (of.null) to.add('n');
  if (of.truth) to.add('t');
  if (of.falsehood) to.add('f');
  if (!of.number) return;
  to.add('-');
  to.add('0', '9');
}

void next_bytes::add_text(std::uint32_t state, byte_set& to) const {
  const auto& of = *program_.text;
  if (of.open[state]) return to.add(0, 255);
  for (unsigned byte = 0; byte < 256; ++byte)
    if (of.step(state, static_cast<unsigned char>(byte)) != dfa::dead) to.add(static_cast<unsigned char>(byte));
}

void next_bytes::add(const thread& t, byte_set& to) const {
  const auto add = [&](std::string_view bytes) {
    for (const char byte : bytes) to.add(static_cast<unsigned char>(byte));
  };
  switch (t.where) {
    case at::string:
    case at::name: return strings_.add_bytes(t, to);
    case at::word: return to.add(static_cast<unsigned char>(json_words[t.spec][t.a]));
    case at::text: return add_text(t.a, to);
    case at::rule: return to.add(program_.instructions[t.a].low, program_.instructions[t.a].high);
    case at::number:
      add("0123456789-+.eE");
      if (program_.nodes[t.spec].number->accepting[t.a] != 0) add(" \t\n\r,}]");
      return;
    default: break;
  }
  add(" \t\n\r");
  switch (t.where) {
    case at::value: return add_value(t.spec, to);
    case at::object_open: return add("\"}");
    case at::next_name: return add("\"");
    case at::colon: return add(":");
    case at::after_member: return add(",}");
    case at::after_item: return add(",]");
    case at::array_open: {
      const auto& array = program_.arrays[frames_[t.top].spec];
      to.add(']');
      add_value(array.node_at(0), to);
      return add_value(array.contained_at(0), to);
    }
    default: return;
  }
}

}  // namespace skein::grammar
