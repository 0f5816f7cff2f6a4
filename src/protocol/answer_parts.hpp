#pragma once
#include <span>
#include <string_view>

#include "protocol/answer.hpp"
#include "protocol/json_writer.hpp"

/// Pieces of JSON that chat_response and completion_response share.
namespace skein::protocol {

/// id, object, created, model, system_fingerprint: the members that every body and event begins with.
void write_head(json_writer& out, const answer_head& head, std::string_view object);

/// The member `usage` with its numbers.
void write_usage(json_writer& out, const token_usage& usage);

/// The members finish_reason and stop_reason of a choice; both null while it runs.
void write_end(json_writer& out, const answer_end* end);

/// The member `rwkv`, when the end was administrative.
void write_administrative(json_writer& out, const answer_end& end);

/// The first end among choices that was administrative, or null: a whole answer reports one.
template <typename Choice>
[[nodiscard]] const answer_end* administrative_end(std::span<const Choice> choices) {
  for (const auto& choice : choices)
    if (choice.end.administrative) return &choice.end;
  return nullptr;
}

/// A token as a JSON string can hold it: its text, or "bytes:\xe4\xbd" when that is no UTF-8.
[[nodiscard]] std::string token_text(std::string_view bytes);

/// A log-probability as clients take it: JSON has no infinity, so impossible is -9999.
[[nodiscard]] float finite_logprob(float logprob);

}  // namespace skein::protocol
