#pragma once
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "engine/engine.hpp"

namespace skein::cli {

/// Times per state in seconds: averages over states that moved together, or of one state alone.
struct state_move_sample {
  double copy_s;       ///< copy within host memory, for comparison
  double in_s, out_s;  ///< from host memory into a slot, and back
  double alone_in_s, alone_out_s;
};

struct state_moves_bench {
  std::size_t bytes = 0;       ///< size of a state in host memory
  std::uint32_t together = 0;  ///< number of states that move together
  std::vector<state_move_sample> samples;
};

/// Moves random states between host memory and slots on an idle engine, and compares each returned state with the
/// original. Errors: those of the engine, `internal` if a state differs (beyond rounding for fp16 states).
[[nodiscard]] result<state_moves_bench> bench_states(engine::engine& on, bool half_precision);

}  // namespace skein::cli
