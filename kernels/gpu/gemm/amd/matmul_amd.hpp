#pragma once
#include "kernels/gpu/gemm/matmul.hpp"

namespace skein::kernels::gpu {

/// Has the contract of matmul(), for matrices of fp16 and bf16 on AMD GPUs, by the matrix instructions of the GPU or by
/// dot products (device/matrix_core.cuh). Quantised matrices are multiplied by matmul(). Its bits differ from those of
/// other kernels and other GPUs: an instruction adds several products at once, and instructions follow each other in
/// ascending order of inputs.
[[nodiscard]] result<void> matmul_amd(stream_handle in, element type, std::span<const gemm> gemms,
                                      const std::uint32_t* row_count, std::uint32_t rows_room);

/// As matmul_functions::splits.
[[nodiscard]] bool amd_splits(std::span<const gemm> gemms, std::uint32_t rows_room);

#if defined(SKEIN_GPU_EMULATOR)
enum class matrix_unit : std::uint8_t;
/// What the emulator multiplies by, on this thread: wmma_11, wmma_12 or dot with warps of 32 lanes, mfma or dot with
/// 64. The first ones are the default.
void emulate_unit(matrix_unit unit);
#endif

}  // namespace skein::kernels::gpu
