// GEMMs with 1024 inputs and 4096 outputs by number of rows. As in a model, the weights are cycled through more memory
// than the last-level cache. GB/s counts each weight once, GFLOP/s two operations per weight and row; compare with the
// "limits" line of the same run.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/cpu/machine_limits.hpp"
#include "kernels/cpu/matmul.hpp"

namespace skein::kernels::cpu {

namespace {

constexpr std::int64_t inputs = 1024, outputs = 4096;
constexpr std::size_t cycle_bytes = std::size_t{256} << 20;

thread_pool& pool() {
  static thread_pool all(0);
  return all;
}

void limits(benchmark::State& state) {
  machine_probe probe(0);
  double read = 0, fma = 0;
  for (auto _ : state) {
    read = std::max(read, probe.read_bytes_per_s(cycle_bytes));
    fma = std::max(fma, probe.fma_flop_per_s());
  }
  state.counters["GB/s"] = read * 1e-9;
  state.counters["GFLOP/s"] = fma * 1e-9;
}

void gemms(benchmark::State& state, const char* name) {
  const auto rows = static_cast<std::size_t>(state.range(0));
  const std::vector<float> noise(static_cast<std::size_t>(inputs * outputs), 0.01f);
  const tensor_view view{reinterpret_cast<const std::byte*>(noise.data()), dtype::f32, {outputs, inputs}, {inputs, 1}};
  const weight_format format = *parse_weight_format(name);
  std::vector<packed_matrix> matrices;
  for (std::size_t bytes = 0; bytes < cycle_bytes; bytes += matrices.back().bytes())
    matrices.emplace_back(view, false, format, pool());

  constexpr std::size_t in_stride = inputs + 16;
  const aligned_buffer<float> in(rows * in_stride), out(rows * outputs);
  std::ranges::fill(in.all(), 1.0f);
  matmul multiply(pool());
  std::size_t turn = 0;
  for (auto _ : state) {
    const gemm one{&matrices[turn++ % matrices.size()], in.data(), in_stride, out.data(), outputs};
    multiply(rows, {&one, 1});
  }
  using benchmark::Counter;
  const auto per_second = [](double amount) { return Counter(amount * 1e-9, Counter::kIsIterationInvariantRate); };
  state.counters["GB/s"] = per_second(static_cast<double>(matrices.front().bytes()));
  state.counters["GFLOP/s"] = per_second(2.0 * inputs * outputs * static_cast<double>(rows));
}

void row_counts(benchmark::internal::Benchmark* bench) {
  bench->UseRealTime()->Unit(benchmark::kMicrosecond);
  for (const int rows : {1, 2, 4, 8, 12, 16, 32, 64, 256, 512}) bench->Arg(rows);
}

BENCHMARK(limits)->Iterations(1)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(gemms, bf16, "bf16")->Apply(row_counts);
BENCHMARK_CAPTURE(gemms, f16, "fp16")->Apply(row_counts);
BENCHMARK_CAPTURE(gemms, f32, "fp32")->Apply(row_counts);
BENCHMARK_CAPTURE(gemms, int8, "int8")->Apply(row_counts);
BENCHMARK_CAPTURE(gemms, fp8, "fp8")->Apply(row_counts);
BENCHMARK_CAPTURE(gemms, int4, "int4")->Apply(row_counts);
BENCHMARK_CAPTURE(gemms, nf4, "nf4")->Apply(row_counts);

}  // namespace

}  // namespace skein::kernels::cpu
