#include "kernels/gpu/fused/led_matmul.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/check.hpp"
#include "kernels/gpu/fused/launch.cuh"
#include "kernels/gpu/ops/row_norm.cuh"

namespace skein::kernels::gpu {

namespace {

thread_local bool is_forbidden = false;

/// $SKEIN_FUSED_LAUNCHES: 0 never, 1 whenever possible.
const char* wanted() {
  static const char* const given = std::getenv("SKEIN_FUSED_LAUNCHES");
  return given ? given : runtime_is_emulated ? "1" : "";
}

/// All blocks of a shift together read the rows of this number of channels, which takes some 1 us from the L2 cache of
/// an H100; more slices of a row leave a thread with less than one packet.
constexpr std::uint32_t shift_channels_max = 1 << 18;

shift_cut cut_rows(std::uint32_t width, std::uint32_t rows) {
  const std::uint32_t packets = width / 4;
  const std::uint32_t most = std::max(1u, std::min(packets / leader_threads, shift_channels_max / (rows * width)));
  shift_cut cut;
  cut.packets = (packets + most - 1) / most;
  cut.slices = (packets + cut.packets - 1) / cut.packets;
  cut.threads = row_threads(width);
  return cut;
}

/// Whether there are second products if and only if there are first ones, behind all others.
bool is_led_in_turn(std::span<const gemm> gemms) {
  const auto before = gemms.first(before_second(gemms)), second = gemms.subspan(before.size());
  const auto is_first = [](const gemm& p) { return p.when == turn::first; };
  const auto is_second = [](const gemm& p) { return p.when == turn::second; };
  return !before.empty() && gemms.size() <= gemms_max && std::ranges::all_of(second, is_second) &&
         std::ranges::any_of(before, is_first) == !second.empty();
}

}  // namespace

namespace mma {

void place_leader(const led_launch& led, led_gemms& all) {
  const device_batch& rows = led.rows;
  all.batch = rows;
  all.states_of_f32 = led.state_type == element::f32;
  if (const auto* const shift = std::get_if<token_shift_parameters>(&led.first)) {
    check(shift->shifts <= token_shifts_max && shift->width <= width_max && shift->width % 64 == 0);
    check(shift->sum != shift->from.x);
    check((shift->sum != nullptr) == (shift->from.added.parts > 0) && !shift->from.gate);
    check(shift->kept_type != element::bf16);
    all.shifts = true, all.shift = *shift, all.cut = cut_rows(shift->width, rows.room.rows);
    all.leaders = rows.room.rows * all.cut.slices, all.leader_bytes = shift_bytes(shift->width);
  } else {
    all.shifts = false, all.mix = std::get<time_mix_parameters>(led.first);
    check(all.mix.width % head_size == 0 && led.state_type != element::bf16);
    all.leaders = rows.room.rows * (all.mix.width / head_size), all.leader_bytes = sizeof(shared_tile<1>);
  }
  all.led.at = led.counters, all.firsts.at = led.counters + phase_count::spacing;
  all.led.writers = all.leaders, all.led.readers = all.items;
  for (std::uint32_t i = 0; i < all.count; ++i) {
    const placed_gemm& p = all.of[i];
    const std::uint32_t end = i + 1 < all.count ? all.of[i + 1].first_item : all.items;
    if (p.when == turn::first) all.firsts.writers += end - p.first_item;
    if (p.when == turn::second) all.firsts.readers += end - p.first_item, all.led.readers -= end - p.first_item;
  }
}

}  // namespace mma

void forbid_led_matmul(bool forbidden) { is_forbidden = forbidden; }

result<bool> has_led_matmul(int device, element type) {
  const auto profile = profile_of(device);
  if (!profile) return profile.error();
  const bool has_type = type == element::bf16 ? profile->has_bf16() : type == element::f16;
  return !is_forbidden && std::strcmp(wanted(), "0") != 0 && has_type && profile->has_tensor_cores() &&
         !profile->has_pdl;
}

bool is_worth_leading(std::uint32_t width, std::uint32_t rows) {
  return std::strcmp(wanted(), "1") == 0 || (width <= 2048 && rows <= 8);
}

bool can_lead(std::span<const gemm> gemms) {
  const auto coded = std::ranges::find_if(gemms, is_quantised);
  return std::ranges::all_of(gemms, [&](const gemm& p) {
    return !is_quantised(p) || p.matrix.format.element == coded->matrix.format.element;
  });
}

result<void> led_matmul(stream_handle in, const device_batch& rows, element type, element state_type,
                        const leader& first, std::span<const gemm> gemms, std::uint32_t* counters) {
  check(type != element::f32);
  check(rows.room.rows <= led_rows_max && rows.room.rows == rows.room.runs);
  check(is_led_in_turn(gemms) && can_lead(gemms));
  const auto profile = current_profile();
  if (!profile) return profile.error();
  const mma::led_launch led{{in, type, gemms, rows.room.rows, *profile}, rows, state_type, first, counters};
  const auto coded = std::ranges::find_if(gemms, is_quantised);
  if (coded != gemms.end())
    return with_code(coded->matrix.format, [&]<weight_element code>() { return mma::launch_led_coded<code>(led); });
  return mma::launch_led(led, [&]<typename t>() {
    return mma::launch_led_tiles<t>(led, mma::led_matmul_kernel<half, t>, mma::led_matmul_kernel<bf16, t>);
  });
}

}  // namespace skein::kernels::gpu
