#pragma once
#include "kernels/gpu/ops/token_shift.hpp"

namespace skein::kernels::gpu {

inline constexpr std::uint32_t shifts_by_row_max = 5;  ///< w k v r g of RWKV-6

/// The token shifts of RWKV-6, whose shares of the previous token depend on the token. The first one makes the input of
/// the low-rank pairs that compute these shares, and leaves x_prev as it is for the second one. Of `of.shifts` mixes
/// only the first is used. Also writes the `statistics` of the rows unless they are null, for mix_by_token.
[[nodiscard]] result<void> shift_for_shares(stream_handle in, const device_batch& rows, element type,
                                            const token_shift_parameters& of, row_statistics* statistics);
/// As token_shift, up to shifts_by_row_max at once, but with a share for each row:
///   out[i][t] = now + (before - now) * (mix[i] + share[i][t])
/// share[i] : [rows, out_stride] of fp16, or fp32 if that is `type`; may be the memory of out[i]
[[nodiscard]] result<void> shift_by_row(stream_handle in, const device_batch& rows, element type,
                                        const token_shift_parameters& of,
                                        const void* const (&share)[shifts_by_row_max]);

}  // namespace skein::kernels::gpu
