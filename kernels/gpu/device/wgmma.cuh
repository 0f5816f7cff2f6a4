#pragma once
#include <cstdint>

#include "kernels/gpu/device/convert.cuh"
#include "kernels/gpu/device/operands.cuh"
#if defined(SKEIN_GPU_EMULATOR)
#include "kernels/gpu/runtime/emulator/tensor_core.hpp"
#endif

/// The matrix instructions of sm_90a (PTX ISA, "wgmma"): the four warps of a warpgroup multiply tiles in shared memory,
/// 64 x 16 by 16 x `columns`, asynchronously, or 64 x 32 by 32 x `columns` of e4m3. CUDA; the emulator has the same at
/// a warp width of 32.
namespace skein::kernels::gpu {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || SKEIN_GPU_EMULATOR == 32
#define SKEIN_HAS_WGMMA 1
#endif

/// The matrix descriptor of a tile in shared memory: rows of 64 elements, 128 bytes, with the 16-byte pieces of a row
/// XORed with the row's number modulo eight (the 128-byte swizzle of TMA); the tile begins at a multiple of 1024 bytes.
/// Adding 2 moves 16 elements (32 of e4m3) along the row. These are the lower 32 of the 64 bits that the instruction
/// takes. The upper ones are the same for all tiles, and computing with them would add instructions between those of a
/// short GEMM.
#if defined(SKEIN_GPU_EMULATOR)
using descriptor = std::uint64_t;
inline descriptor tile_descriptor(const void* tile) { return reinterpret_cast<std::uintptr_t>(tile) >> 4; }
#else
using descriptor = std::uint32_t;
__device__ inline descriptor tile_descriptor(const void* tile) {
  return (static_cast<std::uint32_t>(__cvta_generic_to_shared(tile)) & 0x3ffff) >> 4 | 1u << 16;
}
#define SKEIN_UPPER_DESCRIPTOR "0x40000040"  // eight rows are 1024 bytes; the 128-byte swizzle
#endif

#if !defined(SKEIN_GPU_EMULATOR)

/// Orders the warpgroup's register accesses before the instructions that follow.
__device__ inline void wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
/// Ends a group of instructions.
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until at most `left` groups are pending.
template <int left>
__device__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}

/// Called by a whole warpgroup: its threads keep `registers` registers and release the others of their share, or
/// acquire that number as soon as it is available. Multiples of 8.
template <int registers>
__device__ void keep_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

// Operand lists, sixteen at a time.
#define SKEIN_NAMES_0 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define SKEIN_NAMES_1 SKEIN_NAMES_0 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define SKEIN_NAMES_3                                                \
  SKEIN_NAMES_1                                                      \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47" \
  ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define SKEIN_NAMES_4 SKEIN_NAMES_3 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define SKEIN_NAMES_5 SKEIN_NAMES_4 ",%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define SKEIN_NAMES_7                                                            \
  SKEIN_NAMES_5                                                                  \
  ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111" \
  ",%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define SKEIN_NAMES_120                                                                                          \
  SKEIN_NAMES_5                                                                                                  \
  ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%" \
  "118,%119"
#define SKEIN_SUMS_4(i) "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3])
#define SKEIN_SUMS_8(i) SKEIN_SUMS_4(i), SKEIN_SUMS_4(i + 4)
#define SKEIN_SUMS_16(i) SKEIN_SUMS_8(i), SKEIN_SUMS_8(i + 8)
#define SKEIN_SUMS_32(i) SKEIN_SUMS_16(i), SKEIN_SUMS_16(i + 16)
#define SKEIN_SUMS_64(i) SKEIN_SUMS_32(i), SKEIN_SUMS_32(i + 32)
#define SKEIN_SUMS_128(i) SKEIN_SUMS_64(i), SKEIN_SUMS_64(i + 64)
#define SKEIN_SUMS_80 SKEIN_SUMS_64(0), SKEIN_SUMS_16(64)
#define SKEIN_SUMS_96 SKEIN_SUMS_64(0), SKEIN_SUMS_32(64)
#define SKEIN_SUMS_120 SKEIN_SUMS_96, SKEIN_SUMS_16(96), SKEIN_SUMS_8(112)
// `kind`: depth and types. `layouts`: of both operands, which only those of 16 bits have. `a`, `b` and `keep` are the
// numbers of the operands after the sums.
#define SKEIN_WGMMA(columns, kind, layouts, names, a, b, keep, sums_list)                                             \
  asm volatile("{\n.reg .pred keeps;\n.reg .b32 upper;\n.reg .b64 a, b;\nsetp.ne.b32 keeps, %" keep                   \
               ", 0;\nmov.b32 upper, " SKEIN_UPPER_DESCRIPTOR ";\nmov.b64 a, {%" a ", upper};\nmov.b64 b, {%" b       \
               ", upper};\nwgmma.mma_async.sync.aligned.m64n" columns kind "\n{" names "}, a, b, keeps, 1, 1" layouts \
               ";\n}\n"                                                                                               \
               : sums_list                                                                                            \
               : "r"(weights), "r"(inputs), "r"(keep_sums))
#define SKEIN_WGMMA_OF_KIND(kind, layouts)                                                        \
  if constexpr (columns == 8)                                                                     \
    SKEIN_WGMMA("8", kind, layouts, "%0,%1,%2,%3", "4", "5", "6", SKEIN_SUMS_4(0));               \
  else if constexpr (columns == 16)                                                               \
    SKEIN_WGMMA("16", kind, layouts, "%0,%1,%2,%3,%4,%5,%6,%7", "8", "9", "10", SKEIN_SUMS_8(0)); \
  else if constexpr (columns == 32)                                                               \
    SKEIN_WGMMA("32", kind, layouts, SKEIN_NAMES_0, "16", "17", "18", SKEIN_SUMS_16(0));          \
  else if constexpr (columns == 64)                                                               \
    SKEIN_WGMMA("64", kind, layouts, SKEIN_NAMES_1, "32", "33", "34", SKEIN_SUMS_32(0));          \
  else if constexpr (columns == 128)                                                              \
    SKEIN_WGMMA("128", kind, layouts, SKEIN_NAMES_3, "64", "65", "66", SKEIN_SUMS_64(0));         \
  else if constexpr (columns == 160)                                                              \
    SKEIN_WGMMA("160", kind, layouts, SKEIN_NAMES_4, "80", "81", "82", SKEIN_SUMS_80);            \
  else if constexpr (columns == 192)                                                              \
    SKEIN_WGMMA("192", kind, layouts, SKEIN_NAMES_5, "96", "97", "98", SKEIN_SUMS_96);            \
  else if constexpr (columns == 240)                                                              \
    SKEIN_WGMMA("240", kind, layouts, SKEIN_NAMES_120, "120", "121", "122", SKEIN_SUMS_120);      \
  else                                                                                            \
    SKEIN_WGMMA("256", kind, layouts, SKEIN_NAMES_7, "128", "129", "130", SKEIN_SUMS_128(0))

/// sums = (keep_sums ? sums : 0) + weights [64, 16] * inputs [columns, 16]^T, or 32 in the place of 16
/// sums[4 j + 2 h + e] is output 16 * warp + lane / 4 + 8 h of column 8 j + 2 * (lane % 4) + e.
/// Asynchronous: wgmma_wait completes it.
template <typename Operand, int columns>
__device__ void wgmma(float (&sums)[columns / 2], descriptor weights, descriptor inputs, int keep_sums) {
  static_assert(columns == 8 || columns == 16 || columns == 32 || columns == 64 || columns == 128 || columns == 160 ||
                columns == 192 || columns == 240 || columns == 256);
  if constexpr (std::is_same_v<Operand, e4m3>) {
    SKEIN_WGMMA_OF_KIND("k32.f32.e4m3.e4m3", "");
  } else if constexpr (std::is_same_v<Operand, half>) {
    SKEIN_WGMMA_OF_KIND("k16.f32.f16.f16", ", 0, 0");
  } else {
    SKEIN_WGMMA_OF_KIND("k16.f32.bf16.bf16", ", 0, 0");
  }
}

// The same with the weights in registers.
#define SKEIN_WGMMA_REGISTERS(columns, type, names, a0, a1, a2, a3, b, sums_list)                                     \
  asm volatile("{\n.reg .b32 upper;\n.reg .b64 b;\nmov.b32 upper, " SKEIN_UPPER_DESCRIPTOR ";\nmov.b64 b, {%" b       \
               ", upper};\nwgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type "\n{" names "}, {%" a0 \
               ",%" a1 ",%" a2 ",%" a3 "}, b, 1, 1, 1, 0;\n}\n"                                                       \
               : sums_list                                                                                            \
               : "r"(weights[0]), "r"(weights[1]), "r"(weights[2]), "r"(weights[3]), "r"(inputs))
#define SKEIN_WGMMA_REGISTERS_OF_TYPE(type)                                                            \
  if constexpr (columns == 32)                                                                         \
    SKEIN_WGMMA_REGISTERS("32", type, SKEIN_NAMES_0, "16", "17", "18", "19", "20", SKEIN_SUMS_16(0));  \
  else if constexpr (columns == 64)                                                                    \
    SKEIN_WGMMA_REGISTERS("64", type, SKEIN_NAMES_1, "32", "33", "34", "35", "36", SKEIN_SUMS_32(0));  \
  else if constexpr (columns == 128)                                                                   \
    SKEIN_WGMMA_REGISTERS("128", type, SKEIN_NAMES_3, "64", "65", "66", "67", "68", SKEIN_SUMS_64(0)); \
  else if constexpr (columns == 192)                                                                   \
    SKEIN_WGMMA_REGISTERS("192", type, SKEIN_NAMES_5, "96", "97", "98", "99", "100", SKEIN_SUMS_96);   \
  else                                                                                                 \
    SKEIN_WGMMA_REGISTERS("256", type, SKEIN_NAMES_7, "128", "129", "130", "131", "132", SKEIN_SUMS_128(0))

/// sums += weights [64, 16] * inputs [columns, 16]^T, where each warp has its 16 rows of weights as an operand of
/// device/fragments.cuh. They may be changed when wgmma_wait has completed the instruction.
template <typename Element, int columns>
__device__ void wgmma_registers(float (&sums)[columns / 2], const std::uint32_t (&weights)[4], descriptor inputs) {
  static_assert(columns == 32 || columns == 64 || columns == 128 || columns == 192 || columns == 256);
  if constexpr (std::is_same_v<Element, half>) {
    SKEIN_WGMMA_REGISTERS_OF_TYPE("f16");
  } else {
    SKEIN_WGMMA_REGISTERS_OF_TYPE("bf16");
  }
}

#undef SKEIN_NAMES_0
#undef SKEIN_NAMES_1
#undef SKEIN_NAMES_3
#undef SKEIN_NAMES_4
#undef SKEIN_NAMES_5
#undef SKEIN_NAMES_7
#undef SKEIN_NAMES_120
#undef SKEIN_SUMS_4
#undef SKEIN_SUMS_8
#undef SKEIN_SUMS_16
#undef SKEIN_SUMS_32
#undef SKEIN_SUMS_64
#undef SKEIN_SUMS_128
#undef SKEIN_SUMS_80
#undef SKEIN_SUMS_96
#undef SKEIN_SUMS_120
#undef SKEIN_WGMMA
#undef SKEIN_UPPER_DESCRIPTOR
#undef SKEIN_WGMMA_OF_KIND
#undef SKEIN_WGMMA_REGISTERS
#undef SKEIN_WGMMA_REGISTERS_OF_TYPE

#else

inline void wgmma_begin() {}
inline void wgmma_commit() { emulator::warpgroup_gemms::of_this_thread().end_group(); }
template <int left>
void wgmma_wait() {
  emulator::warpgroup_gemms::of_this_thread().wait(left);
}
template <int>
void keep_registers() {}
template <int>
void take_registers() {}
template <typename Operand, int columns>
void wgmma(float (&sums)[columns / 2], descriptor weights, descriptor inputs, int keep_sums) {
  emulator::begin_gemms<Operand, columns>(sums, weights, inputs, keep_sums != 0);
}
template <typename Element, int columns>
void wgmma_registers(float (&sums)[columns / 2], const std::uint32_t (&weights)[4], descriptor inputs) {
  emulator::begin_gemms_of_registers<Element, columns>(sums, weights, inputs);
}

#endif

/// Calls visit(output, column, sum) for each of a thread's sums.
template <int columns, typename Visit>
__device__ void for_each_sum(const float (&sums)[columns / 2], Visit visit) {
  const unsigned warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
#pragma unroll
  for (unsigned j = 0; j < columns / 2; ++j)
    visit(warp * 16 + lane / 4 + j % 4 / 2 * 8, j / 4 * 8 + lane % 4 * 2 + j % 2, sums[j]);
}

}  // namespace skein::kernels::gpu
