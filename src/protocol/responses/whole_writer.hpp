#pragma once
#include "protocol/responses/answer_writer.hpp"
#include "protocol/responses/sse.hpp"

namespace skein::protocol {

/// Writer of answers that are never streamed: they have a body and no events. Their id is the request's name.
class whole_writer : public answer_writer {
 public:
  std::string id(const answer_names& names) const final { return std::string(names.request_name); }
  std::string delta_events(const answer_head&, std::span<const row_delta>) const final { return {}; }
  std::string end_event(const answer_head&, std::uint32_t, const answer_end&, const session_note*) const final {
    return {};
  }
  std::string last_events(const answer_head&, const token_usage&, const session_note*) const final {
    return std::string(sse_done);
  }
};

}  // namespace skein::protocol
