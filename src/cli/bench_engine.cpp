#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/open_model.hpp"
#include "cli/random_model.hpp"
#include "kernels/cpu/machine_limits.hpp"
#include "protocol/json_writer.hpp"

namespace skein::cli {
namespace {

constexpr std::uint32_t batches[] = {1, 2, 4, 8, 16, 32};
constexpr std::uint32_t prefill_tokens = 512;
constexpr double seconds_per_case = 2.0;
constexpr std::size_t ticks_min = 5;
constexpr std::size_t probe_bytes = std::size_t{512} << 20;  // takes about as long as a decode tick

/// One tick, and what the machine could do right before it.
struct sample {
  double tick_s;
  double read_bytes_per_s, fma_flop_per_s;
};

/// One kind of tick, repeated.
struct measured {
  const char* kind;
  std::uint32_t batch;
  std::uint32_t tokens;  ///< fed by one tick
  std::uint32_t drawn;   ///< of these, how many have their logits computed
  std::vector<sample> samples;
};

/// What ticks cost the machine: matrices are read once a tick and multiplied once a token.
struct tick_cost {
  double weight_gb;         ///< read by a tick
  double gflop_per_token;   ///< of the layers
  double gflop_per_logits;  ///< of the head, for tokens that are followed by a draw
};

/// A file that is gone at the end of the scope.
class temporary_file {
 public:
  temporary_file()
      : path_(std::filesystem::temp_directory_path() / ("skein-bench-" + std::to_string(getpid()) + ".safetensors")) {}
  ~temporary_file() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  temporary_file(const temporary_file&) = delete;  // one owner removes it
  temporary_file& operator=(const temporary_file&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

result<double> timed_tick(engine::engine& on, const engine::tick_plan& plan) {
  if (const auto tick = on.submit(plan); !tick) return tick.error();
  const auto outcome = on.collect();
  if (!outcome) return outcome.error();
  return (*outcome)->seconds;
}

/// Repeats a tick for seconds_per_case, the machine's limits measured in between; the first run warms up and does not
/// count.
result<measured> repeat(engine::engine& on, kernels::cpu::machine_probe& machine, const engine::tick_plan& plan,
                        measured what) {
  double spent = 0;
  for (bool warm = false; spent < seconds_per_case || what.samples.size() < ticks_min; warm = true) {
    sample s{};
    s.read_bytes_per_s = machine.read_bytes_per_s(probe_bytes);
    s.fma_flop_per_s = machine.fma_flop_per_s();
    const auto seconds = timed_tick(on, plan);
    if (!seconds) return seconds.error();
    s.tick_s = *seconds;
    spent += *seconds;
    if (warm) what.samples.push_back(s);
  }
  return what;
}

sampling::sampling_params endless_greedy() {
  sampling::sampling_params params;
  params.temperature = 0;
  params.max_tokens = ~0u;
  return params;
}

result<measured> decode(engine::engine& on, kernels::cpu::machine_probe& machine, std::uint32_t batch) {
  engine::tick_plan first, next;
  for (slot_id slot = 0; slot < batch; ++slot) {
    on.start(slot, endless_greedy());
    engine::row row;
    row.slot = slot;
    row.sample = true;
    next.rows.push_back(row);
    row.kind = engine::row_kind::prefill;
    row.first_token = slot;
    row.tokens = 1;
    first.rows.push_back(row);
    first.tokens.push_back(static_cast<token_id>(slot + 1));
  }
  if (const auto begun = timed_tick(on, first); !begun) return begun.error();
  return repeat(on, machine, next, {"decode", batch, batch, batch, {}});
}

result<measured> prefill(engine::engine& on, kernels::cpu::machine_probe& machine) {
  on.start(0, endless_greedy());
  engine::tick_plan plan;
  engine::row row;
  row.kind = engine::row_kind::prefill;
  row.tokens = prefill_tokens;
  row.sample = true;
  plan.rows.push_back(row);
  for (std::uint32_t i = 0; i < prefill_tokens; ++i)
    plan.tokens.push_back(static_cast<token_id>(i * 37 % on.info().vocab));
  return repeat(on, machine, plan, {"prefill", 1, prefill_tokens, 1, {}});
}

/// The embedding table is looked up, not read through.
tick_cost cost_of(const model::model_info& info, const engine::engine_info& built) {
  const double table = static_cast<double>(info.vocab) * static_cast<double>(info.embd);
  const double layers = static_cast<double>(info.parameters) - 2 * table;
  const double element_bytes = built.weight_type == to_string(dtype::f32) ? 4 : 2;
  return {(layers + table) * element_bytes * 1e-9, 2 * layers * 1e-9, 2 * table * 1e-9};
}

struct report {
  std::string model;
  engine::engine_info built;
  std::uint32_t threads;
  double load_s;  ///< from the mapped file to an engine that can run
  tick_cost cost;
  std::vector<measured> cases;
};

/// Medians over the samples of a case. Shares are medians of each tick's own share of the limit measured beside it, so
/// that they hold while the machine's speed drifts.
struct rates {
  double tick_s, fastest_s, slowest_s;
  double tokens_per_s, gb_per_s, gflop_per_s;
  double read_gb_per_s, fma_gflop_per_s;  ///< the machine's limits
  double share_of_read, share_of_fma;
};

template <typename Figure>
double median(const measured& m, const Figure& figure) {
  std::vector<double> values;
  for (const auto& s : m.samples) values.push_back(figure(s));
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

rates rates_of(const measured& m, const report& r) {
  const double gb = r.cost.weight_gb;
  const double gflop = r.cost.gflop_per_token * m.tokens + r.cost.gflop_per_logits * m.drawn;
  const auto by_tick = [](const sample& a, const sample& b) { return a.tick_s < b.tick_s; };
  rates to{};
  to.tick_s = median(m, [](const sample& s) { return s.tick_s; });
  to.fastest_s = std::ranges::min(m.samples, by_tick).tick_s;
  to.slowest_s = std::ranges::max(m.samples, by_tick).tick_s;
  to.tokens_per_s = m.tokens / to.tick_s;
  to.gb_per_s = gb / to.tick_s;
  to.gflop_per_s = gflop / to.tick_s;
  to.read_gb_per_s = median(m, [](const sample& s) { return s.read_bytes_per_s * 1e-9; });
  to.fma_gflop_per_s = median(m, [](const sample& s) { return s.fma_flop_per_s * 1e-9; });
  to.share_of_read = median(m, [&](const sample& s) { return gb / s.tick_s / (s.read_bytes_per_s * 1e-9); });
  to.share_of_fma = median(m, [&](const sample& s) { return gflop / s.tick_s / (s.fma_flop_per_s * 1e-9); });
  return to;
}

void print_table(const report& r) {
  std::printf("model    %s\nengine   %s, weights %s, %.2f GB of them read a tick, %u threads, loaded in %.2f s\n\n",
              r.model.c_str(), r.built.device.c_str(), r.built.weight_type.c_str(), r.cost.weight_gb, r.threads,
              r.load_s);
  std::printf("Medians; \"of read\" and \"of FMA\" are shares of the machine's limits measured beside each tick.\n\n");
  std::printf("        batch  tokens/s     tick  (fastest  slowest)   GB/s  limit  of read  GFLOP/s  limit  of FMA\n");
  for (const auto& m : r.cases) {
    const rates x = rates_of(m, r);
    std::printf("%-7s %5u %9.1f %5.1f ms %6.1f ms %6.1f ms %7.1f %6.1f %6.0f %% %8.1f %6.0f %5.0f %%\n", m.kind,
                m.batch, x.tokens_per_s, x.tick_s * 1e3, x.fastest_s * 1e3, x.slowest_s * 1e3, x.gb_per_s,
                x.read_gb_per_s, 100 * x.share_of_read, x.gflop_per_s, x.fma_gflop_per_s, 100 * x.share_of_fma);
  }
}

void print_json(const report& r) {
  std::string text;
  protocol::json_writer json(text);
  json.begin_object().key("model").value(r.model).key("device").value(r.built.device);
  json.key("weight_type").value(r.built.weight_type).key("threads").value(r.threads).key("load_s").value(r.load_s);
  json.key("weight_gb_per_tick").value(r.cost.weight_gb).key("gflop_per_token").value(r.cost.gflop_per_token);
  json.key("gflop_per_logits").value(r.cost.gflop_per_logits).key("cases").begin_array();
  for (const auto& m : r.cases) {
    const rates x = rates_of(m, r);
    json.begin_object().key("kind").value(m.kind).key("batch").value(m.batch).key("tokens").value(m.tokens);
    json.key("ticks").value(m.samples.size()).key("median_s").value(x.tick_s);
    json.key("fastest_s").value(x.fastest_s).key("slowest_s").value(x.slowest_s);
    json.key("tokens_per_s").value(x.tokens_per_s);
    json.key("gb_per_s").value(x.gb_per_s).key("read_limit_gb_per_s").value(x.read_gb_per_s);
    json.key("share_of_read").value(x.share_of_read);
    json.key("gflop_per_s").value(x.gflop_per_s).key("fma_limit_gflop_per_s").value(x.fma_gflop_per_s);
    json.key("share_of_fma").value(x.share_of_fma).end_object();
  }
  json.end_array().end_object();
  std::printf("%s\n", text.c_str());
}

/// The model to measure: the one given, or random weights of a released size.
result<opened_model> model_of(const bench_engine_command& what) {
  if (what.random_size.empty() && what.model.path.empty())
    return error{error_kind::invalid_argument, "bench engine needs a model: --model PATH or --random SIZE", "model"};
  if (what.random_size.empty()) return open_model(what.model.path);
  const auto dims = released_dims(what.random_size);
  if (!dims) return error{error_kind::invalid_argument, "no released size " + what.random_size, "random"};
  const temporary_file file;  // the opened checkpoint keeps its mapping when the name is gone
  std::fprintf(stderr, "writing random weights, %s\n", what.random_size.c_str());
  if (const auto written = write_random_model(file.path(), *dims, 1); !written) return written.error();
  return open_model(file.path());
}

}  // namespace

result<void> bench_engine(const bench_engine_command& what) {
  auto model = model_of(what);
  if (!model) return model.error();
  engine_wish wish{what.model.device, what.model.dtype, what.model.threads};
  wish.slots = std::ranges::max(batches);
  wish.max_tick_tokens = prefill_tokens;
  report r;
  const auto begin = std::chrono::steady_clock::now();
  const auto engine = open_engine(*model, wish);
  if (!engine) return engine.error();
  r.load_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  r.model = what.random_size.empty() ? model->file.path().string() : "random weights of size " + what.random_size;
  r.built = (*engine)->info();
  r.cost = cost_of(model->info, r.built);
  kernels::cpu::machine_probe machine(what.model.threads);
  r.threads = machine.threads();
  for (const auto batch : batches) {
    auto m = decode(**engine, machine, batch);
    if (!m) return m.error();
    r.cases.push_back(std::move(*m));
  }
  auto m = prefill(**engine, machine);
  if (!m) return m.error();
  r.cases.push_back(std::move(*m));
  what.json ? print_json(r) : print_table(r);
  return {};
}

}  // namespace skein::cli
