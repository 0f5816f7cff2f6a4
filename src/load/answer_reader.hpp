#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace skein::load {

/// Parses a streamed answer incrementally: splits the bytes into events and reads them.
class answer_reader {
 public:
  /// Returns the number of pieces of text that these bytes completed.
  std::uint32_t read(std::string_view bytes);

  [[nodiscard]] bool done() const { return done_; }                           ///< "[DONE]" was seen
  [[nodiscard]] const std::string& failure() const { return failure_; }       ///< message of an error event
  [[nodiscard]] std::uint64_t input_tokens() const { return input_tokens_; }  ///< as in usage
  [[nodiscard]] std::uint64_t output_tokens() const { return output_tokens_; }

 private:
  [[nodiscard]] bool take_event(std::string_view data);

  std::string rest_;  // incomplete last line
  bool done_ = false;
  std::string failure_;
  std::uint64_t input_tokens_ = 0, output_tokens_ = 0;
};

}  // namespace skein::load
