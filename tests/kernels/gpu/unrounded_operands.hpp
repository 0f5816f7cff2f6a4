#pragma once
#include "kernels/gpu/runtime/emulator/tensor_core.hpp"

namespace skein::test {

/// While it lives, the emulated tensor cores do not round their operands.
struct unrounded_operands {
  unrounded_operands() { kernels::gpu::emulator::operands_round = false; }
  ~unrounded_operands() { kernels::gpu::emulator::operands_round = true; }
};

}  // namespace skein::test
