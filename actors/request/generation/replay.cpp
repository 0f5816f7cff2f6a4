#include "actors/request/generation/replay.hpp"

#include <algorithm>
#include <utility>

#include "protocol/chat/call_splitter.hpp"
#include "protocol/responses_api/responses_request.hpp"

namespace skein::request {
namespace {

/// What the first answer reported. Records of older versions do not have it: their usage counts the turn alone.
protocol::token_usage usage_of(const persistence::version_record& version) {
  if (const auto reported = protocol::reported_usage_in(version.sampling)) return *reported;
  protocol::token_usage usage;
  usage.prompt_tokens = version.prompt_tokens;
  usage.completion_tokens = version.tokens.size() - version.prompt_tokens;
  usage.completion_tokens -= std::min(usage.completion_tokens, protocol::hidden_tokens(version.sampling));
  return usage;
}

}  // namespace

std::string replay(const protocol::generation_request& request, const persistence::session_replayed& replayed,
                   const session_turn& turn, protocol::answer_head head) {
  const auto& version = replayed.version;
  const bool streamed = request.stream;
  const auto& writer = *request.writer;

  protocol::whole_row row;
  row.reasoning = version.reasoning;
  row.tool_calls = protocol::split_calls(version.answer, request.tool_names, row.content);
  for (std::uint32_t i = 0; i < row.tool_calls.size(); ++i) row.tool_calls[i].id = protocol::call_id(head.id, 0, i);
  row.end.reason = version.finish_reason == "stop" ? protocol::finish_reason::stop : protocol::finish_reason::length;
  const bool called = !row.tool_calls.empty() && std::ranges::all_of(row.tool_calls, &protocol::tool_call::whole);
  if (called && row.end.reason == protocol::finish_reason::stop) row.end.reason = protocol::finish_reason::tool_calls;
  const protocol::token_usage usage = usage_of(version);
  protocol::session_note note = turn.note_of(version.id, replayed.durable, version.unfinished);
  note.replayed = true;
  if (note.parent) note.parent = version.parent;

  if (!streamed) return writer.body(head, {std::move(row)}, usage, &note);
  std::vector<protocol::call_piece> calls;
  for (std::uint32_t i = 0; i < row.tool_calls.size(); ++i) {
    const auto& call = row.tool_calls[i];
    calls.push_back({call.id, call.name, call.arguments, call.whole, i});
  }
  const protocol::row_delta all{0, row.reasoning, row.content, {}, calls};
  std::string events = writer.begin_event(head, 0);
  events += writer.delta_events(head, {&all, 1});
  events += writer.end_event(head, 0, row.end, &note);
  return events += writer.last_events(head, usage, &note);
}

}  // namespace skein::request
