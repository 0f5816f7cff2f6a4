#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/json/json_stream.hpp"
#include "protocol/requests/generation_request.hpp"
#include "protocol/responses/answer.hpp"

namespace skein::protocol {

/// The names of a request's tools, in ascending order; shared by its rows.
using tool_names = std::shared_ptr<const std::vector<std::string>>;

/// The texts that begin a call in an answer, in the forms that models were trained on. The call follows: an object with
/// `name` and `arguments`, or a list of such objects.
[[nodiscard]] std::span<const std::string_view> call_marks();

/// Separates tool calls from the streamed text of an answer. Text that might begin a mark is held back. If a call's
/// name comes first, its arguments are passed on as they come; then it stays a call, whole or not, whatever follows.
/// Other forms are held back until they are complete. What is no valid call of a known tool stays text. The result does
/// not depend on how the text is split into pieces.
class call_splitter {
 public:
  /// `names` null: everything is text. `at_once`: a grammar has the answer begin with a call, without a mark, or be
  /// JSON that is no call.
  call_splitter(tool_names names, bool at_once)
      : names_(std::move(names)), part_(names_ && at_once ? part::head : part::text), may_be_json_(at_once) {}

  /// Appends to `text` and `calls`; the calls have no ids. What is added to one call is one piece.
  void push(std::string_view piece, std::string& text, std::vector<call_piece>& calls);
  /// Ends the text. A call whose arguments have begun gets no end.
  void finish(std::string& text, std::vector<call_piece>& calls);

 private:
  /// Where the text is. Beginning with head, a call was found.
  enum class part : std::uint8_t {
    text,
    head,       ///< before the arguments
    whole,      ///< of a form that is read when it is complete
    arguments,  ///< passed on as they come
    tail,       ///< of the object, after the arguments
    next,       ///< in a list, after an object
    end,        ///< after all calls
    json,       ///< an answer that is no call, to its end
  };

  [[nodiscard]] bool advance(std::string& text, std::vector<call_piece>& calls);
  [[nodiscard]] bool find_mark(std::string& text);
  [[nodiscard]] bool read_head(std::vector<call_piece>& calls);
  [[nodiscard]] bool read_whole(std::string& text, std::vector<call_piece>& calls);
  [[nodiscard]] bool read_arguments(std::vector<call_piece>& calls);
  [[nodiscard]] bool skip_tail();
  [[nodiscard]] bool skip_comma();
  [[nodiscard]] bool skip_end();
  [[nodiscard]] bool take_calls(std::string_view json, std::vector<call_piece>& calls) const;
  void end_object() { part_ = in_list_ ? part::next : part::end; }

  tool_names names_;
  part part_;
  bool may_be_json_;         // no call has been found
  bool in_list_ = false;     // the list has had an object
  bool over_ = false;        // no more text comes
  std::string held_;         // not yet passed on; of a call, without its mark
  std::string_view mark_{};  // of the current call
  json_stream arguments_;
  // Of a whole JSON value in held_, or of the tail.
  std::size_t read_ = 0;
  int depth_ = 0, nested_ = 0;
  bool quoted_ = false, escaped_ = false, in_member_ = false;
};

/// Adds a piece to the calls of an answer.
void add_piece(const call_piece& piece, std::vector<tool_call>& calls);
/// Adds a piece to the text of an answer that text_with_calls would make of its calls.
void add_piece(const call_piece& piece, std::string& text, turn_form form = turn_form::names);

/// The calls in the text of a whole answer; the rest of it is appended to `content`.
[[nodiscard]] std::vector<tool_call> split_calls(std::string_view answer, tool_names names, std::string& content);

/// An answer with calls as one text: what the conversation contains when a client sends it back.
[[nodiscard]] std::string text_with_calls(std::string_view content, std::span<const tool_call> calls,
                                          turn_form form = turn_form::names);

}  // namespace skein::protocol
