#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// What a load test saw of each request, and what it makes of them. The figures are those of vLLM's serving benchmark:
///   TTFT  from the moment a request is sent until the first piece of text
///   ITL   between two pieces of text of one answer
///   TPOT  (E2E - TTFT) / (output tokens - 1), for answers of two tokens and more
///   E2E   from the moment a request is sent until its last piece of text
/// Only answers that came whole count.
namespace skein::load {

/// One request.
struct request_outcome {
  std::string failure;                                ///< empty: the answer came whole
  std::vector<double> text_s;                         ///< when each piece of text came, after the request was sent
  std::uint64_t input_tokens = 0, output_tokens = 0;  ///< as the server counted them
};

/// Milliseconds; all 0 where there were none.
struct spread {
  double mean = 0, median = 0, p90 = 0, p99 = 0;
};
/// Percentiles between two values lie on the straight line between them.
[[nodiscard]] spread spread_of(std::vector<double> values_ms);

struct load_figures {
  std::uint64_t completed = 0, failed = 0;
  std::map<std::string, std::uint64_t> failures;  ///< by what went wrong
  std::uint64_t input_tokens = 0, output_tokens = 0;
  double duration_s = 0;  ///< from the beginning of the run until the last answer
  double requests_per_s = 0, output_tokens_per_s = 0, total_tokens_per_s = 0;
  std::uint64_t most_at_once = 0;  ///< requests
  spread ttft, itl, tpot, e2e;
};
[[nodiscard]] load_figures figures_of(const std::vector<request_outcome>& outcomes, double duration_s,
                                      std::uint64_t most_at_once);

[[nodiscard]] std::string table_of(const load_figures& figures);
/// `setting`: what was asked, as one JSON object; it stands beside the figures.
[[nodiscard]] std::string json_of(const load_figures& figures, const std::string& setting);

}  // namespace skein::load
