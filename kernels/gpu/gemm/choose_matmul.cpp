#include "kernels/gpu/gemm/hopper/matmul_hopper.hpp"
#include "kernels/gpu/gemm/mma/matmul_mma.hpp"

namespace skein::kernels::gpu {

result<matmul_functions> choose_matmul(int device, element type, const weight_plan& formats) {
  const auto profile = profile_of(device);
  if (!profile) return profile.error();
  if (type == element::f32) return plain_matmul();
  if (profile->has_wgmma && hopper_is_built() && !formats.quantised())
    return matmul_functions{"tensor cores of sm_90a", matmul_hopper, hopper_splits};
  if (type == element::bf16 ? profile->has_bf16() : profile->has_tensor_cores())
    return matmul_functions{"tensor cores", matmul_mma, mma_splits, true, formats.quantised() ? 4 : 2.5};
  return plain_matmul();
}

result<bool> rounds_inputs_of_fp8(int device, element type) {
  const auto profile = profile_of(device);
  if (!profile) return profile.error();
  return type != element::f32 && profile->has_wgmma && hopper_is_built();
}

}  // namespace skein::kernels::gpu
