#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cli/bench/bench_states.hpp"
#include "cli/bench/machine_scale.hpp"
#include "engine/engine.hpp"
#include "model/model_info.hpp"

/// Results of `bench engine`, their cost on the machine, and the output formats.
namespace skein::cli {

/// Consecutive ticks, and the machine's limits measured right before them.
struct tick_sample {
  double tick_s;  ///< average per tick
  device_limits limits;
};

/// One kind of tick, repeated.
struct bench_case {
  const char* kind;         ///< "decode" or "prefill"
  std::uint32_t sequences;  ///< rows in the tick; one token is sampled for each
  std::uint32_t tokens;     ///< fed per sequence
  std::uint32_t ticks;      ///< per sample
  std::vector<tick_sample> samples;
};

/// The minimal cost of a tick: matrices are read once and multiplied once per token, states are read and written once
/// per sequence, only the tokens' rows of the embedding table are read. Activations, norms and vectors are left out.
class tick_cost {
 public:
  /// `weights_in_memory`: bytes of the weights as the engine has them, without the embedding table.
  tick_cost(const model::model_info& info, const std::string& weight_type, std::size_t weights_in_memory,
            const std::string& state_type);

  [[nodiscard]] double weight_bytes(const bench_case& of) const;
  [[nodiscard]] double state_bytes(const bench_case& of) const;
  [[nodiscard]] double flop(const bench_case& of) const;  ///< of the GEMMs; two per multiply-add
  /// The time that a device with these limits needs at least: GEMMs and reads of weights overlap, reads and writes of
  /// states are added. 0: unknown.
  [[nodiscard]] double least_s(const bench_case& of, const device_limits& limits) const;

 private:
  double layers_, table_, element_bytes_, embd_, bytes_of_state_;  // layers_ and table_ in elements
  double bytes_of_matrices_;
};

struct bench_report {
  std::string model;
  engine::engine_info built;
  std::string state_type, invariance, flop_source;
  std::uint32_t threads;  ///< 0: GPU
  double open_s;          ///< from the path to a mapped checkpoint, with what the host decodes
  double load_s;          ///< from the mapped file to a ready engine
  tick_cost cost;
  std::vector<bench_case> cases;
  state_moves_bench states{};
};

/// Medians over the samples of a case. Each sample's share refers to the limit measured with it, so shares stay valid
/// while the machine's speed drifts. Unknown values are 0.
struct bench_rates {
  double tick_s, fastest_s, slowest_s;
  double tokens_per_s, bytes_per_s, flop_per_s;
  device_limits limits;
  double share_of_read, share_of_flop, share_of_least;  ///< share_of_least: least_s relative to the measured time
};

[[nodiscard]] bench_rates rates_of(const bench_case& of, const tick_cost& cost);
/// The line of one case, without the newline.
[[nodiscard]] std::string line_of(const bench_case& of, const bench_report& in);
/// Bytes per second into and out of slots for states that move together; medians.
struct state_rates {
  double copy_bytes_per_s, in_bytes_per_s, out_bytes_per_s;
  double share_in, share_out;  ///< relative to the speed of the copy in the same sample
  double alone_in_s, alone_out_s;
};
[[nodiscard]] state_rates rates_of(const state_moves_bench& of);
[[nodiscard]] std::string table_of(const bench_report& report);
[[nodiscard]] std::string json_of(const bench_report& report);

}  // namespace skein::cli
