#include "protocol/chat/call_splitter.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "protocol/json/json_copy.hpp"

namespace skein::protocol {
namespace {

constexpr std::array<std::string_view, 4> marks{"```json\n", "<tool_call>", "<tool_calls>", "@@tool "};
constexpr std::array<std::string_view, 3> call_ends{"```", "</tool_call>", "</tool_calls>"};
constexpr std::string_view heading = "**Tool Call:**";  // before a mark
constexpr std::string_view spaces = " \t\r\n";
constexpr std::size_t call_bytes_max = 1u << 20;

/// The number of bytes at the end of the text that may begin a mark or a heading.
std::size_t possible_beginning(std::string_view text) {
  std::size_t most = 0;
  const auto look = [&](std::string_view mark) {
    for (std::size_t n = std::min(mark.size() - 1, text.size()); n > most; --n)
      if (text.ends_with(mark.substr(0, n))) most = n;
  };
  std::ranges::for_each(marks, look);
  look(heading);
  const std::size_t at = text.rfind(heading);
  if (at == std::string_view::npos) return most;
  // After a heading only space and the beginning of a mark keep it back.
  std::string_view rest = text.substr(at + heading.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(spaces), rest.size()));
  const bool open = std::ranges::any_of(marks, [&](std::string_view mark) { return mark.starts_with(rest); });
  return open ? std::max(most, text.size() - at) : most;
}

std::string_view without_heading(std::string_view text) {
  const std::size_t end = text.find_last_not_of(spaces);
  const auto trimmed_text = text.substr(0, end == std::string_view::npos ? 0 : end + 1);
  return trimmed_text.ends_with(heading) ? text.substr(0, trimmed_text.size() - heading.size()) : text;
}

std::optional<tool_call> call_of(json_value value) {
  if (!value.is(json_kind::object)) return std::nullopt;
  if (const auto function = value.member("function"); function && function->is(json_kind::object)) value = *function;
  auto name = value.member("name");
  if (!name) name = value.member("function");
  auto arguments = value.member("arguments");
  if (!arguments) arguments = value.member("parameters");
  if (!name || !name->text()) return std::nullopt;
  tool_call call{"", std::string(*name->text()), "{}"};
  if (!arguments) return call;
  if (!arguments->is(json_kind::object)) return std::nullopt;
  call.arguments.clear();
  json_writer out(call.arguments);
  copy_json(out, *arguments);
  return call;
}

}  // namespace

std::span<const std::string_view> call_marks() { return marks; }

bool call_splitter::take_calls(std::string_view json, std::vector<tool_call>& calls) const {
  const auto document = json_document::parse(json, {});
  if (!document) return false;
  std::vector<tool_call> found;
  const auto take = [&](json_value value) {
    auto call = call_of(value);
    if (!call || std::ranges::find(*names_, call->name) == names_->end()) return false;
    found.push_back(std::move(*call));
    return true;
  };
  if (document->root().is(json_kind::array)) {
    for (const auto element : document->root().elements())
      if (!take(element)) return false;
  } else if (!take(document->root())) {
    return false;
  }
  calls.insert(calls.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  return true;
}

void call_splitter::push(std::string_view piece, std::string& text, std::vector<tool_call>& calls) {
  if (!names_) {
    text += piece;
    return;
  }
  held_ += piece;
  while (advance(text, calls)) continue;
}

void call_splitter::finish(std::string& text, std::vector<tool_call>& calls) {
  if (!names_) return;
  over_ = true;
  while (advance(text, calls)) continue;
  if (!after_call_) text.append(in_call_ ? mark_ : "").append(held_);
  held_.clear();
}

/// One step; false: more text is needed.
bool call_splitter::advance(std::string& text, std::vector<tool_call>& calls) {
  if (after_call_) return skip_end();
  return in_call_ ? read_json(text, calls) : find_mark(text);
}

bool call_splitter::find_mark(std::string& text) {
  std::size_t first = std::string::npos;
  for (const auto mark : marks) {
    const std::size_t at = held_.find(mark);
    if (at >= first) continue;
    first = at;
    mark_ = mark;
  }
  if (first != std::string::npos) {
    text += without_heading(std::string_view(held_).substr(0, first));
    held_.erase(0, first + mark_.size());
    in_call_ = true;
    read_ = 0, depth_ = 0, quoted_ = escaped_ = false;
    return true;
  }
  const std::size_t kept = over_ ? 0 : possible_beginning(held_);
  text.append(held_, 0, held_.size() - kept);
  held_.erase(0, held_.size() - kept);
  return false;
}

/// Reads up to the end of the first JSON value.
bool call_splitter::read_json(std::string& text, std::vector<tool_call>& calls) {
  const auto give_up = [&] {
    text.append(mark_).append(held_, 0, read_);
    held_.erase(0, read_);
    in_call_ = false;
    mark_ = {};
    return true;
  };
  for (; read_ < held_.size(); ++read_) {
    const char c = held_[read_];
    if (quoted_) {
      if (!escaped_ && c == '"') quoted_ = false;
      escaped_ = !escaped_ && c == '\\';
      continue;
    }
    if (depth_ == 0 && spaces.find(c) != std::string_view::npos) continue;
    if (depth_ == 0 && c != '{' && c != '[') return give_up();
    if (c == '"') quoted_ = true;
    if (c == '{' || c == '[') ++depth_;
    if (c != '}' && c != ']') continue;
    if (--depth_ > 0) continue;
    ++read_;
    if (!take_calls(std::string_view(held_).substr(0, read_), calls)) return give_up();
    held_.erase(0, read_);
    in_call_ = false;
    after_call_ = true;
    mark_ = {};
    return true;
  }
  if (held_.size() > call_bytes_max) return give_up();
  return false;
}

/// Removes the closing tag of a call, and white space around it. What may begin another call is none.
bool call_splitter::skip_end() {
  held_.erase(0, std::min(held_.find_first_not_of(spaces), held_.size()));
  if (held_.empty()) return false;
  const auto begins = [&](std::string_view one) { return held_.starts_with(one); };
  const auto may_begin = [&](std::string_view one) { return !over_ && one.starts_with(held_); };
  const bool another = std::ranges::any_of(marks, begins);
  if (!another && (std::ranges::any_of(marks, may_begin) || std::ranges::any_of(call_ends, may_begin)))
    return false;  // "```" may be either
  const auto end = another ? call_ends.end() : std::ranges::find_if(call_ends, begins);
  if (end != call_ends.end())
    held_.erase(0, end->size());
  else
    after_call_ = false;
  return true;
}

std::string text_with_calls(std::string_view content, std::span<const tool_call> calls) {
  std::string text(content);
  for (const auto& call : calls) {
    if (!text.empty() && text.back() != '\n') text += '\n';
    text += "```json\n";
    json_writer out(text);
    out.begin_object().key("name").value(call.name).key("arguments").json(call.arguments).end_object();
    text += "\n```";
  }
  return text;
}

}  // namespace skein::protocol
