#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/responses/answer.hpp"

namespace skein::protocol {

/// The names of a request's tools; shared by its rows.
using tool_names = std::shared_ptr<const std::vector<std::string>>;

/// The texts that begin a call in an answer, in the forms that models were trained on. The call follows: an object with
/// `name` and `arguments`, or a list of such objects.
[[nodiscard]] std::span<const std::string_view> call_marks();

/// Separates tool calls from the streamed text of an answer. Text that might begin a mark is held back, and so is a
/// call until it is complete. What is no valid call of a known tool stays text. The result does not depend on how the
/// text is split into pieces.
class call_splitter {
 public:
  /// `names` null: everything is text. `at_once`: the answer begins with a call, without a mark.
  call_splitter(tool_names names, bool at_once) : names_(std::move(names)), in_call_(names_ && at_once) {}

  /// Appends to `text` and `calls`; the calls have no ids.
  void push(std::string_view piece, std::string& text, std::vector<tool_call>& calls);
  /// Ends the text.
  void finish(std::string& text, std::vector<tool_call>& calls);

 private:
  [[nodiscard]] bool advance(std::string& text, std::vector<tool_call>& calls);
  [[nodiscard]] bool find_mark(std::string& text);
  [[nodiscard]] bool read_json(std::string& text, std::vector<tool_call>& calls);
  [[nodiscard]] bool skip_end();
  [[nodiscard]] bool take_calls(std::string_view json, std::vector<tool_call>& calls) const;

  tool_names names_;
  bool in_call_;
  bool after_call_ = false;
  bool over_ = false;        // no more text comes
  std::string held_;         // not yet passed on; of a call, without its mark
  std::string_view mark_{};  // of the current call
  // Of the JSON in held_.
  std::size_t read_ = 0;
  int depth_ = 0;
  bool quoted_ = false, escaped_ = false;
};

/// An answer with calls as one text: what the conversation contains when a client sends it back.
[[nodiscard]] std::string text_with_calls(std::string_view content, std::span<const tool_call> calls);

}  // namespace skein::protocol
