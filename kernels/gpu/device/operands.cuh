#pragma once
#include <cstdint>

#include "kernels/gpu/runtime/runtime.hpp"
#include "kernels/weights/e4m3.hpp"

/// The types of operands that tensor cores multiply without decoding them.
namespace skein::kernels::gpu {

/// An 8-bit float (kernels/weights/e4m3.hpp). Tiles of them are copied and addressed as tiles of 16 bits with half as
/// many numbers.
struct e4m3 {
  std::uint8_t bits;
};
__device__ inline float to_float(e4m3 value) { return e4m3_to_f32(value.bits); }

/// Operands of a launch some of whose products have 16-bit operands, of the type of the results, and others e4m3.
template <typename Result>
struct mixed_operands {};

/// What products of operands of a type are rounded to.
template <typename Operand>
struct operand_traits {
  using result = Operand;
  static constexpr bool are_mixed = false;
};
template <typename Result>
struct operand_traits<mixed_operands<Result>> {
  using result = Result;
  static constexpr bool are_mixed = true;
};
template <typename Operand>
using result_of = typename operand_traits<Operand>::result;

}  // namespace skein::kernels::gpu
