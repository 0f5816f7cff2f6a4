#include "protocol/answer_format.hpp"

#include <utility>

#include "protocol/chat_response.hpp"
#include "protocol/completion_response.hpp"
#include "protocol/native_response.hpp"
#include "protocol/sse.hpp"

namespace skein::protocol {

std::string answer_format::begin_event(std::uint32_t index) const {
  if (shape_ != api::chat_completions) return {};
  return sse_event(chat_role_chunk(head_, index, usage_follows_));
}

std::string answer_format::delta_event(const row_delta& d) const {
  switch (shape_) {
    case api::chat_completions:
      return sse_event(chat_delta_chunk(head_, {d.index, d.reasoning, d.content, d.logprobs}, usage_follows_));
    case api::completions: return sse_event(completion_chunk(head_, {d.index, d.content, d.logprobs}, usage_follows_));
    case api::native: break;
  }
  if (d.content.empty()) return {};
  const native_delta row{d.index, d.content};
  return sse_event(native_delta_event(head_, {&row, 1}));
}

std::string answer_format::end_event(std::uint32_t index, const answer_end& end, const session_note* session) const {
  switch (shape_) {
    case api::chat_completions: return sse_event(chat_final_chunk(head_, index, end, usage_follows_, session));
    case api::completions: return sse_event(completion_final_chunk(head_, index, end, usage_follows_, session));
    case api::native: break;
  }
  return sse_event(native_final_event(head_, index, end, session));
}

std::string answer_format::last_events(const token_usage& usage, const session_note* session) const {
  std::string events;
  if (shape_ == api::native) {
    if (session && session->parent) events = sse_event(native_branch_event(*session));
  } else if (usage_follows_) {
    events = sse_event(shape_ == api::chat_completions ? chat_usage_chunk(head_, usage, session)
                                                       : completion_usage_chunk(head_, usage, session));
  }
  return events.append(sse_done);
}

std::string answer_format::body(std::vector<whole_row> rows, const token_usage& usage,
                                const session_note* session) const {
  if (shape_ == api::chat_completions) {
    std::vector<chat_choice> choices;
    for (auto& r : rows)
      choices.push_back({r.index, std::move(r.reasoning), std::move(r.content), std::move(r.logprobs), r.end});
    return chat_body(head_, choices, usage, session);
  }
  if (shape_ == api::completions) {
    std::vector<completion_choice> choices;
    for (auto& r : rows) choices.push_back({r.index, std::move(r.content), std::move(r.logprobs), r.end});
    return completion_body(head_, choices, usage, session);
  }
  std::vector<native_choice> choices;
  for (const auto& r : rows) choices.push_back({r.index, r.content, r.end});
  return native_body(head_, choices, usage, session);
}

}  // namespace skein::protocol
