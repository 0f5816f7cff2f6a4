#pragma once
#include "engine/engine.hpp"

namespace skein::engine {

/// Clears a result but keeps the capacity of its vectors.
void reset(row_result& r, slot_id slot);

/// The number of scores that a row of `tokens` tokens requests.
[[nodiscard]] std::uint32_t scores_of(const row& r, std::uint32_t tokens);

}  // namespace skein::engine
