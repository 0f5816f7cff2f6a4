#pragma once
#include "base/result.hpp"
#include "kernels/weights/model_weights.hpp"
#include "kernels/weights/weight_plan.hpp"

namespace skein::kernels {

/// Matrices that are quantised in the file keep their format, so the plan has to name that one. Errors: bad_file.
[[nodiscard]] result<void> check_stored_formats(const model_weights& weights, const weight_plan& formats);

}  // namespace skein::kernels
