// Where there are no tensor cores of NVIDIA's kind, GEMMs and shift_by_row do the work.
#include "base/check.hpp"
#include "kernels/gpu/fused/mix_by_token.hpp"

namespace skein::kernels::gpu {

bool can_mix_by_token(element, const device_matrix&) { return false; }

result<void> mix_by_token(stream_handle, const device_batch&, element, const mix_by_token_parameters&) {
  check(false);
  return {};
}

}  // namespace skein::kernels::gpu
