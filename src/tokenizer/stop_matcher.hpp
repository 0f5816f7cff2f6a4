#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skein::tokenizer {

/// Searches a byte stream for stop strings at any offset, regardless of token boundaries, and holds back exactly the
/// bytes that could still become part of a stop string. The stop string whose last byte is first in the stream wins; of
/// several that end at the same byte, the longest. So the result does not depend on how the stream is split. Each byte
/// costs one step per stop string, regardless of its length. An empty stop string never matches.
class stop_matcher {
 public:
  explicit stop_matcher(std::vector<std::string> stops = {});

  struct outcome {
    std::optional<std::uint32_t> stop;  ///< index into stops of the matched string
    std::size_t dropped = 0;            ///< bytes at its end that were not released; all of it without follow()
  };
  /// The stream continues this text, which was released before: a stop string may begin in it. A stop string that is
  /// complete in it is not found. Call it before any push.
  void follow(std::string_view text);
  /// Appends to `out` the bytes that cannot belong to a stop string. When a stop string is complete, appends the text
  /// before it and drops the rest; all later calls return the same outcome and append nothing.
  outcome push(std::string_view bytes, std::string& out);
  /// Ends the stream: appends the held bytes.
  void finish(std::string& out);

  [[nodiscard]] std::size_t held() const { return held_.size(); }
  [[nodiscard]] const std::vector<std::string>& stops() const { return stops_; }

 private:
  /// The Knuth-Morris-Pratt automaton of one stop string.
  struct progress {
    std::vector<std::uint32_t> border;  // border[i]: length of the longest proper prefix of stop[0..i] that is also its
                                        // suffix
    std::uint32_t matched = 0;          // length of the longest prefix of the stop string that the stream ends with
  };

  [[nodiscard]] bool advance(std::uint32_t stop, char byte);
  [[nodiscard]] std::optional<std::uint32_t> step(char byte);

  std::vector<std::string> stops_;
  std::vector<progress> progress_;  // one per stop string
  std::string held_;                // the end of the stream, as long as the largest `matched`, without followed text
  outcome found_;
};

}  // namespace skein::tokenizer
