#pragma once
#include <cstdint>
#include <vector>

#include "base/ids.hpp"

/// The requests of a load test: lengths of prompts and answers, and send times. A pure function of the options, so that
/// two runs with the same seed send the same requests.
namespace skein::load {

/// A length in tokens, sampled from a log-normal distribution or fixed.
struct length_wish {
  double mean = 220;
  double sigma = 0.8;       ///< standard deviation of the logarithm
  std::uint32_t fixed = 0;  ///< if not 0: the length of all
};

struct plan_options {
  std::uint32_t prompts = 100;
  double rate = 0;  ///< requests per second, with exponentially distributed pauses; 0: all are due at once
  length_wish input{220, 0.8, 0}, output{180, 0.8, 0};
  std::uint64_t seed = 1;
};

constexpr std::uint32_t planned_tokens_max = 1u << 20;  ///< per prompt, and per answer

struct planned_request {
  double due_s = 0;  ///< since the start of the run
  std::uint32_t input_tokens = 0, output_tokens = 0;
};

/// Ordered by due time.
[[nodiscard]] std::vector<planned_request> make_plan(const plan_options& options);

}  // namespace skein::load
