#include "actors/request/answer/answer_budget.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/json/json_writer.hpp"
#include "protocol/responses/answer_writer.hpp"
#include "protocol/server/tokenize_api.hpp"

namespace skein::request {
namespace {

/// Approximate bytes of a token and its alternatives as JSON: each text, and its bytes as numbers.
std::size_t scored_bytes(token_id token, const sampling::token_logprobs& logprobs, std::uint32_t top,
                         const tokenizer::vocabulary& vocabulary) {
  constexpr std::size_t a_byte = 9;  // "\\xff" for invalid UTF-8, and "255,"
  const auto bytes_of = [&](token_id id) {
    const std::string_view text = vocabulary.text(id);
    return protocol::json_bytes(text) + a_byte * text.size();
  };
  std::size_t bytes = scored_token_bytes(top) + 2 * bytes_of(token);  // it may be among the alternatives again
  for (const auto& best : std::span(logprobs.top).first(std::min(logprobs.count, top))) bytes += bytes_of(best.token);
  return bytes;
}

/// Bytes of a body without any text, with the longest possible numbers and stop reasons.
std::size_t frame_bytes(const prepared_call& call, const protocol::answer_head& head, const std::string& request_name) {
  const protocol::generation_request& request = call.request;
  protocol::answer_end end;
  end.reason = protocol::finish_reason::length;
  std::string longest_stop;
  for (const std::string& stop : request.stop)
    if (protocol::json_bytes(stop) > protocol::json_bytes(longest_stop)) longest_stop = stop;
  end.stop_reason = longest_stop;
  end.administrative = protocol::administrative_stop{"response_bytes_max", request_name};
  std::vector<protocol::whole_row> rows(call.prompts.size() * request.n);
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    rows[i].index = i;
    rows[i].end = end;
    if (call.form == protocol::answer_form::thinking) rows[i].reasoning = "-";
    if (request.sampling.logprobs) rows[i].logprobs.emplace();
  }
  constexpr std::uint64_t most = 0xffffffff;
  const protocol::token_usage usage{most, most, most, most};
  protocol::session_note note;
  if (request.session) note = {request.session->id, 0xffffffff, "process", false, true, true, 0xffffffff};
  return request.writer->body(head, std::move(rows), usage, request.session ? &note : nullptr).size();
}

}  // namespace

result<void> answer_budget::take_frame(const prepared_call& call, const protocol::answer_head& head,
                                       const std::string& request_name, const protocol::request_limits& limits) {
  if (!is_limited_) return {};
  const std::size_t bytes = frame_bytes(call, head, request_name);
  if (bytes >= left_)
    return protocol::response_too_long(call.request.echo ? "echo" : std::string(call.request.prompt_field), limits);
  left_ -= bytes;
  return {};
}

bool answer_budget::take(token_id token, const sampling::token_logprobs* logprobs, std::uint32_t top,
                         const tokenizer::vocabulary& vocabulary) {
  if (!is_limited_) return true;
  const std::size_t bytes =
      protocol::json_bytes(vocabulary.text(token)) + (logprobs ? scored_bytes(token, *logprobs, top, vocabulary) : 0);
  if (bytes > left_) return false;
  left_ -= bytes;
  return true;
}

}  // namespace skein::request
