// The tensor-core GEMM on a card: first checks its results against sums in fp64, and that no bit depends on the number
// of rows or on the distribution of split-K segments; then times the GEMMs of a layer, with weights streamed from HBM.
// Of the kernels that $SKEIN_DEVICE_PROFILE selects (see types/device_profile.hpp), if it is set.
// gpu_matmul_bench [check [OUTPUTS INPUTS SEGMENTS|turns [REPEATS]]|speed [FORMAT] [LEAST MOST]|once [FORMAT] ROWS|
//                   shapes|power ROWS ..]
// speed, once: FORMAT is that of the large matrices, such as int4 or int8-32; without it they have 16 bits.
// power: sustained speed and power of the 7.2B key GEMM over seconds, for our kernel and the library's.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/kernels/layer_gemms.cuh"
#include "kernels/gpu/gemm/hopper/matmul_hopper.hpp"
#include "kernels/gpu/gemm/matmul_library.hpp"
#include "kernels/gpu/gemm/mma/matmul_mma.hpp"
#include "kernels/gpu/gemm/tuned_matmul.hpp"
#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/runtime/stream.hpp"

using namespace skein::kernels::gpu;
using namespace skein::kernels::gpu::bench;
using skein::result;
using function = activation_function;

namespace {

template <typename Element>
__global__ void multiply_in_double(const Element* matrix, const Element* in, double* out, std::uint32_t outputs,
                                   std::uint32_t depth, std::uint32_t in_stride) {
  const std::uint32_t o = blockIdx.x * blockDim.x + threadIdx.x, t = blockIdx.y;
  if (o >= outputs) return;
  double sum = 0;
  for (std::uint32_t i = 0; i < depth; ++i)
    sum += double{to_float(matrix[std::size_t{o} * depth + i])} * to_float(in[std::size_t{t} * in_stride + i]);
  out[std::size_t{t} * outputs + o] = sum;
}

int failures = 0;

void expect(bool is_so, const std::string& what) {
  if (is_so) return;
  ++failures;
  std::printf("WRONG: %s\n", what.c_str());
}

template <typename Element>
constexpr element type_of = std::is_same_v<Element, half> ? element::f16 : element::bf16;

template <typename Element>
device_matrix matrix_of(const device_buffer<Element>& memory, std::uint32_t outputs, std::uint32_t inputs,
                        std::size_t at = 0) {
  return {memory.data() + at, outputs, inputs, row_format(type_of<Element>)};
}
constexpr epilogue store_f32{.to = destination::f32}, add_f32{.to = destination::add_f32};

template <typename Element>
void check_shape(stream& in, std::uint32_t outputs, std::uint32_t inputs, std::uint32_t segments) {
  constexpr std::uint32_t rows_max = 1024;
  const std::uint32_t depth = padded(inputs);
  device_buffer<Element> matrix(std::size_t{padded(outputs)} * depth), x(std::size_t{rows_max} * depth);
  device_buffer<float> sums(std::size_t{rows_max} * outputs), parts(std::size_t{segments} * split_rows_max * outputs);
  device_buffer<double> truth(std::size_t{rows_max} * outputs);
  fill<<<512, 256, 0, in>>>(matrix.data(), padded(outputs), depth, inputs, outputs + inputs, 0.05f);
  fill<<<512, 256, 0, in>>>(x.data(), rows_max, depth, inputs, 77 + inputs, 1.0f);
  multiply_in_double<<<dim3((outputs + 255) / 256, rows_max), 256, 0, in>>>(matrix.data(), x.data(), truth.data(),
                                                                            outputs, depth, depth);
  const auto right = fetch<double>(truth.data(), truth.size(), in);
  std::vector<float> all;  // of 1024 rows: every other number of rows must give the same bits
  for (const std::uint32_t rows :
       {1024u, 1u, 3u, 8u, 16u, 17u, 32u, 50u, 64u, 100u, 128u, 129u, 160u, 192u, 240u, 300u, 320u, 700u, 960u}) {
    const std::string name = std::to_string(outputs) + " x " + std::to_string(inputs) + " in " +
                             std::to_string(segments) + " split-K segments, " + std::to_string(rows) + " rows";
    gemm p{matrix_of(matrix, outputs, inputs), x.data(), sums.data(), depth, outputs, store_f32, segments, 0};
    std::vector<float> got;
    if (segments > 1 && ours().splits({&p, 1}, rows)) {
      p.how.to = destination::parts, p.out = parts.data(), p.part_stride = std::size_t{rows} * outputs;
      require(ours().run(in, type_of<Element>, {&p, 1}, nullptr, rows));
      const auto each = fetch<float>(parts.data(), std::size_t{segments} * rows * outputs, in);
      got.resize(std::size_t{rows} * outputs);
      for (std::size_t i = 0; i < got.size(); ++i) {
        got[i] = each[i];
        for (std::uint32_t s = 1; s < segments; ++s) got[i] += each[s * got.size() + i];
      }
    } else {
      require(fill_with_zeros(sums.data(), sums.bytes(), in));
      require(ours().run(in, type_of<Element>, {&p, 1}, nullptr, rows));
      got = fetch<float>(sums.data(), std::size_t{rows} * outputs, in);
    }
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double off = std::abs(got[i] - right[i]);
      worst = off <= worst ? worst : std::isnan(off) ? 1e9 : off;
    }
    expect(worst < 2e-4 * std::sqrt(inputs / 64.0), name + ": largest error " + std::to_string(worst));
    if (all.empty()) all = got;
    expect(std::memcmp(got.data(), all.data(), got.size() * sizeof(float)) == 0,
           name + ": bits differ from those of 1024 rows");
  }
}

void check_epilogues(stream& in) {
  constexpr std::uint32_t outputs = 96, inputs = 704, stride = 128;
  device_buffer<half> matrix(std::size_t{128} * inputs), x(std::size_t{256} * inputs), out(std::size_t{256} * stride);
  device_buffer<float> sums(std::size_t{256} * stride);
  fill<<<64, 256, 0, in>>>(matrix.data(), 96, inputs, inputs, 5, 0.5f);
  fill<<<64, 256, 0, in>>>(x.data(), 256, inputs, inputs, 6, 1.0f);
  for (const std::uint32_t rows : {5u, 200u}) {
    gemm plain{matrix_of(matrix, outputs, inputs), x.data(), sums.data(), inputs, stride, store_f32};
    require(ours().run(in, element::f16, {&plain, 1}, nullptr, rows));
    const auto sum = fetch<float>(sums.data(), std::size_t{rows} * stride, in);
    for (const auto how : {function::none, function::sigmoid, function::tanh, function::relu_squared}) {
      require(fill_with_zeros(out.data(), out.bytes(), in));
      gemm p = plain;
      p.out = out.data(), p.how = {how};
      require(ours().run(in, element::f16, {&p, 1}, nullptr, rows));
      const auto got = fetch<half>(out.data(), std::size_t{rows} * stride, in);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double s = i % stride < outputs ? sum[i] : 0;
        const double want = i % stride >= outputs      ? 0
                            : how == function::none    ? s
                            : how == function::sigmoid ? 1 / (1 + std::exp(-s))
                            : how == function::tanh    ? std::tanh(s)
                                                       : std::max(s, 0.0) * std::max(s, 0.0);
        if (!(std::abs(__half2float(got[i]) - want) <= 1e-3 * std::abs(want) + 1e-4))
          return expect(false, "epilogue " + std::to_string(static_cast<int>(how)) + " at " + std::to_string(i));
      }
    }
  }
}

/// Checks that the first rows of x become x plus each of their partial sums.
void check_parts_added(stream& in, gemm p, const std::vector<float>& before, const device_buffer<float>& x) {
  const std::uint32_t rows = 1024, first = 128;
  const std::size_t part = std::size_t{first} * p.matrix.outputs;
  p.out = x.data(), p.how = add_f32;
  require(ours().run(in, element::f16, {&p, 1}, nullptr, rows));
  const device_buffer<float> parts(p.segments * part);
  p.out = parts.data(), p.how.to = destination::parts, p.part_stride = part;
  require(ours().run(in, element::f16, {&p, 1}, nullptr, first));
  const auto each = fetch<float>(parts.data(), parts.size(), in), after = fetch<float>(x.data(), x.size(), in);
  for (std::size_t i = 0; i < part; ++i) {
    float sum = before[i];
    for (std::uint32_t s = 0; s < p.segments; ++s) sum += each[s * part + i];
    if (after[i] != sum) return expect(false, "x + each partial sum at " + std::to_string(i));
  }
}

/// Checks the epilogue x + sum, one addition in fp32, for tiles of every width.
void check_additions(stream& in, std::uint32_t outputs, std::uint32_t inputs) {
  constexpr std::uint32_t rows_max = 1024;
  device_buffer<half> matrix(std::size_t{outputs} * inputs), in_rows(std::size_t{rows_max} * inputs);
  device_buffer<float> sums(std::size_t{rows_max} * outputs), x(std::size_t{rows_max} * outputs);
  fill<<<512, 256, 0, in>>>(matrix.data(), outputs, inputs, inputs, 8, 0.1f);
  fill<<<512, 256, 0, in>>>(in_rows.data(), rows_max, inputs, inputs, 9, 1.0f);
  for (const std::uint32_t segments : {1u, 4u})
    for (const std::uint32_t rows : {130u, 600u, 700u, 960u, 1000u, 1024u}) {
      gemm p{matrix_of(matrix, outputs, inputs), in_rows.data(), sums.data(), inputs, outputs, store_f32, segments};
      if (segments > 1 && ours().splits({&p, 1}, rows)) continue;
      fill<<<512, 256, 0, in>>>(x.data(), rows_max, outputs, outputs, 10, 3.0f);
      const auto before = fetch<float>(x.data(), x.size(), in);
      if (segments > 1 && ours().adds_each) {
        check_parts_added(in, p, before, x);
        continue;
      }
      require(ours().run(in, element::f16, {&p, 1}, nullptr, rows));
      p.out = x.data(), p.how = add_f32;
      require(ours().run(in, element::f16, {&p, 1}, nullptr, rows));
      const auto sum = fetch<float>(sums.data(), sums.size(), in), after = fetch<float>(x.data(), x.size(), in);
      for (std::size_t i = 0; i < after.size(); ++i)
        if (after[i] != (i < std::size_t{rows} * outputs ? before[i] + sum[i] : before[i])) {
          expect(false, "x + sum for " + std::to_string(rows) + " rows at " + std::to_string(i));
          break;
        }
    }
}

/// The shapes chosen above to check pairs of blocks are still computed by pairs.
void check_who_pairs() {
  const std::uint32_t sm_count = *count_sms();
  for (const auto [outputs, inputs, rows] : {std::array{136u, 3328u, 520u}, std::array{2048u, 8192u, 960u}}) {
    gemm p{};
    p.matrix.outputs = outputs, p.matrix.inputs = inputs, p.how = store_f32, p.segments = 4;
    expect(hopper_pairs({&p, 1}, rows, sm_count), "pairs for " + std::to_string(outputs) + " outputs");
  }
}

constexpr std::uint32_t turn_repeats = 60;

/// GEMMs that read the outputs of others in their launch have the same bits as in separate launches, in many
/// back-to-back launches. As in the model, the second GEMM of a pair overwrites the input of the first, and a block
/// processes more stages than its ring buffer has.
template <typename Element>
void check_turns(stream& in, std::uint32_t repeats = turn_repeats) {
  constexpr std::uint32_t width = 4096, rows_max = 64;
  constexpr std::array<std::uint32_t, 4> ranks{96, 480, 64, 160};
  constexpr std::size_t pairs = ranks.size();
  std::vector<device_buffer<Element>> down, up, inner, mixed;
  device_buffer<Element> square(width * width), x(rows_max * width), projected(rows_max * width);
  device_buffer<std::uint32_t> done(2);
  fill<<<512, 256, 0, in>>>(square.data(), width, width, width, 20, 0.05f);
  fill<<<512, 256, 0, in>>>(x.data(), rows_max, width, width, 21, 1.0f);
  for (const std::uint32_t rank : ranks) {
    down.emplace_back(std::size_t{padded(rank)} * width), up.emplace_back(std::size_t{width} * padded(rank));
    inner.emplace_back(std::size_t{rows_max} * padded(rank)), mixed.emplace_back(std::size_t{rows_max} * width);
    fill<<<512, 256, 0, in>>>(down.back().data(), rank, width, width, 22 + rank, 0.05f);
    fill<<<512, 256, 0, in>>>(up.back().data(), width, padded(rank), rank, 23 + rank, 0.1f);
    require(fill_with_zeros(inner.back().data(), inner.back().bytes(), in));
  }
  require(fill_with_zeros(done.data(), done.bytes(), in));
  const epilogue as_gate{.to = std::is_same_v<Element, bf16> ? destination::f16 : destination::elements};
  std::vector<gemm> gemms;
  for (std::size_t i = 0; i < pairs; ++i)
    gemms.push_back({matrix_of(down[i], ranks[i], width), mixed[i].data(), inner[i].data(), width, padded(ranks[i]),
                     epilogue{i == 0 ? function::tanh : function::sigmoid}});
  gemms.push_back({matrix_of(square, width, width), x.data(), projected.data(), width, width});
  for (std::size_t i = 0; i < pairs; ++i)
    gemms.push_back(
        {matrix_of(up[i], width, ranks[i]), inner[i].data(), mixed[i].data(), padded(ranks[i]), width, as_gate});
  const auto multiply = [&](std::uint32_t rows, bool together) -> result<void> {
    for (std::size_t i = 0; i < gemms.size(); ++i) {
      gemm& p = gemms[i];
      p.when = !together ? turn::any : i < pairs ? turn::first : i > pairs ? turn::second : turn::any;
      p.done = p.when == turn::second ? done.data() : nullptr;
      p.pdl_early_launch = i == 0;
    }
    if (together) return ours().run(in, type_of<Element>, gemms, nullptr, rows);
    const std::span<const gemm> all(gemms);
    if (auto r = ours().run(in, type_of<Element>, all.first(pairs + 1), nullptr, rows); !r) return r;
    return ours().run(in, type_of<Element>, all.subspan(pairs + 1), nullptr, rows);
  };
  // The first GEMMs of the next launch read the outputs of the second ones, so one wrong bit persists.
  const auto outcome = [&](std::uint32_t rows, bool together) {
    for (std::size_t i = 0; i < pairs; ++i)
      fill<<<512, 256, 0, in>>>(mixed[i].data(), rows_max, width, width, 30 + i, 1.0f);
    auto recorded = graph::record(in, [&]() -> result<void> {
      for (std::uint32_t i = 0; i < repeats; ++i)
        if (auto r = multiply(rows, together); !r) return r;
      return {};
    });
    if (!recorded) return expect(false, recorded.error().message), std::vector<Element>();
    require(recorded->launch(in));
    std::vector<Element> all = fetch<Element>(projected.data(), projected.size(), in);
    for (const auto& buffer : mixed) {
      const auto more = fetch<Element>(buffer.data(), buffer.size(), in);
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  };
  for (const std::uint32_t rows : {1u, 3u, 8u, 16u, 32u, 50u}) {
    const auto apart = outcome(rows, false), together = outcome(rows, true);
    expect(apart.size() == together.size() &&
               std::memcmp(apart.data(), together.data(), apart.size() * sizeof(Element)) == 0,
           "dependent GEMMs, " + std::to_string(rows) + " rows: bits differ from those of separate launches");
    expect(fetch<std::uint32_t>(done.data(), 2, in) == std::vector<std::uint32_t>{0, 0}, "counters are not zero");
  }
}

/// Median time of `work(i)`, i = 0, 1, 2, .., over about 60 ms, in which the card settles at the clock that its power
/// limit allows.
template <typename Work>
double microseconds(stream& in, int repeats, const Work& work) {
  auto recorded = graph::record(in, [&]() -> result<void> {
    for (int i = 0; i < repeats; ++i)
      if (auto r = work(i); !r) return r;
    return {};
  });
  if (!recorded) return std::printf("WRONG: %s\n", recorded.error().message.c_str()), ++failures, 0;
  cudaEvent_t begin, end;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  std::vector<float> times;
  float sum = 0;
  while (times.size() < 5 || sum < 60) {
    cudaEventRecord(begin, in);
    require(recorded->launch(in));
    cudaEventRecord(end, in);
    require(in.synchronize());
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    times.push_back(ms), sum += ms;
  }
  cudaEventDestroy(begin), cudaEventDestroy(end);
  std::ranges::sort(times);
  return times[times.size() / 2] * 1000 / repeats;
}

void time_model(stream& in, const char* name, std::uint32_t width, std::array<std::uint32_t, 4> ranks,
                std::uint32_t least, std::uint32_t most) {
  layer_gemms layer(width, ranks, in);
  for (const std::uint32_t rows : {1u, 8u, 16u, 32u, 64u, 128u, 320u, 512u, 960u, 1024u, 4096u}) {
    if (rows < least || rows > most) continue;
    const int repeats = rows > 512 ? 12 : 48;
    std::printf("%s %4u rows", name, rows);
    double weights = 0, all_bytes = 0;
    const auto show = [&](const char* what, double elements, double bytes, double us) {
      const double operations = 2 * elements * rows;
      if (rows <= 128)
        std::printf(" | %s %.1f us %.2f TB/s", what, us, bytes / us / 1e6);
      else
        std::printf(" | %s %.1f us %.0f TF/s", what, us, operations / us / 1e6);
    };
    const auto launches = layer.launches();
    for (const auto& l : launches) {
      weights += l.weights, all_bytes += l.bytes;
      show(l.name, l.weights, l.bytes, microseconds(in, repeats, [&](int i) { return (layer.*l.queue)(i, rows); }));
    }
    show("all", weights, all_bytes, microseconds(in, repeats, [&](int i) -> result<void> {
           for (const auto& l : launches)
             if (auto r = (layer.*l.queue)(i, rows); !r) return r;
           return {};
         }));
    std::printf("\n");
    std::fflush(stdout);
  }
}

/// Each launch of a layer three times, one by one, for a profiler; then prints a hash of all results.
void queue_once(stream& in, std::uint32_t rows) {
  layer_gemms layer(4096, {96, 480, 128, 128}, in);
  for (int i = 0; i < 3; ++i)
    for (const auto& l : layer.launches()) require((layer.*l.queue)(i, rows)), require(in.synchronize());
  std::printf("results of %u rows: %016llx\n", rows, static_cast<unsigned long long>(layer.hash_of_results(rows)));
}

/// Clock (MHz) and power (W) from nvidia-smi, averaged over `looks` samples.
std::array<double, 2> clock_and_power(int looks) {
  std::array<double, 2> mean{};
  for (int i = 0; i < looks; ++i) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> told(
        popen("nvidia-smi --query-gpu=clocks.sm,power.draw.instant --format=csv,noheader,nounits -i 0", "r"), pclose);
    double clock = 0, power = 0;
    if (!told || std::fscanf(told.get(), "%lf, %lf", &clock, &power) != 2) return {};
    mean[0] += clock / looks, mean[1] += power / looks;
  }
  return mean;
}

/// Runs `work(i)` for some seconds and prints its speed, clock and power.
template <typename Work>
void sustain(stream& in, const char* name, double operations, const Work& work) {
  using clock = std::chrono::steady_clock;
  constexpr int repeats = 24;
  auto recorded = graph::record(in, [&]() -> result<void> {
    for (int i = 0; i < repeats; ++i)
      if (auto r = work(i); !r) return r;
    return {};
  });
  if (!recorded) return expect(false, recorded.error().message);
  std::atomic<bool> over = false;
  std::array<double, 2> seen{};
  std::jthread watcher([&] {
    std::this_thread::sleep_for(std::chrono::seconds(1));  // until clock and power have settled
    seen = clock_and_power(8);
    over = true;
  });
  std::uint64_t done = 0;
  clock::time_point begin;
  for (bool settled = false; !over;) {
    for (int i = 0; i < 8; ++i) require(recorded->launch(in));
    require(in.synchronize());
    if (settled)
      done += 8 * repeats;
    else
      settled = true, begin = clock::now();
  }
  const double seconds = std::chrono::duration<double>(clock::now() - begin).count();
  const double teraflops = operations * static_cast<double>(done) / seconds / 1e12;
  std::printf(" | %s %.0f TF/s, %.0f MHz, %.0f W, %.2f pJ/FLOP", name, teraflops, seen[0], seen[1],
              seen[1] / teraflops);
  std::fflush(stdout);
}

void show_power(stream& in, std::uint32_t rows) {
  measured.type = element::f16;
  const matrix_set key(16384, 4096, row_format(element::f16), in);
  const device_buffer<half> x(std::size_t{rows} * key.inputs), out(std::size_t{rows} * key.outputs);
  fill<<<1024, 256, 0, in>>>(x.data(), rows, key.inputs, key.inputs, 3, 1.0f);
  const auto of = [&](int n) { return gemm{key.copy(n), x.data(), out.data(), key.inputs, key.outputs}; };
  const double operations = 2.0 * key.outputs * key.inputs * rows;
  std::printf("7.2B key %u rows", rows);
  sustain(in, "ours", operations, [&](int i) {
    const gemm p = of(i);
    return ours().run(in, element::f16, {&p, 1}, nullptr, rows);
  });
  const auto library = open_matmul_library();
  if (!library) return static_cast<void>(std::printf(" | %s\n", library.error().message.c_str()));
  const device_buffer<std::byte> workspace(tuned_matmul::workspace_bytes);
  const auto prepared = (*library)->prepare(
      {element::f16, element::f16, false, key.outputs, key.inputs, key.inputs, key.outputs}, rows, workspace.bytes());
  if (!prepared) return static_cast<void>(std::printf(" | %s\n", prepared.error().message.c_str()));
  const auto by_library = [&](std::size_t algorithm) {
    return [&, algorithm](int i) { return (*prepared)->queue(in, algorithm, of(i), rows, workspace); };
  };
  std::size_t best = 0;
  double fastest = 1e9;
  for (std::size_t a = 0; a < std::min<std::size_t>((*prepared)->algorithms(), 8); ++a) {
    if (!by_library(a)(0) || !in.synchronize()) continue;
    if (const double us = microseconds(in, 24, by_library(a)); us < fastest) fastest = us, best = a;
  }
  sustain(in, (*library)->name().c_str(), operations, by_library(best));
  std::printf("\n");
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  stream in;
  const auto number = [&](int i) { return static_cast<std::uint32_t>(std::stoul(arguments[i])); };
  const bool has_bf16 = profile_of(0)->has_bf16();
  if (!has_bf16) measured.type = element::f16;
  int numbers = 2;  // where they begin
  if ((what == "speed" || what == "once") && count > 2)
    if (const auto format = skein::kernels::parse_weight_format(arguments[2])) measured.format = *format, numbers = 3;
  if (what == "power") {
    for (int i = 2; i < count; ++i) show_power(in, number(i));
    return failures ? 1 : 0;
  }
  const auto check_shapes = [&](auto... of) {
    check_shape<half>(in, of...);
    if (has_bf16) check_shape<bf16>(in, of...);
  };
  std::printf("%s\n", ours().name);
  if (what == "once") return queue_once(in, number(numbers)), 0;
  if (what == "check" && count == 5) {
    check_shapes(number(2), number(3), number(4));
    std::printf("%s\n", failures ? "matmul: WRONG" : "matmul: this shape is correct");
  } else if (what == "check" && count > 2 && std::string(arguments[2]) == "turns") {
    check_turns<half>(in, count > 3 ? number(3) : turn_repeats);
    std::printf("%s\n", failures ? "matmul: WRONG" : "matmul: dependent GEMMs are correct");
  } else if (what != "speed" && what != "shapes") {
    for (const auto [outputs, inputs, segments] : {std::array{64u, 64u, 1u},
                                                   {96u, 128u, 1u},
                                                   {480u, 256u, 1u},
                                                   {256u, 480u, 1u},
                                                   {512u, 512u, 4u},
                                                   {2048u, 2048u, 4u},
                                                   {320u, 832u, 4u},
                                                   {4012u, 256u, 1u},
                                                   {136u, 1500u, 1u},  // few outputs and many inputs, also with split-K
                                                   {136u, 2700u, 2u},
                                                   {4096u, 4096u, 2u},
                                                   {16384u, 512u, 1u},  // enough for tiles of every width
                                                   {16384u, 512u, 2u},
                                                   {136u, 3328u, 4u},  // computed by pairs of blocks from 520 rows
                                                   {2048u, 8192u, 4u}})
      check_shapes(outputs, inputs, segments);
    check_epilogues(in);
    check_additions(in, 4032, 512);
    check_additions(in, 2048, 8192);  // value of 1.5B, where a pair of blocks computes each tile
    if (ours().run == matmul_hopper) check_who_pairs();
    check_turns<half>(in);
    if (has_bf16) check_turns<bf16>(in);
    std::printf("%s\n", failures ? "matmul: WRONG" : "matmul: correct, with the same bits for any number of rows");
    if (failures) return 1;
  }
  if (what == "shapes") {  // each shape of tiles of the kernels by mma.sync
    constexpr std::pair<mma_shape, const char*> shapes[] = {{mma_shape::small, "small"},
                                                            {mma_shape::flat, "flat"},
                                                            {mma_shape::square, "square"},
                                                            {mma_shape::broad, "broad"},
                                                            {mma_shape::wide, "wide"}};
    for (const std::uint32_t rows : {128u, 320u, 512u, 960u, 4096u})
      for (const auto& [shape, name] : shapes) {
        impose_shape(shape);
        std::printf("%s: ", name);
        time_model(in, "7.2B", 4096, {96, 480, 128, 128}, rows, rows);
      }
    return 0;
  }
  if (what != "check") {
    const std::uint32_t least = count > numbers ? number(numbers) : 1,
                        most = count > numbers + 1 ? number(numbers + 1) : 4096;
    time_model(in, "7.2B", 4096, {96, 480, 128, 128}, least, most);
    time_model(in, "1.5B", 2048, {64, 256, 96, 96}, least, most);
  }
  return failures ? 1 : 0;
}
