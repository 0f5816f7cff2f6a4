#pragma once
#include <filesystem>
#include <string>
#include <vector>

/// The case random-007 of a model in the oracle folder, for programs that write logits.
namespace skein::test {

/// The ids of the case, with commas between them.
[[nodiscard]] std::string golden_tokens(const std::string& model);
/// The logits after each of them.
[[nodiscard]] std::vector<float> golden_logits(const std::string& model);

/// Natural logarithms of the probabilities of all tokens of the case text-300 but the first, and its text, for models
/// whose tokens are bytes.
struct scored_text {
  std::string text;
  std::vector<double> log_probabilities;
};
[[nodiscard]] scored_text golden_text(const std::string& model);

/// The raw fp32 values of a file.
[[nodiscard]] std::vector<float> floats(const std::filesystem::path& path);

/// Largest difference, as a share of the largest expected value; infinite where a value is no number. Requires lists of
/// one length.
[[nodiscard]] double relative_error(const std::vector<float>& actual, const std::vector<float>& expected);

}  // namespace skein::test
