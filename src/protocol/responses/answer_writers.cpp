#include <utility>

#include "protocol/responses/answer_writer.hpp"
#include "protocol/responses/chat_response.hpp"
#include "protocol/responses/completion_response.hpp"
#include "protocol/responses/sse.hpp"

namespace skein::protocol {
namespace {

/// The beginning of a call has an event of its own.
std::string chat_call_events(const answer_head& head, std::uint32_t index, const call_piece& piece) {
  std::string events;
  if (!piece.name.empty())
    events += sse_event(chat_call_chunk(head, index, piece, call_part::name, head.usage_follows));
  if (!piece.arguments.empty())
    events += sse_event(chat_call_chunk(head, index, piece, call_part::arguments, head.usage_follows));
  return events;
}

class chat_answers final : public answer_writer {
 public:
  std::string id(const answer_names& names) const override { return answer_id("chatcmpl-", names.random); }
  std::string begin_event(const answer_head& head, std::uint32_t index) const override {
    return sse_event(chat_role_chunk(head, index, head.usage_follows));
  }
  std::string delta_events(const answer_head& head, std::span<const row_delta> rows) const override {
    std::string events;
    for (const auto& d : rows) {
      if (d.calls.empty() || !d.reasoning.empty() || !d.content.empty() || !d.logprobs.empty())
        events += sse_event(chat_delta_chunk(head, {d.index, d.reasoning, d.content, d.logprobs}, head.usage_follows));
      for (const auto& piece : d.calls) events += chat_call_events(head, d.index, piece);
    }
    return events;
  }
  std::string end_event(const answer_head& head, std::uint32_t index, const answer_end& end,
                        const session_note* session) const override {
    return sse_event(chat_final_chunk(head, index, end, head.usage_follows, session));
  }
  std::string last_events(const answer_head& head, const token_usage& usage,
                          const session_note* session) const override {
    std::string events = head.usage_follows ? sse_event(chat_usage_chunk(head, usage, session)) : "";
    return events.append(sse_done);
  }
  std::string body(const answer_head& head, std::vector<whole_row> rows, const token_usage& usage,
                   const session_note* session) const override {
    std::vector<chat_choice> choices;
    choices.reserve(rows.size());
    for (auto& r : rows)
      choices.push_back({r.index, std::move(r.reasoning), std::move(r.content), std::move(r.logprobs), r.end,
                         std::move(r.tool_calls)});
    return chat_body(head, choices, usage, session);
  }
};

class completion_answers final : public answer_writer {
 public:
  std::string id(const answer_names& names) const override { return answer_id("cmpl-", names.random); }
  std::string delta_events(const answer_head& head, std::span<const row_delta> rows) const override {
    std::string events;
    for (const auto& d : rows)
      events += sse_event(completion_chunk(head, {d.index, d.content, d.logprobs}, head.usage_follows));
    return events;
  }
  std::string end_event(const answer_head& head, std::uint32_t index, const answer_end& end,
                        const session_note* session) const override {
    return sse_event(completion_final_chunk(head, index, end, head.usage_follows, session));
  }
  std::string last_events(const answer_head& head, const token_usage& usage,
                          const session_note* session) const override {
    std::string events = head.usage_follows ? sse_event(completion_usage_chunk(head, usage, session)) : "";
    return events.append(sse_done);
  }
  std::string body(const answer_head& head, std::vector<whole_row> rows, const token_usage& usage,
                   const session_note* session) const override {
    std::vector<completion_choice> choices;
    choices.reserve(rows.size());
    for (auto& r : rows) choices.push_back({r.index, std::move(r.content), std::move(r.logprobs), r.end});
    return completion_body(head, choices, usage, session);
  }
};

}  // namespace

std::string answer_writer::failure_events(const answer_head&, const error&, std::string_view body) const {
  return sse_event(body).append(sse_done);
}

const answer_writer& chat_writer() {
  static const chat_answers writer;
  return writer;
}

const answer_writer& completion_writer() {
  static const completion_answers writer;
  return writer;
}

}  // namespace skein::protocol
