#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skein::tokenizer {

/// Searches a byte stream for stop strings at any offset, whatever the token borders, and holds back exactly the bytes
/// that could still become a stop string. The stop string whose last byte comes first in the stream wins; of several
/// that end at the same byte, the longest (it cuts most). So the result does not depend on how the stream is cut.
/// Each byte costs a step per stop string, whatever their lengths. An empty stop string is never found.
class stop_matcher {
 public:
  explicit stop_matcher(std::vector<std::string> stops = {});

  struct outcome {
    std::optional<std::uint32_t> stop;  ///< index into stops of the string that was found
  };
  /// Appends to `out` the bytes that are certain not to belong to a stop string. When a stop string is complete, `out`
  /// gets the text before it, the rest is dropped and all later calls return the same outcome and add nothing.
  outcome push(std::string_view bytes, std::string& out);
  /// The end of the stream: appends what was held back.
  void finish(std::string& out);

  [[nodiscard]] std::size_t held() const { return held_.size(); }
  [[nodiscard]] const std::vector<std::string>& stops() const { return stops_; }

 private:
  /// How far one stop string has come: the Knuth-Morris-Pratt automaton.
  struct progress {
    std::vector<std::uint32_t> border;  // border[i]: longest proper prefix of stop[0..i] that also ends it, in bytes
    std::uint32_t matched = 0;          // longest prefix of the stop string that the stream now ends with
  };

  [[nodiscard]] bool advance(std::uint32_t stop, char byte);
  [[nodiscard]] std::optional<std::uint32_t> step(char byte);

  std::vector<std::string> stops_;
  std::vector<progress> progress_;  // one per stop string
  std::string held_;                // the end of the stream, as long as the furthest `matched`
  std::optional<std::uint32_t> found_;
};

}  // namespace skein::tokenizer
