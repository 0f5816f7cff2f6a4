// For targets without the tensor cores of NVIDIA GPUs, as gemm/choose_matmul_absent.cpp.
#include "base/check.hpp"
#include "kernels/gpu/fused/led_matmul.hpp"

namespace skein::kernels::gpu {

result<bool> has_led_matmul(int, element) { return false; }
bool is_worth_leading(std::uint32_t, std::uint32_t) { return false; }
void forbid_led_matmul(bool) {}
bool can_lead(std::span<const gemm>) { return false; }

result<void> led_matmul(stream_handle, const device_batch&, element, element, const leader&, std::span<const gemm>,
                        std::uint32_t*) {
  return error{error_kind::unsupported, "GPU: launches with a leader need tensor cores", ""};
}

}  // namespace skein::kernels::gpu
