#pragma once
#include <map>
#include <span>
#include <vector>

#include "sampling/sampling_params.hpp"

namespace skein::sampling {

/// The sampler as the rules are written down: doubles, a full sort, no thought of speed. It judges the real one.
class slow_sampler {
 public:
  explicit slow_sampler(sampling_params params) : params_(std::move(params)) {}

  /// Kept weight of every token, sum 1; greedy settings give the whole weight to one token.
  [[nodiscard]] std::vector<double> kept(std::span<const float> logits, std::span<const std::uint32_t> allowed) const;
  void record(token_id token);

 private:
  sampling_params params_;
  std::uint32_t sampled_ = 0;
  std::map<token_id, float> penalty_;  // of every token drawn so far
};

/// How far the cumulative kept weight around `token` lies from holding `position`: 0 if it holds it.
[[nodiscard]] double miss(const std::vector<double>& kept, token_id token, double position);

}  // namespace skein::sampling
