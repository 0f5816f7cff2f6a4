#pragma once
#include <vector>

#include "sampling/logit_row.hpp"
#include "sampling/sampling_params.hpp"

namespace skein::sampling {

/// The tokens kept by min_p, top_k and top_p, as a threshold on logits: tokens above it keep their weight, tokens equal
/// to it share the rest of the limits, tokens below it are dropped.
struct kept_tokens {
  float threshold = lowest_logit;  ///< need not be the logit of a token
  double tie_scale = 1;            ///< 0 .. 1

  [[nodiscard]] double weight(float logit, float weight) const {
    // Sums instead of branches: which tokens of a row are kept is unpredictable.
    return weight * (static_cast<double>(logit > threshold) + tie_scale * static_cast<double>(logit == threshold));
  }
  [[nodiscard]] bool everything() const { return threshold <= lowest_logit && tie_scale == 1; }
};

/// A token that may be kept: its logit as an order-preserving integer, and its weight.
struct candidate {
  std::uint32_t key;
  float weight;
};

/// Computes the threshold for one scanned row, exactly for any distribution; leaves the weights for pick() in the row.
/// Both limits are measured on the full softmax; min_p applies first. `scratch`: capacity of at least the vocabulary.
[[nodiscard]] kept_tokens select(logit_row& row, const sampling_params& params, std::vector<candidate>& scratch);

/// The token at `position` (0 .. 1) of the cumulative kept weights in the order of ids.
[[nodiscard]] token_id pick(const logit_row& row, const kept_tokens& kept, double position);

}  // namespace skein::sampling
