#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "protocol/responses/answer_writer.hpp"
#include "protocol/responses_api/response_object.hpp"

namespace skein::protocol {

/// Writes one answer of the Responses API: the object, or its events, numbered from 0. A writer belongs to one request
/// and keeps the text, because the last events repeat it. The same text in the same steps gives the same events, so an
/// interrupted stream can be replayed from any number.
class response_writer final : public answer_writer {
 public:
  /// `known`: the part of the answer that an earlier writer wrote; its events are written first. `after`: number of the
  /// last event to skip.
  explicit response_writer(response_facts facts, response_text known = {}, std::optional<std::uint64_t> after = {});
  ~response_writer() override;

  std::string id(const answer_names& names) const override;
  std::string begin_event(const answer_head& head, std::uint32_t index) const override;
  std::string delta_events(const answer_head& head, std::span<const row_delta> rows) const override;
  std::string end_event(const answer_head& head, std::uint32_t index, const answer_end& end,
                        const session_note* session) const override;
  std::string last_events(const answer_head& head, const token_usage& usage,
                          const session_note* session) const override;
  std::string failure_events(const answer_head& head, const error& why, std::string_view body) const override;
  std::string body(const answer_head& head, std::vector<whole_row> rows, const token_usage& usage,
                   const session_note* session) const override;
  std::string remembered(const answer_head& head, const token_usage& usage) const override;

  std::string told_again(const answer_head& head, std::optional<std::uint64_t> after) const override;
  std::size_t told_again_bytes(std::optional<std::uint64_t> after) const override;
  std::shared_ptr<const answer_writer> copy() const override;
  std::size_t copied_bytes() const override;
  /// The facts twice: the events have their own.
  std::size_t kept_bytes() const override { return 2 * held_bytes(facts_); }
  std::string early_body(const answer_head& head, bool begun) const override;

  [[nodiscard]] const response_facts& facts() const { return facts_; }
  /// As last_events, for a known outcome.
  [[nodiscard]] std::string concluding_events(const response_outcome& outcome, const token_usage& usage,
                                              const session_note* session) const;

 private:
  struct telling;

  const response_facts facts_;
  const std::unique_ptr<telling> told_;
};

/// Approximate bytes of the events with numbers above `after`, those of the end included.
[[nodiscard]] std::size_t event_bytes(const response_facts& facts, const response_text& text,
                                      std::optional<std::uint64_t> after);

/// `events` without the leading ones whose number is not above `after`.
[[nodiscard]] std::string_view events_after(std::string_view events, std::uint64_t after);

/// Marks the sequence numbers of the ending events that an interrupted answer already had before it continues. A parked
/// answer had only one such event.
void skip_ending(response_text& text, bool parked);

}  // namespace skein::protocol
