#include "protocol/responses/native_writer.hpp"

#include <algorithm>

#include "protocol/responses/answer_parts.hpp"
#include "protocol/responses/sse.hpp"

namespace skein::protocol {
namespace {

constexpr std::string_view event_object = "chat.completion.chunk";

void write_finish(json_writer& out, const answer_end& end) { out.key("finish_reason").value(to_string(end.reason)); }

void write_branch(json_writer& out, const session_note& session) {
  out.key("dialogue_idx").value(session.version).key("parent").value(*session.parent);
}

std::string delta_event(const answer_head& head, std::span<const row_delta> rows) {
  std::string json;
  json_writer out(json);
  out.begin_object();
  write_head(out, head, event_object);
  out.key("choices").begin_array();
  for (const auto& row : rows) {
    if (row.content.empty()) continue;
    out.begin_object().key("index").value(row.index);
    out.key("delta").begin_object().key("content").value(row.content).end_object().end_object();
  }
  out.end_array().end_object();
  return sse_event(json);
}

/// The event before [DONE] on routes with branches.
std::string branch_event(const session_note& session) {
  std::string json;
  json_writer out(json);
  out.begin_object().key("object").value("multi_state.dialogue_idx");
  out.key("session_id").value(session.id + ':' + std::to_string(session.version));
  write_branch(out, session);
  out.end_object();
  return sse_event(json);
}

}  // namespace

std::string native_writer::id(const answer_names& names) const {
  return std::string(form_ == events::of_one_row && names.streamed ? names.request_name : whole_id_);
}

std::string native_writer::delta_events(const answer_head& head, std::span<const row_delta> rows) const {
  const std::size_t together = form_ == events::shared ? rows.size() : 1;
  std::string all;
  for (; !rows.empty(); rows = rows.subspan(together)) {
    const auto some = rows.first(together);
    const bool silent = std::ranges::all_of(some, [](const row_delta& d) { return d.content.empty(); });
    if (!silent) all += delta_event(head, some);
  }
  return all;
}

std::string native_writer::end_event(const answer_head& head, std::uint32_t index, const answer_end& end,
                                     const session_note* session) const {
  std::string json;
  json_writer out(json);
  out.begin_object();
  write_head(out, head, event_object);
  out.key("choices").begin_array().begin_object().key("index").value(index);
  out.key("delta").begin_object().end_object();
  write_finish(out, end);
  out.end_object().end_array();
  write_administrative(out, end);
  write_session(out, session);
  out.end_object();
  return sse_event(json);
}

std::string native_writer::last_events(const answer_head&, const token_usage&, const session_note* session) const {
  std::string events;
  if (session && session->parent) events = branch_event(*session);
  return events.append(sse_done);
}

std::string native_writer::body(const answer_head& head, std::vector<whole_row> rows, const token_usage& usage,
                                const session_note* session) const {
  std::string json;
  json_writer out(json);
  out.begin_object();
  write_head(out, head, body_object_);
  out.key("choices").begin_array();
  const answer_end* administrative = nullptr;
  for (const auto& row : rows) {
    out.begin_object().key("index").value(row.index);
    out.key("message").begin_object().key("role").value("assistant").key("content").value(row.content).end_object();
    write_finish(out, row.end);
    out.end_object();
    if (!administrative && row.end.administrative) administrative = &row.end;
  }
  out.end_array();
  write_usage(out, usage);
  if (administrative) write_administrative(out, *administrative);
  if (session && session->parent) write_branch(out, *session);
  write_session(out, session);
  out.end_object();
  return json;
}

}  // namespace skein::protocol
