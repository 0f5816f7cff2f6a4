#include "kernels/gpu/types/device_profile.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace skein::kernels::gpu {

namespace {

struct named_profile {
  std::string_view name;
  device_profile of;
};

// Shared memory: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; SMs: data sheets.
constexpr std::array profiles{named_profile{"t4", make_profile(75, 40, 64 << 10)},
                              named_profile{"a100", make_profile(80, 108, 163 << 10)},
                              named_profile{"rtx3090", make_profile(86, 82, 99 << 10)},
                              named_profile{"rtx4090", make_profile(89, 128, 99 << 10)},
                              named_profile{"l4", make_profile(89, 58, 99 << 10)},
                              named_profile{"h100", make_profile(90, 132, 227 << 10)},
                              named_profile{"rtx5090", make_profile(120, 170, 99 << 10)}};

}  // namespace

std::optional<device_profile> find_profile(std::string_view name) {
  const std::string_view card = name.substr(0, name.find(':'));
  const auto found = std::ranges::find(profiles, card, &named_profile::name);
  if (found == profiles.end()) return {};
  device_profile profile = found->of;
  if (card.size() == name.size()) return profile;
  const std::string_view number = name.substr(card.size() + 1);
  const auto [end, trouble] = std::from_chars(number.data(), number.data() + number.size(), profile.sm_count);
  if (trouble != std::errc() || end != number.data() + number.size() || profile.sm_count == 0) return {};
  return profile;
}

std::string profile_names() {
  std::string names;
  for (const named_profile& p : profiles) names.append(names.empty() ? "" : ", ").append(p.name);
  return names;
}

device_profile limit_profile(const device_profile& own, const device_profile& imposed) {
  return {std::min(own.compute_capability, imposed.compute_capability),
          std::min(own.sm_count, imposed.sm_count),
          std::min(own.shared_bytes_per_block, imposed.shared_bytes_per_block),
          own.shared_bytes_of_device,
          own.has_wgmma && imposed.has_wgmma,
          own.has_pdl && imposed.has_pdl,
          imposed.compute_capability >= 80 ? own.streamed_bytes_max : 0,
          own.tile_us};
}

}  // namespace skein::kernels::gpu
