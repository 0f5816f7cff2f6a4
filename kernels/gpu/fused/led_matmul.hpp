#pragma once
#include <optional>
#include <span>
#include <variant>

#include "kernels/gpu/gemm/matmul.hpp"
#include "kernels/gpu/ops/token_shift.hpp"
#include "kernels/gpu/time_mix/time_mix.hpp"

/// Decode of few rows on GPUs without PDL. There each kernel takes 2 to 4 us longer than its weights. So a launch of
/// products also has the kernel before them, as its first blocks, and the products that read its results, as its last
/// ones.
namespace skein::kernels::gpu {

/// What the first blocks of a launch do.
using leader = std::variant<token_shift_parameters, time_mix_parameters>;

/// With 32 rows it took longer than separate launches (is_worth_leading).
inline constexpr std::uint32_t led_rows_max = 16;
/// Heads of all rows up to which time mixing leads. With more, time_mix needs more blocks of an SM at once than a
/// product leaves.
inline constexpr std::uint32_t led_heads_max = 1024;
/// The size of led_matmul's counters.
inline constexpr std::uint32_t led_counters = 64;

/// Whether the device runs led_matmul: an NVIDIA GPU with tensor cores for that type, but without PDL. Not if
/// $SKEIN_FUSED_LAUNCHES is 0, or if forbid_led_matmul(true) was called, for tests.
[[nodiscard]] result<bool> has_led_matmul(int device, element type);
/// Whether it is faster than separate launches for a model of that width. Measured on an H100 without PDL (see
/// bench/RESULTS.md): 6 % and 3 % faster at width 2,048 with 1 and 8 rows, 5 % slower with 32, and 2 to 5 % slower at
/// width 4,096, where the products are long and the blocks that wait cost more than separate launches. Always true in
/// the emulator and if $SKEIN_FUSED_LAUNCHES is 1.
[[nodiscard]] bool is_worth_leading(std::uint32_t width, std::uint32_t rows);
/// For the calling thread.
void forbid_led_matmul(bool forbidden);
/// Whether a launch may have all of these: those that are quantised have one kind of code.
[[nodiscard]] bool can_lead(std::span<const gemm> gemms);

/// Does the work of `first`, then of the products that read its outputs, then of those that read theirs (turn::second),
/// in one launch, with the bits of token_shift or time_mix and matmul_mma. Other than there, a second product may have
/// several segments and any number of outputs. All runs have one row, so runs[i] is row i, and there is room for at
/// most led_rows_max; time mixing has heads of 64.
/// counters : led_counters words on the device, 0 between launches
[[nodiscard]] result<void> led_matmul(stream_handle in, const device_batch& rows, element type, element state_type,
                                      const leader& first, std::span<const gemm> gemms, std::uint32_t* counters);

}  // namespace skein::kernels::gpu
