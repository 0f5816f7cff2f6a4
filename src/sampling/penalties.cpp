#include "sampling/penalties.hpp"

#include <unordered_map>

namespace skein::sampling {

void penalties::record(token_id token, const sampling_params& params) {
  token_penalty* known = nullptr;
  for (token_penalty& p : sampled_) {
    p.penalty *= params.penalty_decay;
    if (p.token == token) known = &p;
  }
  if (known)
    known->penalty += params.repeat_penalty;
  else
    sampled_.push_back({token, params.first_penalty});
}

std::vector<token_penalty> penalties_of(std::span<const token_id> tokens, const sampling_params& params) {
  struct sum {
    double penalty = 0;     // as if each occurrence added repeat_penalty
    double first_left = 0;  // decayed share of the earliest occurrence
  };
  std::unordered_map<token_id, sum> sums;
  std::vector<token_id> order;
  double left = 1;  // decayed share of an occurrence at position i
  for (std::size_t i = tokens.size(); i-- > 0; left *= double{params.penalty_decay}) {
    const auto [known, fresh] = sums.try_emplace(tokens[i]);
    if (fresh) order.push_back(tokens[i]);
    known->second.penalty += left * double{params.repeat_penalty};
    known->second.first_left = left;
  }
  std::vector<token_penalty> out;
  for (const token_id token : order) {
    const sum& of = sums[token];
    const double first = of.first_left * (double{params.first_penalty} - double{params.repeat_penalty});
    out.push_back({token, static_cast<float>(of.penalty + first)});
  }
  return out;
}

}  // namespace skein::sampling
