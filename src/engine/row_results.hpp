#pragma once
#include "engine/engine.hpp"

namespace skein::engine {

/// Empty again, with the memory of its vectors.
void reset(row_result& r, slot_id slot);

/// How many scores a row of `tokens` tokens asks for.
[[nodiscard]] std::uint32_t scores_of(const row& r, std::uint32_t tokens);

}  // namespace skein::engine
