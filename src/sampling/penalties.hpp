#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sampling/sampling_params.hpp"

namespace skein::sampling {

/// The penalties of one row. Stores only sampled tokens: P of all others is 0 and stays 0.
class penalties {
 public:
  explicit penalties(std::uint32_t vocab) { sampled_.reserve(vocab); }

  void clear() { sampled_.clear(); }
  void restore(std::span<const token_penalty> from) { sampled_.assign(from.begin(), from.end()); }
  [[nodiscard]] const std::vector<token_penalty>& sampled() const { return sampled_; }

  /// P *= penalty_decay for all; P[token] += first_penalty if it is new, else repeat_penalty.
  void record(token_id token, const sampling_params& params);

 private:
  std::vector<token_penalty> sampled_;  // in the order in which they were first sampled
};

/// The penalties after sampling the given tokens one after another, up to rounding; ordered from the last token to the
/// first.
[[nodiscard]] std::vector<token_penalty> penalties_of(std::span<const token_id> tokens, const sampling_params& params);

}  // namespace skein::sampling
