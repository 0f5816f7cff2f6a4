#pragma once
#include <vector>

#include "sampling/logit_row.hpp"
#include "sampling/sampling_params.hpp"

namespace skein::sampling {

/// Which tokens min_p, top_k and top_p leave, as a threshold on logits: those above keep their weight, those that equal
/// it share what the limits leave, those below are gone.
struct kept_tokens {
  float threshold = lowest_logit;  ///< need not be the logit of a token
  double tie_scale = 1;            ///< 0 .. 1

  [[nodiscard]] double weight(float logit, float weight) const {
    // Sums, not branches: which of a row's tokens are kept cannot be predicted.
    return weight * (static_cast<double>(logit > threshold) + tie_scale * static_cast<double>(logit == threshold));
  }
  [[nodiscard]] bool everything() const { return threshold <= lowest_logit && tie_scale == 1; }
};

/// A token that may be kept: its logit as an integer of the same order, and its weight.
struct candidate {
  std::uint32_t key;
  float weight;
};

/// The threshold for one row that is scanned, exact for any distribution; leaves the row with the weights to pick by.
/// Both limits are measured on the full softmax; min_p goes first. `scratch`: capacity of at least the vocabulary.
[[nodiscard]] kept_tokens select(logit_row& row, const sampling_params& params, std::vector<candidate>& scratch);

/// The token at `position` (0 .. 1) of the kept weights laid end to end in the order of ids.
[[nodiscard]] token_id pick(const logit_row& row, const kept_tokens& kept, double position);

}  // namespace skein::sampling
