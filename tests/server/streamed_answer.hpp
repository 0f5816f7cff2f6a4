#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace skein::test {

/// The answer to a streamed completion of one choice, taken from the bytes of its connection as they come, cut
/// anywhere. Knows as much of HTTP and JSON as this server's own answers need, so that a thousand of them are read in
/// little time.
class streamed_answer {
 public:
  /// Throws std::runtime_error on bytes that are no such answer.
  void read(std::string_view bytes);

  [[nodiscard]] unsigned status() const { return status_; }  ///< 0 until the header is complete
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::size_t events() const { return events_; }
  [[nodiscard]] const std::string& finish_reason() const { return finish_reason_; }  ///< empty until the final event
  [[nodiscard]] const std::string& stop_reason() const { return stop_reason_; }      ///< rwkv.stop_reason, if any
  [[nodiscard]] bool done() const { return done_; }                                  ///< "[DONE]" came
  [[nodiscard]] bool complete() const { return stage_ == stage::complete; }          ///< the response has ended

 private:
  enum class stage { head, sized, chunk_line, chunk, chunk_end, complete };

  bool step();
  void take_head(std::string_view head);
  void take_body(std::string_view bytes);
  void take_event(std::string_view event);

  stage stage_ = stage::head;
  std::string waiting_;        ///< bytes that the stage needs more of
  std::size_t remaining_ = 0;  ///< of the chunk or the sized body
  std::string event_;          ///< the event that has begun
  unsigned status_ = 0;
  std::string text_, finish_reason_, stop_reason_;
  std::size_t events_ = 0;
  bool done_ = false;
};

/// The JSON string that begins at `json[0]`, a quotation mark, without its escapes.
[[nodiscard]] std::string unescaped(std::string_view json);

}  // namespace skein::test
