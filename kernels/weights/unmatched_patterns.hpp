#pragma once
#include "base/result.hpp"
#include "kernels/weights/model_weights.hpp"
#include "kernels/weights/weight_plan.hpp"

namespace skein::kernels {

/// Whether each pattern of the plan's overrides matches a matrix of the model, one whose format a plan chooses. Errors:
/// invalid_argument (weight_format), naming the first pattern that matches none.
[[nodiscard]] result<void> refuse_unmatched_patterns(const model_weights& weights, const weight_plan& plan);

}  // namespace skein::kernels
