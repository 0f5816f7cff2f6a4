#include "kernels/gpu/ops/convert.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "kernels/gpu/device/convert.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned convert_threads = 256;
constexpr std::size_t convert_blocks_max = 1024;

/// Two bytes per thread and iteration are enough: weights arrive over a bus that is far slower.
template <typename From, typename To>
__global__ void __launch_bounds__(convert_threads) convert_kernel(void* values, std::size_t count) {
  for (std::size_t i = std::size_t{blockIdx.x} * convert_threads + threadIdx.x; i < count;
       i += gridDim.x * convert_threads) {
    const From before = static_cast<const From*>(values)[i];
    static_cast<To*>(values)[i] = from_float<To>(to_float(before));
  }
}

}  // namespace

result<void> queue_convert(stream_handle in, void* values, std::size_t count, element from, element to) {
  check(element_bytes(from) == 2);
  check(element_bytes(to) == 2);
  if (count == 0 || from == to) return {};
  const auto blocks =
      static_cast<unsigned>(std::min((count + convert_threads - 1) / convert_threads, convert_blocks_max));
  return launch({"convert", {blocks}, {convert_threads}, 0, in},
                to == element::f16 ? convert_kernel<bf16, half> : convert_kernel<half, bf16>, values, count);
}

}  // namespace skein::kernels::gpu
