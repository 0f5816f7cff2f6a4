#pragma once
#include <memory>

#include "kernels/stages.hpp"
#include "kernels/weights/model_weights.hpp"
#include "kernels/weights/weight_plan.hpp"

/// The back ends of the host. Errors of all makers: bad_file (element types), unsupported (a matrix type or head size
/// that no kernel handles), unavailable (no memory for weights, activations or states).
namespace skein::kernels {

/// The judge: fp32 scalar loops over the checkpoint's exact values, one thread.
[[nodiscard]] result<std::unique_ptr<stages>> make_reference_stages(const model_weights& weights,
                                                                    const stage_limits& limits);

/// Highway on all cores. Matrices are kept in the formats of the plan, vectors, activations, sums and states in fp32.
/// The views may be dropped when this returns. Errors: also unsupported for a tensor with finite values that its format
/// makes infinite; the text names it.
[[nodiscard]] result<std::unique_ptr<stages>> make_cpu_stages(const model_weights& weights, const weight_plan& formats,
                                                              const stage_limits& limits,
                                                              const load_progress& progress = {});
/// The memory that make_cpu_stages will take, found without taking any. Errors: bad_file and unsupported, as there.
[[nodiscard]] result<memory_plan> plan_cpu_stages(const model_weights& weights, const weight_plan& formats,
                                                  const stage_limits& limits);

}  // namespace skein::kernels
