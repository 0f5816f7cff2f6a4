#pragma once
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "engine/engine.hpp"

namespace skein::cli {

/// Times of one state, in seconds: on average of those that moved together, or of one alone.
struct state_move_sample {
  double copy_s;       ///< from one place in host memory to another, for comparison
  double in_s, out_s;  ///< from host memory into a slot, and back
  double alone_in_s, alone_out_s;
};

struct state_moves_bench {
  std::size_t bytes = 0;       ///< of a state in host memory
  std::uint32_t together = 0;  ///< states that move one behind another
  std::vector<state_move_sample> samples;
};

/// Moves random states between host memory and slots; nothing else runs. What comes back is compared with what went in:
/// errors are the engine's, and `internal` where a state came back as another (fp16 states: but for their rounding).
[[nodiscard]] result<state_moves_bench> bench_states(engine::engine& on, bool half_precision);

}  // namespace skein::cli
