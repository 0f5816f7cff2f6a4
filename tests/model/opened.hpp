#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/checkpoint.hpp"

/// Opening checkpoints that a test has in memory.
namespace skein::test {

/// Opens the bytes as a file in memory.
[[nodiscard]] result<model::checkpoint> opened(std::string_view bytes);

/// A file that must be refused: what makes it bad, its bytes, and words that the reason must contain.
struct hostile_file {
  const char* what;
  std::string bytes;
  const char* reason;
};

/// Checks that every file is refused as bad_file with the path, a byte position and the expected words in the text,
/// and that no more than 64 MiB were allocated at a time on the way.
void check_refused(const std::vector<hostile_file>& files);

/// Opens bytes that may be good or bad and reads whatever tensors they describe, once from a buffer without slack.
/// Checks that the memory stays below 64 MiB.
void check_survived(std::string_view bytes);

}  // namespace skein::test
