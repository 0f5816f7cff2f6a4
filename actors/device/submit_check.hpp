#pragma once
#include <optional>

#include "actors/device/device_mailbox.hpp"
#include "actors/device/scheduler_options.hpp"
#include "base/error.hpp"

namespace skein::device {

/// Why a new request is rejected, if it is; removes states of weight 0 from its mixture. Errors: those of beyond(), and
/// of mixtures as described at submit::mixture.
[[nodiscard]] std::optional<error> objection(const scheduler_options& options, submit& message);

}  // namespace skein::device
