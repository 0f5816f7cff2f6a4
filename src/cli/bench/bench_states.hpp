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
  /// All slots at once, or as many as fit into parked_bytes_max: from the first request until the last state is in host
  /// memory that was fresh, and back in its slot. Medians.
  std::uint32_t parked = 0;
  double park_s = 0, resume_s = 0;
};
inline constexpr std::size_t parked_bytes_max = std::size_t{16} << 30;

/// Moves random states between host memory and slots on an idle engine, then parks and resumes all slots. Compares each
/// returned state with the original, bit for bit. Errors: those of the engine, `internal` if a state differs.
[[nodiscard]] result<state_moves_bench> bench_states(engine::engine& on);

}  // namespace skein::cli
