#pragma once
#include <cstdint>
#include <vector>

#include "base/ids.hpp"

/// What a load test asks of a server: how long each prompt and answer is, and when it is sent. A plain function of the
/// options, so that two runs with one seed ask for the same.
namespace skein::load {

/// A length in tokens, drawn from a log-normal distribution or the same for all.
struct length_wish {
  double mean = 220;
  double sigma = 0.8;       ///< of the logarithm
  std::uint32_t fixed = 0;  ///< not 0: every length
};

struct plan_options {
  std::uint32_t prompts = 100;
  double rate = 0;  ///< requests a second, with exponential pauses between them; 0: all are due at once
  length_wish input{220, 0.8, 0}, output{180, 0.8, 0};
  std::uint64_t seed = 1;
};

constexpr std::uint32_t planned_tokens_max = 1u << 20;  ///< of one prompt, and of one answer

struct planned_request {
  double due_s = 0;  ///< after the beginning of the run
  std::uint32_t input_tokens = 0, output_tokens = 0;
};

/// In the order in which they are due.
[[nodiscard]] std::vector<planned_request> make_plan(const plan_options& options);

}  // namespace skein::load
