#pragma once
#include <array>
#include <functional>
#include <string>

#include "base/result.hpp"
#include "kernels/gpu/types/gpu_tuning.hpp"

namespace skein::cli {

/// Rows of the ticks that are timed; kernels can share launches up to the last one.
inline constexpr std::array<std::uint32_t, 3> tuned_rows = {1, 8, 16};
using decode_times = std::array<double, tuned_rows.size()>;  ///< seconds of a tick

/// Builds the model with a tuning and times its ticks.
using decode_timer = std::function<result<decode_times>(const kernels::gpu::gpu_tuning&)>;

struct tuning_found {
  kernels::gpu::gpu_tuning tuning;
  decode_times before = {}, after = {};  ///< with `from` and with `tuning`
  std::uint32_t tried = 0;
  bool out_of_time = false;  ///< not all candidates were tried
};

/// Tries values of blocks_per_sm, then launches that kernels share, and keeps what is faster by more than the noise:
/// the geometric mean over tuned_rows for the former, each number of rows by itself for the latter. Members of `from`
/// that it does not try are kept. `may_go_on` is asked before each candidate. Errors: those of `time`.
[[nodiscard]] result<tuning_found> search_tuning(const kernels::gpu::gpu_tuning& from, const decode_timer& time,
                                                 const std::function<bool()>& may_go_on);

}  // namespace skein::cli
