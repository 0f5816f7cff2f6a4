// For builds without sm_90a, in place of gemm/hopper/*.cu, gemm/mma/hopper_*.cu and gemm/mma/ringed_*.cu:
// hopper_is_built() is false, so nothing is launched.
#include "base/check.hpp"
#include "kernels/gpu/gemm/hopper/matmul_hopper.hpp"
#include "kernels/gpu/gemm/mma/shapes.cuh"

namespace skein::kernels::gpu {

bool hopper_is_built() { return false; }

bool hopper_splits(std::span<const gemm>, std::uint32_t) { return false; }

bool hopper_pairs(std::span<const gemm>, std::uint32_t, std::uint32_t) { return false; }

products_beside::products_beside(std::span<const gemm> gemms, std::uint32_t, std::uint32_t)
    : products(by_turn(gemms)) {}
bool products_beside::is_worth_it(std::uint32_t, std::uint32_t) const { return false; }
result<void> multiply_first(stream_handle, element, const products_beside&, std::uint32_t) {
  check(false);
  return {};
}
result<void> multiply_second(stream_handle, element, const products_beside&, std::uint32_t) {
  check(false);
  return {};
}

result<void> matmul_hopper(stream_handle, element, std::span<const gemm>, const std::uint32_t*, std::uint32_t) {
  check(false);
  return {};
}

namespace mma {

template <weight_element code>
result<void> launch_hopper(std::uint32_t, const tile_launch&) {
  check(false);
  return {};
}
template <weight_element code>
result<void> launch_ringed(mma_shape, const tile_launch&) {
  check(false);
  return {};
}
result<void> launch_low_rank(mma_shape, const tile_launch&, std::uint32_t*) {
  check(false);
  return {};
}

template result<void> launch_hopper<weight_element::int8>(std::uint32_t, const tile_launch&);
template result<void> launch_hopper<weight_element::int4>(std::uint32_t, const tile_launch&);
template result<void> launch_hopper<weight_element::nf4>(std::uint32_t, const tile_launch&);
template result<void> launch_ringed<weight_element::int8>(mma_shape, const tile_launch&);
template result<void> launch_ringed<weight_element::int4>(mma_shape, const tile_launch&);
template result<void> launch_ringed<weight_element::nf4>(mma_shape, const tile_launch&);

}  // namespace mma

}  // namespace skein::kernels::gpu
