#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cli/bench_states.hpp"
#include "cli/machine_scale.hpp"
#include "engine/engine.hpp"
#include "model/model_info.hpp"

/// What `bench engine` measured, what that cost the machine, and how it is told.
namespace skein::cli {

/// Ticks in a row, and what the machine could do right before them.
struct tick_sample {
  double tick_s;  ///< of one, on average
  device_limits limits;
};

/// One kind of tick, repeated.
struct bench_case {
  const char* kind;         ///< "decode" or "prefill"
  std::uint32_t sequences;  ///< that have a row in the tick; a token is drawn for each
  std::uint32_t tokens;     ///< fed to each
  std::uint32_t ticks;      ///< in each sample
  std::vector<tick_sample> samples;
};

/// What a tick costs at least: matrices are read once and multiplied once a token, states are read and written once a
/// sequence, of the embedding table only the rows of the tokens are read. Activations, norms and vectors are left out.
class tick_cost {
 public:
  tick_cost(const model::model_info& info, const std::string& weight_type, const std::string& state_type);

  [[nodiscard]] double weight_bytes(const bench_case& of) const;
  [[nodiscard]] double state_bytes(const bench_case& of) const;
  [[nodiscard]] double flop(const bench_case& of) const;  ///< of the matrix products, two a multiply-add
  /// The time that a device with these limits would need: the products hide behind the weights or the other way round,
  /// the states come on top. 0: not known.
  [[nodiscard]] double least_s(const bench_case& of, const device_limits& limits) const;

 private:
  double layers_, table_, element_bytes_, embd_, bytes_of_state_;  // layers_ and table_ in elements
};

struct bench_report {
  std::string model;
  engine::engine_info built;
  std::string state_type, invariance, flop_source;
  std::uint32_t threads;  ///< 0: on a GPU
  double load_s;          ///< from the mapped file to an engine that can run
  tick_cost cost;
  std::vector<bench_case> cases;
  state_moves_bench states{};
};

/// Medians over the samples of a case. Shares are medians of each sample's own share of the limit measured beside it,
/// so that they hold while the machine's speed drifts. What is not known is 0.
struct bench_rates {
  double tick_s, fastest_s, slowest_s;
  double tokens_per_s, bytes_per_s, flop_per_s;
  device_limits limits;
  double share_of_read, share_of_flop, share_of_least;  ///< the last: of the speed that least_s would be
};

[[nodiscard]] bench_rates rates_of(const bench_case& of, const tick_cost& cost);
/// One line, without its end: for what has just been measured.
[[nodiscard]] std::string line_of(const bench_case& of, const bench_report& in);
/// Bytes per second, in and out of slots, of states that move together; medians.
struct state_rates {
  double copy_bytes_per_s, in_bytes_per_s, out_bytes_per_s;
  double share_in, share_out;  ///< of the copy's speed, each sample of its own
  double alone_in_s, alone_out_s;
};
[[nodiscard]] state_rates rates_of(const state_moves_bench& of);
[[nodiscard]] std::string table_of(const bench_report& report);
[[nodiscard]] std::string json_of(const bench_report& report);

}  // namespace skein::cli
