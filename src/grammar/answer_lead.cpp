#include "grammar/answer_lead.hpp"

#include <algorithm>
#include <string>

namespace skein::grammar {
namespace {

constexpr std::string_view thoughts_end = "</think>";
constexpr int newlines_max = 4;

unsigned char byte_of(char c) { return static_cast<unsigned char>(c); }

/// The beginnings of all marks, the empty one first.
std::vector<std::string> prefixes_of(const std::vector<std::string_view>& marks) {
  std::vector<std::string> prefixes{""};
  for (const auto mark : marks)
    for (std::size_t n = 1; n < mark.size(); ++n)
      if (std::string prefix(mark.substr(0, n)); std::ranges::find(prefixes, prefix) == prefixes.end())
        prefixes.push_back(std::move(prefix));
  return prefixes;
}

}  // namespace

answer_lead::state answer_lead::add(state everywhere, ending may_end) {
  row made;
  made.next.fill(everywhere);
  made.may_end = may_end;
  states_.push_back(made);
  return static_cast<state>(states_.size() - 1);
}

/// Up to newlines_max newlines after the state `first`; any other byte is the grammar's.
void answer_lead::add_newlines(state first) {
  for (int i = 0; i < newlines_max; ++i) {
    const bool last = i + 1 == newlines_max;
    at(first).next['\n'] = last ? begins : static_cast<state>(states_.size());
    if (!last) first = add(begins_with_it, ending::as_grammar);
  }
}

answer_lead answer_lead::after_tag(char first, bool needed, newlines after_it) {
  answer_lead made;
  const state begin = made.add(needed ? dead : begins_with_it, needed ? ending::none : ending::as_grammar);
  if (after_it == newlines::none) {
    made.skips_newlines_ = false;
    made.at(begin).next[byte_of(first)] = begins;
    return made;
  }
  if (!needed) made.at(begin).next['\n'] = 1;
  const state after = made.add(begins_with_it, ending::as_grammar);
  made.at(begin).next[byte_of(first)] = after;
  made.add_newlines(after);
  return made;
}

answer_lead answer_lead::after_thoughts(char first, newlines after) {
  answer_lead made;
  const state begin = made.add(1);
  made.at(begin).next[byte_of(first)] = 1;
  const auto size = static_cast<state>(thoughts_end.size());
  for (state matched = 0; matched < size; ++matched) {
    const state here = made.add(1);
    made.at(here).next[byte_of(thoughts_end.front())] = 2;
    made.at(here).next[byte_of(thoughts_end[static_cast<std::size_t>(matched)])] = static_cast<state>(matched + 2);
  }
  // The splitter takes a tag that begins with the first byte as well.
  made.at(begin).next[byte_of(thoughts_end.front())] = 2;
  made.skips_newlines_ = after == newlines::some;
  if (made.skips_newlines_)
    made.add_newlines(made.add(begins_with_it, ending::as_grammar));
  else
    made.at(size).next[byte_of(thoughts_end.back())] = begins;
  return made;
}

void answer_lead::allow_text_before(const std::vector<std::string_view>& marks) {
  const auto prefixes = prefixes_of(marks);
  const auto first = static_cast<state>(states_.size());
  for (auto& one : states_) {
    for (auto& next : one.next)
      if (next == begins) next = first;
    if (one.may_end == ending::as_grammar) one.may_end = ending::free;
  }
  const std::size_t led = states_.size();
  for (const auto& prefix : prefixes) {
    const state here = add(first, ending::free);
    for (unsigned byte = 0; byte < 256; ++byte) {
      std::string read = prefix + static_cast<char>(byte);
      if (std::ranges::any_of(marks, [&](std::string_view m) { return read.ends_with(m); })) {
        at(here).next[byte] = begins;
        continue;
      }
      auto known = std::ranges::find(prefixes, read);
      while (known == prefixes.end()) {
        read.erase(0, 1);
        known = std::ranges::find(prefixes, read);
      }
      at(here).next[byte] = static_cast<state>(first + (known - prefixes.begin()));
    }
  }
  for (std::size_t i = 0; i < led; ++i)
    for (unsigned byte = 0; byte < 256; ++byte)
      if (states_[i].next[byte] == begins_with_it) states_[i].next[byte] = at(first).next[byte];
}

}  // namespace skein::grammar
