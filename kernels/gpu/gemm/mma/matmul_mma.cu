#include "kernels/gpu/gemm/mma/matmul_mma.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "kernels/gpu/gemm/matmul_hopper.hpp"
#include "kernels/gpu/gemm/mma/kernel.cuh"
#include "kernels/gpu/gemm/mma/shapes.cuh"

namespace skein::kernels::gpu {

namespace mma {

namespace {

/// What the shape of tiles is chosen by.
struct candidate {
  mma_shape shape;
  std::uint32_t outputs, columns;
  std::size_t shared_bytes;
  double time;  ///< of an SM for a tile by 64 inputs: in us on an H100, with 4,096 rows; see docs/performance.md
};
constexpr std::array<candidate, tile_names.size()> candidates{
    candidate{mma_shape::small, 64, 64, small_tiles<takes::one>::shared_bytes, 0.28},
    candidate{mma_shape::flat, 64, 128, flat_tiles<takes::one>::shared_bytes, 0.43},
    candidate{mma_shape::square, 128, 128, square_tiles<takes::one>::shared_bytes, 0.87},
    candidate{mma_shape::broad, 128, 192, broad_shallow_tiles<takes::one>::shared_bytes, 1.07},
    candidate{mma_shape::wide, 128, 256, wide_shallow_tiles<takes::one>::shared_bytes, 1.28}};

struct choice {
  mma_shape shape;
  double time;
};
/// The shape with which the SM that has the most tiles takes the least time, for more than 64 rows.
choice choose_shape(std::span<const gemm> gemms, std::uint32_t rows, takes work, const device_profile& profile) {
  const bool coded = std::ranges::any_of(gemms, is_quantised);
  choice best{mma_shape::small, 0};
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const candidate& c = candidates[i];
    const double of_tile = profile.tile_us[i] > 0 ? profile.tile_us[i] : c.time;
    const bool wide = c.shape == mma_shape::wide;
    const std::size_t needed = coded && wide ? wide_tiles<takes::one>::shared_bytes : c.shared_bytes;
    if (needed > profile.shared_bytes_per_block) continue;
    if (coded && c.shape == mma_shape::broad) continue;          // not compiled
    if (work == takes::sum_of_all && c.columns > 128) continue;  // its sums would need twice the registers
    std::uint32_t tiles = 0, depth = 0;
    for (const gemm& p : gemms) {
      tiles += (p.matrix.outputs + c.outputs - 1) / c.outputs * (work == takes::one ? p.segments : 1);
      depth = std::max(depth, work == takes::one ? segment_tiles(p) : padded(p.matrix.inputs) / matrix_tile);
    }
    tiles *= (rows + c.columns - 1) / c.columns;
    const double time = (tiles + profile.sm_count - 1) / profile.sm_count * of_tile * depth;
    if (best.time == 0 || time < best.time) best = {c.shape, time};
  }
  return best;
}

template <takes work>
result<void> launch_plain(mma_shape shape, const tile_launch& what) {
  const auto start = [&]<typename t>() {
    return launch_tiles<t>(what, matmul_mma_kernel<half, t>, matmul_mma_kernel<bf16, t>);
  };
  if constexpr (work == takes::one) {
    if (shape == mma_shape::rows_8) return start.template operator()<rows_8_tiles>();
    if (shape == mma_shape::rows_16) return start.template operator()<rows_16_tiles>();
    if (shape == mma_shape::rows_32) return start.template operator()<rows_32_tiles>();
  }
  if constexpr (work != takes::sum_of_all) {
    const bool deep = wide_tiles<work>::shared_bytes <= what.profile.shared_bytes_per_block;
    if (shape == mma_shape::broad)
      return deep ? start.template operator()<broad_tiles<work>>()
                  : start.template operator()<broad_shallow_tiles<work>>();
    if (shape == mma_shape::wide)
      return deep ? start.template operator()<wide_tiles<work>>()
                  : start.template operator()<wide_shallow_tiles<work>>();
  }
  if (shape == mma_shape::square) return start.template operator()<square_tiles<work>>();
  if (shape == mma_shape::flat) return start.template operator()<flat_tiles<work>>();
  return start.template operator()<small_tiles<work>>();
}

/// The width of tiles for launch_hopper: the time of a tile is that of matmul_hopper.cu.
std::uint32_t choose_columns(const tile_launch& what, takes work) {
  std::uint32_t tiles = 0;
  for (const gemm& p : what.gemms) tiles += (p.matrix.outputs + 127) / 128 * (work == takes::one ? p.segments : 1);
  constexpr std::array columns = {128u, 192u, 256u};
  const auto possible = std::span(columns).first(work == takes::sum_of_all ? 2 : 3);  // of 256, sums need registers
  return *std::ranges::min_element(possible, {}, [&](std::uint32_t width) {
    const std::uint32_t all = tiles * ((what.rows + width - 1) / width), sms = what.profile.sm_count;
    return (all + sms - 1) / sms * (550 + 14 * width);
  });
}

/// With the instructions of sm_90a.
result<void> launch_by_warpgroups(takes work, const tile_launch& what) {
  const gemm& first = what.gemms.front();
  const std::uint32_t columns = choose_columns(what, work);
  if (!is_quantised(first)) return matmul_hopper(what.in, what.type, what.gemms, nullptr, what.rows);
  return with_code(first.matrix.format,
                   [&]<weight_element code>() { return launch_hopper<code>(columns, work, what); });
}
bool can_use_warpgroups(const tile_launch& what) {
  const auto is_whole = [](const gemm& p) { return p.segments == 1; };
  return what.profile.has_wgmma && hopper_is_built() && what.rows > few_columns &&
         (is_quantised(what.gemms.front()) || std::ranges::all_of(what.gemms, is_whole));
}

/// Whether launch_ringed takes less time than launch_coded, as measured with 7.2B on an H100. With more than 8 rows,
/// products that others wait for take longer beside its rings, which keep the memory busier.
bool is_ringed(const tile_launch& what, weight_element code) {
  if (!what.profile.has_wgmma || !hopper_is_built() || what.rows > 32) return false;
  return what.rows > 8 ? !has_turns(what.gemms) : code != weight_element::nf4;
}

/// A launch of products of which the quantised ones have one kind of code, if any.
result<void> launch_alike(mma_shape shape, takes work, const tile_launch& what) {
  const auto coded = std::ranges::find_if(what.gemms, is_quantised);
  if (coded != what.gemms.end())
    return with_code(coded->matrix.format, [&]<weight_element code>() {
      return work == takes::one && is_ringed(what, code) ? launch_ringed<code>(shape, what)
                                                         : launch_coded<code>(shape, work, what);
    });
  if (work == takes::sum_of_all) return launch_plain<takes::sum_of_all>(shape, what);
  return work == takes::adds_each ? launch_plain<takes::adds_each>(shape, what) : launch_plain<takes::one>(shape, what);
}

/// Products of one launch that may be launched together: of one kind of code, in launches of few rows beside the ones
/// that are not quantised, which come first.
class launch_groups {
  static constexpr weight_element codes[] = {weight_element::int8, weight_element::fp8, weight_element::int4,
                                             weight_element::nf4};

 public:
  launch_groups(std::span<const gemm> gemms, bool few) {
    const auto take = [&](auto wanted) {
      for (const gemm& p : gemms)
        if (wanted(p)) sorted_[count_++] = p;
    };
    const auto take_waiting = [&] { take([](const gemm& p) { return p.when == turn::second; }); };
    take([](const gemm& p) { return !is_quantised(p) && p.when != turn::second; });
    bool open = few && count_ > 0;  // the first group may take quantised products, before those that wait
    if (!open) take_waiting();
    if (count_ > 0) ends_[groups_++] = count_;
    for (const weight_element code : codes) {
      const std::size_t before = count_;
      take([&](const gemm& p) { return is_quantised(p) && p.matrix.format.element == code; });
      if (count_ == before) continue;
      if (open)
        take_waiting();
      else
        ++groups_;
      ends_[groups_ - 1] = count_, open = false;
    }
  }
  /// run(products) for each group.
  template <typename Run>
  result<void> for_each(Run run) const {
    for (std::size_t i = 0, begin = 0; i < groups_; begin = ends_[i++])
      if (result<void> done = run(std::span(sorted_).subspan(begin, ends_[i] - begin)); !done) return done;
    return {};
  }

 private:
  std::array<gemm, gemms_max> sorted_;
  std::array<std::size_t, 1 + std::size(codes)> ends_;
  std::size_t count_ = 0, groups_ = 0;
};

std::optional<mma_shape> imposed_shape;

mma_shape shape_of(std::span<const gemm> gemms, std::uint32_t rows, takes work, const device_profile& profile) {
  if (work == takes::one && rows <= few_columns)
    return rows <= 8    ? mma_shape::rows_8
           : rows <= 16 ? mma_shape::rows_16
           : rows <= 32 ? mma_shape::rows_32
                        : mma_shape::small;
  return imposed_shape ? *imposed_shape : choose_shape(gemms, rows, work, profile).shape;
}

}  // namespace

}  // namespace mma

std::optional<std::uint32_t> mma_tiles(mma_shape shape, const device_profile& profile, std::uint32_t outputs,
                                       std::uint32_t rows) {
  const auto c = std::ranges::find(mma::candidates, shape, &mma::candidate::shape);
  if (c == mma::candidates.end() || c->shared_bytes > profile.shared_bytes_per_block) return {};
  return (outputs + c->outputs - 1) / c->outputs * ((rows + c->columns - 1) / c->columns);
}

void impose_shape(std::optional<mma_shape> shape) { mma::imposed_shape = shape; }

// For a launch of one product its consumer's reads of partial sums count as a tenth.
bool mma_splits(std::span<const gemm> gemms, std::uint32_t rows) {
  if (rows <= 128 || rows > split_rows_max) return rows <= 128;
  const auto profile = current_profile();
  if (!profile) return false;
  const auto launch = independent(gemms);
  const auto whole = launch.size() == 1 ? mma::takes::adds_each : mma::takes::sum_of_all;
  return mma::choose_shape(launch, rows, mma::takes::one, *profile).time <
         0.9 * mma::choose_shape(launch, rows, whole, *profile).time;
}

result<void> matmul_mma(stream_handle in, element type, std::span<const gemm> gemms, const std::uint32_t*,
                        std::uint32_t rows_room) {
  using mma::takes;
  check_gemms(type, gemms);
  check(type != element::f32);
  const bool few = rows_room <= mma::few_columns;
  if (has_turns(gemms) && !few)
    return in_two_launches(gemms, [&](auto some) { return matmul_mma(in, type, some, nullptr, rows_room); });
  bool segments = false, parts = false;
  for (const gemm& p : gemms) {
    segments |= p.segments > 1;
    parts |= p.how.to == destination::parts;
  }
  check(!segments || parts == mma_splits(gemms, rows_room));
  const auto profile = current_profile();
  if (!profile) return profile.error();
  const bool adds = gemms.size() == 1 && gemms.front().how.to == destination::add_f32;
  const takes work = !segments || parts ? takes::one : adds ? takes::adds_each : takes::sum_of_all;
  const auto run = [&](const mma::tile_launch& what) {
    return mma::launch_alike(mma::shape_of(what.gemms, rows_room, work, *profile), work, what);
  };
  if (std::ranges::none_of(gemms, is_quantised)) return run({in, type, gemms, rows_room, *profile});
  return mma::launch_groups(gemms, few).for_each([&](std::span<const gemm> some) {
    const mma::tile_launch what{in, type, some, rows_room, *profile};
    return mma::can_use_warpgroups(what) ? mma::launch_by_warpgroups(work, what) : run(what);
  });
}

}  // namespace skein::kernels::gpu
