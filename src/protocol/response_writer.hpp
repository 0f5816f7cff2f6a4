#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "protocol/answer_writer.hpp"
#include "protocol/response_object.hpp"

namespace skein::protocol {

/// Writes one answer of the Responses API: the object, or its events, which are numbered from 0. It goes with one
/// request and remembers what it has told, since the last events repeat the text. The same text told in the same steps
/// gives the same events: a stream that broke is told again from any number on.
class response_writer final : public answer_writer {
 public:
  /// `known`: what was told of the answer before this writer; it tells that first. `after`: the number of the last
  /// event that need not be written.
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
  std::string early_body(const answer_head& head, bool begun) const override;

  [[nodiscard]] const response_facts& facts() const { return facts_; }
  /// As last_events, of an outcome that is known.
  [[nodiscard]] std::string concluding_events(const response_outcome& outcome, const token_usage& usage,
                                              const session_note* session) const;

 private:
  struct telling;

  const response_facts facts_;
  const std::unique_ptr<telling> told_;
};

/// What is left of some whole events without those, at the front, whose number is not above `after`.
[[nodiscard]] std::string_view events_after(std::string_view events, std::uint64_t after);

/// Notes that numbers of the sequence were other events': those with which the answer ended before it goes on. A
/// parked one had only one that said so.
void skip_ending(response_text& text, bool parked);

}  // namespace skein::protocol
