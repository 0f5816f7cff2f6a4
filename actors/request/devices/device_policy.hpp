#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "base/device_id.hpp"

namespace skein::request {

/// What is known of a device when a request needs one.
struct device_load {
  bool works = true;            ///< it is not lost
  std::uint32_t slots = 0;      ///< of its engine
  std::uint32_t sequences = 0;  ///< that run or wait there
};

/// Decides which device of a model runs a request. `loads`, at least one, are by device id. The first rule that
/// applies:
///
/// 1. `holder`, which has the state of the request's session in a slot, if it has a slot for the request, or if no
/// other
///    device has. A state is moved through host memory only for a request that would otherwise wait.
/// 2. The device with the fewest sequences. Of several, the first one behind `last`, the device that was chosen last,
///    and behind the last device comes the first. So equal devices take turns.
///
/// Lost devices are left out. If all are lost, the answer is the first one, which says in its refusal why.
[[nodiscard]] device_id choose_device(std::span<const device_load> loads, std::optional<device_id> holder,
                                      device_id last);

}  // namespace skein::request
