#include "load/load_plan.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace skein::load {
namespace {

class length_source {
 public:
  /// mean of a log-normal distribution = exp(mu + sigma^2 / 2)
  explicit length_source(const length_wish& wish)
      : wish_(wish), sample_(std::log(wish.mean) - wish.sigma * wish.sigma / 2, wish.sigma) {}

  std::uint32_t next(std::mt19937_64& random) {
    if (wish_.fixed > 0) return wish_.fixed;
    return static_cast<std::uint32_t>(std::clamp(std::round(sample_(random)), 1.0, double{planned_tokens_max}));
  }

 private:
  length_wish wish_;
  std::lognormal_distribution<double> sample_;
};

}  // namespace

std::vector<planned_request> make_plan(const plan_options& options) {
  std::mt19937_64 random(options.seed);
  length_source input(options.input), output(options.output);
  std::exponential_distribution<double> pause(options.rate > 0 ? options.rate : 1);
  std::vector<planned_request> plan(options.prompts);
  double due_s = 0;
  for (auto& request : plan) {
    request.due_s = due_s;
    request.input_tokens = input.next(random);
    request.output_tokens = output.next(random);
    if (options.rate > 0) due_s += pause(random);
  }
  return plan;
}

}  // namespace skein::load
