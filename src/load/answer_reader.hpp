#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace skein::load {

/// A streamed answer as it comes: cuts the bytes into events and looks into them.
class answer_reader {
 public:
  /// How many pieces of text these bytes completed.
  std::uint32_t read(std::string_view bytes);

  [[nodiscard]] bool done() const { return done_; }                           ///< "[DONE]" was seen
  [[nodiscard]] const std::string& failure() const { return failure_; }       ///< of an event that holds an error
  [[nodiscard]] std::uint64_t input_tokens() const { return input_tokens_; }  ///< as in usage
  [[nodiscard]] std::uint64_t output_tokens() const { return output_tokens_; }

 private:
  [[nodiscard]] bool take_event(std::string_view data);

  std::string rest_;  // of a line whose end has not come
  bool done_ = false;
  std::string failure_;
  std::uint64_t input_tokens_ = 0, output_tokens_ = 0;
};

}  // namespace skein::load
