#include "cli/tune/tuning_search.hpp"

#include <algorithm>
#include <cmath>

namespace skein::cli {
namespace {

using kernels::gpu::gpu_tuning;

/// The rules of the code have 2, 2.5 or 4.
constexpr double candidates[] = {2, 1, 3, 4, 1.5, 6};
/// What repeated measurements differ by.
constexpr double noise = 0.01;

/// How much less time `b` takes than `a`: the geometric mean of the ratios.
double gain(const decode_times& a, const decode_times& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::log(a[i] / b[i]);
  return std::exp(sum / static_cast<double>(a.size()));
}

}  // namespace

result<tuning_found> search_tuning(const gpu_tuning& from, const decode_timer& time,
                                   const std::function<bool()>& may_go_on) {
  tuning_found found{.tuning = from};
  const auto measured = [&](const gpu_tuning& tuning) {
    ++found.tried;
    return time(tuning);
  };
  const auto before = measured(from);
  if (!before) return before.error();
  found.before = found.after = *before;
  for (const double blocks : candidates) {
    if (!may_go_on()) {
      found.out_of_time = true;
      return found;
    }
    gpu_tuning tuning = from;
    tuning.blocks_per_sm = blocks;
    const auto times = measured(tuning);
    if (!times) return times.error();
    if (gain(found.after, *times) > 1 + noise) found.tuning = tuning, found.after = *times;
  }
  gpu_tuning never = found.tuning, always = found.tuning;
  never.led_rows = 0, always.led_rows = tuned_rows.back();
  if (!may_go_on()) {
    found.out_of_time = true;
    return found;
  }
  const auto without = measured(never);
  if (!without) return without.error();
  const auto with = measured(always);
  if (!with) return with.error();
  std::uint32_t rows = 0;
  decode_times best = *without;
  for (std::size_t i = 0; i < tuned_rows.size() && (*without)[i] > (*with)[i] * (1 + noise); ++i)
    rows = tuned_rows[i], best[i] = (*with)[i];
  if (gain(found.after, best) > 1 + noise) found.tuning.led_rows = rows, found.after = best;
  return found;
}

}  // namespace skein::cli
