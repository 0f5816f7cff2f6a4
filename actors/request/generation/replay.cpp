#include "actors/request/generation/replay.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "actors/request/call/memory.hpp"
#include "protocol/chat/call_splitter.hpp"
#include "protocol/responses_api/response_writer.hpp"
#include "storage/records/stop_reasons.hpp"

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

protocol::session_note replayed_note(const persistence::session_replayed& replayed, const session_turn& turn) {
  protocol::session_note note = turn.note_of(replayed.version.id, replayed.durable, replayed.version.unfinished);
  note.replayed = true;
  if (note.parent) note.parent = replayed.version.parent;
  return note;
}

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
  const protocol::session_note note = replayed_note(replayed, turn);

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

result<replayed_answer> replay(const protocol::logged_response& logged, const protocol::session_note& note,
                               bool streamed, const byte_share& share, std::size_t bytes_max) {
  std::size_t bytes = protocol::reading_bytes(logged);
  auto memory = hold_memory(share, bytes);
  if (!memory) return memory.error();
  const auto known = protocol::read_logged(logged);
  if (!known) return known.error();
  if (streamed) {
    bytes += protocol::event_bytes(known->facts, known->text, std::nullopt);
    memory->reset();
    memory = hold_memory(share, bytes);
    if (!memory) return memory.error();
    return replayed_answer{protocol::response_events(*known, std::nullopt, &note), std::move(*memory)};
  }
  std::string body;
  protocol::json_writer out(body);
  protocol::write_response(out, known->facts, known->text, known->outcome, &known->usage, &note);
  if (body.size() > bytes_max) return answer_too_long(body.size(), bytes_max);
  return replayed_answer{std::move(body), std::move(*memory)};
}

}  // namespace

replay_work replaying(const protocol::generation_request& request, const persistence::session_replayed& replayed,
                      const session_turn& turn, protocol::answer_head head, const byte_share& share,
                      const service_context& context) {
  const bool streamed = request.stream && !request.answers_at_once;
  if (const auto no = turn.refusal_of(replayed.version))
    return {[no = *no] { return result<replayed_answer>(no); }, false, streamed};
  if (!turn.responds()) {
    std::string text = replay(request, replayed, turn, std::move(head));
    return {[text = std::move(text)] { return replayed_answer{text, nullptr}; }, false, streamed};
  }
  const persistence::version_record& version = replayed.version;
  const std::size_t bytes = version.answer.size() + version.reasoning.size() + version.sampling.size();
  auto work = [logged = logged_response_of(version), note = replayed_note(replayed, turn), streamed, share,
               bytes_max = context.settings.limits.response_bytes_max] {
    return replay(logged, note, streamed, share, bytes_max);
  };
  return {std::move(work), bytes > context.settings.inline_text_bytes_max, streamed};
}

protocol::logged_response logged_response_of(const persistence::version_record& v) {
  return {.id = v.request_key,
          .settings = v.sampling,
          .reasoning = v.reasoning,
          .answer = v.answer,
          .finish_reason = v.finish_reason,
          .stop_reason = v.stop_reason,
          .unfinished = v.unfinished,
          .without_ending = v.stop_reason == storage::cut_by_crash,
          .tokens_sampled = v.tokens.size() - v.prompt_tokens};
}

error answer_too_long(std::size_t bytes, std::size_t bytes_max) {
  return {error_kind::too_large,
          "the answer has " + std::to_string(bytes) + " bytes, more than limits.response_bytes_max (" +
              std::to_string(bytes_max) + " bytes)",
          ""};
}

}  // namespace skein::request
