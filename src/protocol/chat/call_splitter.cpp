#include "protocol/chat/call_splitter.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "protocol/chat/call_head.hpp"
#include "protocol/json/json_copy.hpp"
#include "protocol/json/json_indent.hpp"
#include "protocol/json/large_integers.hpp"

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

std::optional<call_piece> call_of(json_value value) {
  if (!value.is(json_kind::object)) return std::nullopt;
  if (const auto function = value.member("function"); function && function->is(json_kind::object)) value = *function;
  auto name = value.member("name");
  if (!name) name = value.member("function");
  auto arguments = value.member("arguments");
  if (!arguments) arguments = value.member("parameters");
  if (!name || !name->text()) return std::nullopt;
  call_piece call;
  call.name = *name->text();
  call.arguments = "{}";
  call.ends = true;
  if (!arguments) return call;
  if (!arguments->is(json_kind::object)) return std::nullopt;
  call.arguments.clear();
  json_writer out(call.arguments);
  copy_json(out, *arguments);
  return call;
}

}  // namespace

std::span<const std::string_view> call_marks() { return marks; }

bool call_splitter::take_calls(std::string_view json, std::vector<call_piece>& calls) const {
  const auto document = parse_with_large_integers(json);
  if (!document) return false;
  std::vector<call_piece> found;
  const auto take = [&](json_value value) {
    auto call = call_of(value);
    if (!call || !std::ranges::binary_search(*names_, call->name)) return false;
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

void call_splitter::push(std::string_view piece, std::string& text, std::vector<call_piece>& calls) {
  if (!names_) {
    text += piece;
    return;
  }
  held_ += piece;
  while (advance(text, calls)) continue;
}

void call_splitter::finish(std::string& text, std::vector<call_piece>& calls) {
  if (!names_) return;
  over_ = true;
  while (advance(text, calls)) continue;
  const bool is_text = part_ == part::text || part_ == part::whole || (part_ == part::head && !in_list_);
  if (is_text) text.append(part_ == part::text ? "" : mark_).append(held_);
  held_.clear();
}

/// One step; false: more text is needed.
bool call_splitter::advance(std::string& text, std::vector<call_piece>& calls) {
  switch (part_) {
    case part::text: return find_mark(text);
    case part::head: return read_head(calls);
    case part::whole: return read_whole(text, calls);
    case part::arguments: return read_arguments(calls);
    case part::tail: return skip_tail();
    case part::next: return skip_comma();
    case part::end: return skip_end();
    case part::json: text += std::exchange(held_, {}); return false;
  }
  return false;
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
    part_ = part::head;
    return true;
  }
  const std::size_t kept = over_ ? 0 : possible_beginning(held_);
  text.append(held_, 0, held_.size() - kept);
  held_.erase(0, held_.size() - kept);
  return false;
}

bool call_splitter::read_head(std::vector<call_piece>& calls) {
  auto found = find_head(held_);
  if (found.open) return false;
  read_ = 0, depth_ = 0, quoted_ = escaped_ = false;
  const auto& head = found.head;
  if (!head || (head->in_list && in_list_) || !std::ranges::binary_search(*names_, head->name)) {
    part_ = may_be_json_ ? part::json : part::whole;
    return true;
  }
  may_be_json_ = false;
  call_piece begun;
  begun.name = head->name;
  calls.push_back(std::move(begun));
  held_.erase(0, head->bytes);
  depth_ = head->depth;
  in_member_ = false;
  in_list_ = in_list_ || head->in_list;
  arguments_ = {};
  mark_ = {};
  part_ = part::arguments;
  return true;
}

bool call_splitter::read_arguments(std::vector<call_piece>& calls) {
  if (held_.empty()) return false;
  if (calls.empty() || calls.back().ends) calls.emplace_back();
  auto& piece = calls.back();
  held_.erase(0, arguments_.push(held_, piece.arguments));
  piece.ends = arguments_.now() == json_stream::phase::over;
  if (piece.ends) part_ = part::tail;
  if (arguments_.now() == json_stream::phase::broken) {
    part_ = part::text;
    in_list_ = false;
  }
  if (piece.name.empty() && piece.arguments.empty() && !piece.ends) calls.pop_back();
  return part_ != part::arguments;
}

/// Skips further members and the closing brackets of the call's objects.
bool call_splitter::skip_tail() {
  std::size_t at = 0;
  for (; at < held_.size() && depth_ > 0; ++at) {
    const char c = held_[at];
    if (quoted_) {
      if (!escaped_ && c == '"') quoted_ = false;
      escaped_ = !escaped_ && c == '\\';
    } else if (in_member_) {
      if (c == '"') quoted_ = true;
      if (c == '{' || c == '[') ++nested_;
      if ((c == '}' || c == ']') && --nested_ < 0) in_member_ = false, --depth_;
    } else if (c == ',') {
      in_member_ = true, nested_ = 0;
    } else if (c == '}') {
      --depth_;
    } else if (spaces.find(c) == std::string_view::npos) {
      depth_ = 0, in_list_ = false;  // a bracket is missing
      break;
    }
  }
  held_.erase(0, at);
  if (depth_ > 0) return false;
  end_object();
  return true;
}

/// After an object of a list.
bool call_splitter::skip_comma() {
  held_.erase(0, std::min(held_.find_first_not_of(spaces), held_.size()));
  if (held_.empty()) return false;
  part_ = held_.front() == ',' ? part::head : part::end;
  if (part_ == part::end) in_list_ = false;
  if (held_.front() == ',' || held_.front() == ']') held_.erase(0, 1);
  return true;
}

/// Reads up to the end of the first JSON value.
bool call_splitter::read_whole(std::string& text, std::vector<call_piece>& calls) {
  const auto give_up = [&] {
    text.append(mark_).append(held_, 0, read_);
    held_.erase(0, read_);
    part_ = part::text;
    in_list_ = false;
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
    if (depth_ == 0 && c != '{' && (c != '[' || in_list_)) return give_up();
    if (c == '"') quoted_ = true;
    if (c == '{' || c == '[') ++depth_;
    if (c != '}' && c != ']') continue;
    if (--depth_ > 0) continue;
    ++read_;
    if (!take_calls(std::string_view(held_).substr(0, read_), calls)) return give_up();
    held_.erase(0, read_);
    end_object();
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
    part_ = part::text;
  return true;
}

void add_piece(const call_piece& piece, std::vector<tool_call>& calls) {
  if (!piece.name.empty()) calls.push_back({piece.id, piece.name, "", false});
  if (calls.empty()) return;
  calls.back().arguments += piece.arguments;
  calls.back().whole = piece.ends;
}

void add_piece(const call_piece& piece, std::string& text, turn_form form) {
  constexpr std::string_view fence = "```json\n", headed_fence = "**Tool Call:**\n```json\n";
  const bool headed = form == turn_form::headings;
  if (!piece.name.empty()) {
    if (!text.empty() && text.back() != '\n') text += '\n';
    text.append(headed ? headed_fence : fence).append("{\"name\":");
    json_writer(text).value(piece.name);
    text += ",\"arguments\":";
  }
  text += piece.arguments;
  if (!piece.ends) return;
  text += '}';
  if (const auto at = headed ? text.rfind(headed_fence) : std::string::npos; at != std::string::npos) {
    std::string compact;
    json_stream reader;
    reader.push(std::string_view(text).substr(at + headed_fence.size()), compact);
    if (reader.now() == json_stream::phase::over) {
      text.erase(at + headed_fence.size());
      indent_json(text, compact, indented_bytes_max(compact.size()));
    }
  }
  text += "\n```";
}

std::vector<tool_call> split_calls(std::string_view answer, tool_names names, std::string& content) {
  call_splitter splitter(std::move(names), false);
  std::vector<call_piece> pieces;
  // In pieces, because what is taken from the beginning moves the rest of what is held.
  constexpr std::size_t piece_bytes = 4096;
  for (std::size_t at = 0; at < answer.size(); at += piece_bytes)
    splitter.push(answer.substr(at, piece_bytes), content, pieces);
  splitter.finish(content, pieces);
  std::vector<tool_call> calls;
  for (const auto& piece : pieces) add_piece(piece, calls);
  return calls;
}

std::string text_with_calls(std::string_view content, std::span<const tool_call> calls, turn_form form) {
  std::string text(content);
  for (const auto& call : calls) {
    call_piece piece;
    piece.name = call.name;
    piece.arguments = call.arguments;
    piece.ends = true;
    add_piece(piece, text, form);
  }
  return text;
}

}  // namespace skein::protocol
