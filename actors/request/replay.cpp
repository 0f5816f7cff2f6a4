#include "actors/request/replay.hpp"

#include <utility>

namespace skein::request {

std::string replay(const protocol::generation_request& request, const persistence::session_replayed& replayed,
                   const session_turn& turn, protocol::answer_head head) {
  const auto& version = replayed.version;
  const bool streamed = request.stream;
  const protocol::answer_format format(request.shape, std::move(head), request.include_usage);

  protocol::whole_row row;
  row.reasoning = version.reasoning;
  row.content = version.answer;
  row.end.reason = version.finish_reason == "stop" ? protocol::finish_reason::stop : protocol::finish_reason::length;
  protocol::token_usage usage;
  usage.prompt_tokens = version.prompt_tokens;
  usage.completion_tokens = version.tokens.size() - version.prompt_tokens;
  protocol::session_note note = turn.note_of(version.id, replayed.durable, version.unfinished);
  note.replayed = true;
  if (note.parent) note.parent = version.parent;

  if (!streamed) return format.body({std::move(row)}, usage, &note);
  std::string events = format.begin_event(0);
  events += format.delta_event({0, row.reasoning, row.content, {}});
  events += format.end_event(0, row.end, &note);
  return events += format.last_events(usage, &note);
}

}  // namespace skein::request
