#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/requests/generation_request.hpp"

namespace skein::protocol {

/// The form for the prompt that render_chat makes of this request; raw if the client wants the text unchanged.
[[nodiscard]] answer_form form_of(const generation_request& request);
/// The form for that prompt, also if the client wants the text unchanged.
[[nodiscard]] answer_form opening_of(const generation_request& request);

/// The same for the text of a rendered prompt.
[[nodiscard]] answer_form form_after(std::string_view prompt);

/// The newlines before the content of an answer: of its lead, or of a grammar that may begin with one.
enum class first_newlines : std::uint8_t { lead, content };

/// Removes the lead of an answer, which clients do not see: one '>' or space, then newlines unless they are content.
class answer_lead {
 public:
  explicit answer_lead(answer_form form, first_newlines of = first_newlines::lead);
  /// The text without the lead, which may be split across several pieces.
  [[nodiscard]] std::string_view cut(std::string_view text);
  /// Skips newlines again, after the end of the thoughts.
  void skip_newlines() { skips_newlines_ = true; }
  /// Whether there was no visible text yet.
  [[nodiscard]] bool open() const { return lead_ != 0 || skips_newlines_; }

 private:
  char lead_;  // dropped if it is the first character; 0: none, or the first character has passed
  bool skips_newlines_;
};

/// Whether a prompt of this form ends within a tag that the answer's first tokens close.
[[nodiscard]] constexpr bool closes_tag(answer_form form) {
  return form == answer_form::closing || form == answer_form::thinking;
}

/// Splits streamed text into thoughts and content, without the lead of either. The result does not depend on how the
/// text is split into pieces.
class think_splitter {
 public:
  explicit think_splitter(answer_form form, first_newlines of = first_newlines::lead);

  /// Output of a piece of text; push appends to the strings.
  struct parts {
    std::string reasoning, content;
  };
  void push(std::string_view text, parts& out);
  /// Ends the text: emits characters held back as a possible start of "</think>".
  void finish(parts& out);

  /// Whether the next token belongs to the thoughts (for usage).
  [[nodiscard]] bool reasoning() const { return in_thoughts_; }

 private:
  void push_thoughts(std::string_view text, parts& out);

  bool in_thoughts_;
  const first_newlines newlines_;
  answer_lead lead_;
  std::size_t matched_ = 0;  // bytes of "</think>" matched at the end of the thoughts so far
};

}  // namespace skein::protocol
