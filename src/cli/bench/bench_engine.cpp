#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "app/data_files.hpp"
#include "app/device_choice.hpp"
#include "app/open_model.hpp"
#include "app/small_file.hpp"
#include "cli/bench/bench_report.hpp"
#include "cli/bench/bench_states.hpp"
#include "cli/bench/random_model.hpp"
#include "cli/bench/tick_maker.hpp"
#include "cli/commands.hpp"

namespace skein::cli {
namespace {

constexpr std::size_t samples_min = 5;
constexpr std::uint32_t warm_up_ticks = 3;
constexpr double gpu_sample_s = 0.25;  // GPU ticks are too short to be timed individually
constexpr std::uint32_t sample_ticks_max = 2000;

const std::vector<std::uint32_t> cpu_batches = {1, 2, 4, 8, 16, 32}, gpu_batches = {1, 8, 32, 128, 320, 960};
const std::vector<prefill_shape> cpu_prefill = {{1, 512}};
const std::vector<prefill_shape> gpu_prefill = {{1, 512}, {1, 1024}, {1, 4096}, {32, 128}};

/// A file that is removed at the end of the scope.
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

/// Repeats a tick for `wanted_s` seconds, after uncounted warm-up ticks.
template <typename Next>
result<void> repeat(tick_maker& ticks, machine_scale& machine, double wanted_s, const Next& next, bench_case& into) {
  auto warm = ticks.time(warm_up_ticks, next);
  if (warm) warm = ticks.time(warm_up_ticks, next);
  if (!warm) return warm.error();
  const double fitting = wanted_s > 0 ? gpu_sample_s * warm_up_ticks / *warm : 1;
  into.ticks = machine.is_gpu() ? std::clamp(static_cast<std::uint32_t>(fitting), 1u, sample_ticks_max) : 1;
  for (double spent = 0; spent < wanted_s || into.samples.size() < samples_min;) {
    const device_limits limits = machine.now();
    const auto seconds = ticks.time(into.ticks, next);
    if (!seconds) return seconds.error();
    spent += *seconds;
    into.samples.push_back({*seconds / into.ticks, limits});
  }
  return {};
}

/// What is measured, and on which device.
struct bench_subject {
  opened_model model;
  device_choice device;
  double open_s;
};

/// Random weights of a released size: written, or read from a file of an earlier run.
result<opened_model> random_model_of(const bench_engine_command& what, const released_model& size, double& open_s) {
  const temporary_file passing;  // the opened checkpoint keeps its mapping after the file is removed
  const auto& path = what.random_file.empty() ? passing.path() : what.random_file;
  if (what.random_file.empty() || !is_file(path)) {
    const auto begin = std::chrono::steady_clock::now();
    const dtype type = what.model.dtype == to_string(dtype::f16) ? dtype::f16 : dtype::bf16;
    const auto written = write_random_model(path, {size.version, size.dims, type, 1, what.sparse});
    if (!written) return written.error();
    std::fprintf(stderr, "wrote random weights, %s, in %.1f s\n", what.random_size.c_str(), seconds_since(begin));
  }
  const auto begin = std::chrono::steady_clock::now();
  auto model = open_model(path);
  open_s = seconds_since(begin);
  if (model && model->info.version != size.version)
    return error{error_kind::invalid_argument,
                 "random-file: " + path.string() + " is a model of RWKV-" +
                     std::string(to_string(model->info.version)) + ", not of RWKV-" +
                     std::string(to_string(size.version)) + " as " + what.random_size,
                 "random-file"};
  return model;
}

/// The device is chosen before the weights are written: its errors need not wait for a large file.
result<bench_subject> random_subject(const bench_engine_command& what) {
  const auto size = find_released(what.random_size);
  if (!size)
    return error{error_kind::invalid_argument,
                 "random: " + what.random_size + " is not a released size; accepted: " + released_sizes(), "random"};
  const auto device = choose_device(what.model.device);
  if (!device) return device.error();
  double open_s = 0;
  auto model = random_model_of(what, *size, open_s);
  if (!model) return model.error();
  return bench_subject{std::move(*model), *device, open_s};
}

result<bench_subject> subject_of(const bench_engine_command& what) {
  if (!what.random_size.empty()) return random_subject(what);
  if (what.model.path.empty())
    return error{error_kind::invalid_argument, "model: missing; bench engine needs --model PATH or --random SIZE",
                 "model"};
  const auto begin = std::chrono::steady_clock::now();
  auto model = open_model(what.model.path, what.model.adapters);
  if (!model) return model.error();
  const double open_s = seconds_since(begin);
  const auto device = choose_device(what.model.device);
  if (!device) return device.error();
  return bench_subject{std::move(*model), *device, open_s};
}

/// Runs every case, adds it to the report and prints a line for it on stderr.
result<void> measure(const std::vector<std::uint32_t>& batches, const std::vector<prefill_shape>& prefill,
                     engine::engine& on, machine_scale& machine, const bench_engine_command& what, bench_report& into) {
  tick_maker ticks(on, what.temperature);
  const auto add = [&](bench_case each, const auto& next) -> result<void> {
    if (const auto begun = ticks.begin(each.sequences); !begun) return begun;
    if (const auto done = repeat(ticks, machine, what.seconds, next, each); !done) return done;
    std::fprintf(stderr, "%s\n", line_of(each, into).c_str());
    into.cases.push_back(std::move(each));
    return {};
  };
  for (const auto batch : batches) {
    const auto plan = ticks.decoding(batch);
    const auto done = add({"decode", batch, 1, 1, {}}, [&]() -> const engine::tick_plan& { return plan; });
    if (!done) return done;
  }
  for (const auto shape : prefill) {
    const auto done = add({"prefill", shape.sequences, shape.tokens, 1, {}},
                          [&] { return ticks.feeding(0, shape.sequences, shape.tokens); });
    if (!done) return done;
  }
  return {};
}

}  // namespace

result<void> bench_engine(const bench_engine_command& what) {
  const auto subject = subject_of(what);
  if (!subject) return subject.error();
  const opened_model& model = subject->model;
  auto machine = machine_scale::of(subject->device, what.model.threads);
  if (!machine) return machine.error();
  const auto& batches = !what.batches.empty() ? what.batches : machine->is_gpu() ? gpu_batches : cpu_batches;
  const auto& prefill = !what.prefill.empty() ? what.prefill : machine->is_gpu() ? gpu_prefill : cpu_prefill;

  engine_wish wish = wish_of(what.model);
  wish.slots = std::ranges::max(batches);
  wish.max_tick_tokens = std::max(tick_maker::first_tokens, wish.slots);
  for (const auto shape : prefill) {
    wish.slots = std::max(wish.slots, shape.sequences);
    wish.max_tick_tokens = std::max(wish.max_tick_tokens, shape.sequences * shape.tokens);
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto engine = open_engine(model, wish);
  if (!engine) return engine.error();
  const engine::engine_info& built = (*engine)->info();
  // A CPU reads the embedding table in the file; a GPU has a copy in 16 bits.
  const std::size_t table_bytes =
      machine->threads() == 0 ? std::size_t{2} * model.info.vocab * model.info.embd : std::size_t{0};
  bench_report report{
      what.random_size.empty() ? model.file.path().string() : "random weights of size " + what.random_size,
      built,
      what.model.state_dtype,
      what.model.invariance,
      machine->flop_source(),
      machine->threads(),
      subject->open_s,
      seconds_since(begin),
      tick_cost(model.info, built.weight_type, built.memory.weight_bytes - table_bytes, what.model.state_dtype),
      {}};
  if (const auto done = measure(batches, prefill, **engine, *machine, what, report); !done) return done;
  auto states = bench_states(**engine);
  if (!states) return states.error();
  report.states = std::move(*states);
  std::fputs(table_of(report).c_str(), stdout);
  return what.json.empty() ? result<void>() : write_small_file(what.json, json_of(report));
}

}  // namespace skein::cli
