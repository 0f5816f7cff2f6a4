#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sampling/sampling_params.hpp"

namespace skein::sampling {

/// A token that was drawn and what is subtracted from its logit, P in sampling_params. P may have become 0: the token
/// still counts as drawn before.
struct token_penalty {
  token_id token;
  float penalty;
};

/// The penalties of one row. Only drawn tokens are stored: P of all others is 0 and stays 0.
class penalties {
 public:
  explicit penalties(std::uint32_t vocab) { drawn_.reserve(vocab); }

  void clear() { drawn_.clear(); }
  void restore(std::span<const token_penalty> from) { drawn_.assign(from.begin(), from.end()); }
  [[nodiscard]] const std::vector<token_penalty>& drawn() const { return drawn_; }

  /// P *= penalty_decay for all; P[token] += first_penalty if it is new, else repeat_penalty.
  void record(token_id token, const sampling_params& params);

 private:
  std::vector<token_penalty> drawn_;  // in the order of their first draw
};

}  // namespace skein::sampling
