#include "protocol/chat/tool_tags.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "protocol/json/json_copy.hpp"
#include "protocol/json/large_integers.hpp"

namespace skein::protocol {
namespace {

constexpr std::string_view open_tag = "<tool_call>", close_tag = "</tool_call>", line_mark = "@@tool ";
constexpr std::string_view blank = " \t\r\n";

std::optional<tool_call> read_call(std::string_view json) {
  const auto document = parse_with_large_integers(json);
  if (!document || !document->root().is(json_kind::object)) return std::nullopt;
  const auto name = document->root().member("name");
  const auto arguments = document->root().member("arguments");
  if (!name || !name->text() || !arguments || !arguments->is(json_kind::object)) return std::nullopt;
  tool_call call{"", std::string(*name->text()), ""};
  json_writer out(call.arguments);
  copy_json(out, *arguments);
  return call;
}

/// Moves the calls between `open` and `close` from the text to `calls`.
void take(std::string_view open, std::string_view close, tagged_text& out) {
  std::size_t from = 0;
  for (std::size_t at = out.rest.find(open); at != std::string::npos; at = out.rest.find(open, from)) {
    const std::size_t begin = at + open.size();
    std::size_t end = out.rest.find(close, begin);
    if (end == std::string::npos && close != "\n") return;
    if (end == std::string::npos) end = out.rest.size();
    from = begin;
    auto call = read_call(std::string_view(out.rest).substr(begin, end - begin));
    if (!call) continue;
    out.calls.push_back(std::move(*call));
    out.rest.erase(at, std::min(end + close.size(), out.rest.size()) - at);
    from = at;
  }
}

class tool_tag_answers final : public answer_writer {
 public:
  tool_tag_answers(bool tags, bool lines) : tags_(tags), lines_(lines) {}

  std::string id(const answer_names& names) const override { return chat_writer().id(names); }
  std::string begin_event(const answer_head& head, std::uint32_t index) const override {
    return chat_writer().begin_event(head, index);
  }
  std::string delta_events(const answer_head& head, std::span<const row_delta> rows) const override {
    return chat_writer().delta_events(head, rows);
  }
  std::string end_event(const answer_head& head, std::uint32_t index, const answer_end& end,
                        const session_note* session) const override {
    return chat_writer().end_event(head, index, end, session);
  }
  std::string last_events(const answer_head& head, const token_usage& usage,
                          const session_note* session) const override {
    return chat_writer().last_events(head, usage, session);
  }
  std::string body(const answer_head& head, std::vector<whole_row> rows, const token_usage& usage,
                   const session_note* session) const override {
    std::size_t number = 0;
    for (auto& row : rows) {
      auto found = find_tool_calls(row.content, tags_, lines_);
      if (found.calls.empty()) continue;
      for (auto& call : found.calls)
        call.id = "call_" + head.id.substr(head.id.find('-') + 1) + '_' + std::to_string(number++);
      row.content = std::move(found.rest);
      row.tool_calls = std::move(found.calls);
      row.end.reason = finish_reason::tool_calls;
    }
    return chat_writer().body(head, std::move(rows), usage, session);
  }

 private:
  bool tags_, lines_;
};

}  // namespace

tagged_text find_tool_calls(std::string_view text, bool tags, bool lines) {
  tagged_text found{std::string(text), {}};
  if (tags) take(open_tag, close_tag, found);
  if (lines) take(line_mark, "\n", found);
  if (found.calls.empty()) return found;
  found.rest.erase(0, found.rest.find_first_not_of(blank));
  found.rest.erase(found.rest.find_last_not_of(blank) + 1);
  return found;
}

std::shared_ptr<const answer_writer> tool_tag_writer(bool tags, bool lines) {
  return std::make_shared<tool_tag_answers>(tags, lines);
}

}  // namespace skein::protocol
