#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// Outcomes and figures of a load test. The figures are those of vLLM's serving benchmark:
///   TTFT  time from sending a request to the first piece of text
///   ITL   time between two pieces of text of one answer
///   TPOT  (E2E - TTFT) / (output tokens - 1), for answers of two or more tokens
///   E2E   time from sending a request to its last piece of text
/// Only complete answers count.
namespace skein::load {

/// The outcome of one request.
struct request_outcome {
  std::string failure;                                ///< empty: the answer is complete
  std::vector<double> text_s;                         ///< arrival of each piece of text, since the request was sent
  std::uint64_t input_tokens = 0, output_tokens = 0;  ///< as reported by the server
};

/// In milliseconds; all 0 if there are no values.
struct spread {
  double mean = 0, median = 0, p90 = 0, p99 = 0;
};
/// Percentiles are interpolated linearly.
[[nodiscard]] spread spread_of(std::vector<double> values_ms);

struct load_figures {
  std::uint64_t completed = 0, failed = 0;
  std::map<std::string, std::uint64_t> failures;  ///< count by message
  std::uint64_t input_tokens = 0, output_tokens = 0;
  double duration_s = 0;  ///< from the start of the run to the last answer
  double requests_per_s = 0, output_tokens_per_s = 0, total_tokens_per_s = 0;
  std::uint64_t most_at_once = 0;  ///< concurrent requests
  spread ttft, itl, tpot, e2e;
};
[[nodiscard]] load_figures figures_of(const std::vector<request_outcome>& outcomes, double duration_s,
                                      std::uint64_t most_at_once);

[[nodiscard]] std::string table_of(const load_figures& figures);
/// `setting`: the options of the run as a JSON object, written next to the figures.
[[nodiscard]] std::string json_of(const load_figures& figures, const std::string& setting);

}  // namespace skein::load
