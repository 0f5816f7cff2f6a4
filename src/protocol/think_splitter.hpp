#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/generation_request.hpp"

namespace skein::protocol {

/// What generated text is, given how its prompt ended.
enum class answer_form : std::uint8_t {
  raw,       ///< content as it comes
  direct,    ///< after "Assistant:" or "</think>": one space or newlines come before the content
  closing,   ///< after "</think": '>' and newlines come before the content
  thinking,  ///< after "<think": '>', newlines, thoughts, "</think>", newlines, content
};

/// How render_chat ended this request's prompt; raw where the client wants nothing taken away.
[[nodiscard]] answer_form form_of(const generation_request& request);

/// The same for a rendered prompt of which only the text is known.
[[nodiscard]] answer_form form_after(std::string_view prompt);

/// What a form says comes before the answer: one '>' or space, then newlines. Clients do not see it.
class answer_lead {
 public:
  explicit answer_lead(answer_form form);
  /// The text without what belongs to the lead, which may come in several pieces.
  [[nodiscard]] std::string_view cut(std::string_view text);
  /// Newlines are skipped from here on once more: the thoughts have ended.
  void skip_newlines() { skips_newlines_ = true; }
  /// Nothing visible has come yet.
  [[nodiscard]] bool open() const { return lead_ != 0 || skips_newlines_; }

 private:
  char lead_;  // dropped if it is the first to come; 0: nothing is, or the first has come
  bool skips_newlines_;
};

/// The template ends within a tag that the answer's first tokens close: whether a prompt of this form does.
[[nodiscard]] constexpr bool closes_tag(answer_form form) {
  return form == answer_form::closing || form == answer_form::thinking;
}

/// Splits streamed text into thoughts and content, without what its form says comes before either. The result does not
/// depend on how the text is cut into pieces.
class think_splitter {
 public:
  explicit think_splitter(answer_form form);

  /// What a piece of text brought; strings are appended to.
  struct parts {
    std::string reasoning, content;
  };
  void push(std::string_view text, parts& out);
  /// The end of the text: gives out what was held back as a possible start of "</think>".
  void finish(parts& out);

  /// Whether the next token belongs to the thoughts (for usage).
  [[nodiscard]] bool reasoning() const { return in_thoughts_; }

 private:
  void push_thoughts(std::string_view text, parts& out);

  bool in_thoughts_;
  answer_lead lead_;
  std::size_t matched_ = 0;  // bytes of "</think>" that the thoughts end with so far
};

}  // namespace skein::protocol
