#pragma once
#include <cstdint>
#include <vector>

#include "engine/engine.hpp"

namespace skein::engine {

/// Asserts that a plan follows the rules of engine.hpp and the limits of `info`. `slot_seen` is scratch, one entry per
/// slot.
void check_plan(const engine_info& info, const tick_plan& plan, std::vector<std::uint8_t>& slot_seen);

}  // namespace skein::engine
