#include "sampling/penalties.hpp"

namespace skein::sampling {

void penalties::record(token_id token, const sampling_params& params) {
  token_penalty* known = nullptr;
  for (token_penalty& p : drawn_) {
    p.penalty *= params.penalty_decay;
    if (p.token == token) known = &p;
  }
  if (known)
    known->penalty += params.repeat_penalty;
  else
    drawn_.push_back({token, params.first_penalty});
}

}  // namespace skein::sampling
