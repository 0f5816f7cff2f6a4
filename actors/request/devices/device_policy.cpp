#include "actors/request/devices/device_policy.hpp"

#include <algorithm>
#include <cstddef>

#include "base/check.hpp"

namespace skein::request {
namespace {

bool has_room(const device_load& load) { return load.works && load.sequences < load.slots; }

}  // namespace

device_id choose_device(std::span<const device_load> loads, std::optional<device_id> holder, device_id last) {
  check(!loads.empty(), "a model has a device");
  if (holder && *holder < loads.size() && loads[*holder].works)
    if (has_room(loads[*holder]) || std::ranges::none_of(loads, has_room)) return *holder;

  std::optional<std::size_t> best;
  for (std::size_t step = 1; step <= loads.size(); ++step) {
    const std::size_t at = (last + step) % loads.size();
    if (loads[at].works && (!best || loads[at].sequences < loads[*best].sequences)) best = at;
  }
  return static_cast<device_id>(best.value_or(0));
}

}  // namespace skein::request
