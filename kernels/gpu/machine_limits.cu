// Reads: blocks stride over gigabytes with four 16-byte loads in flight per thread, and combine the values so that no
// load can be skipped. GEMM: the vendor's library on square matrices that are large enough to hide all overhead. Of
// several grid shapes, and of the algorithms that the library proposes, the fastest one counts: a limit is what the
// machine can do, not what one configuration achieves.
#include "kernels/gpu/machine_limits.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <string>

#include "kernels/gpu/gemm/matmul_library.hpp"
#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/runtime/stream.hpp"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned threads = 512;
constexpr unsigned loads_in_flight = 4;
constexpr std::size_t read_bytes_min = std::size_t{4} << 30, read_bytes_max = std::size_t{8} << 30;
constexpr int read_passes = 8, gemm_passes = 20;
constexpr std::uint32_t gemm_size = 8192;
constexpr std::size_t gemm_workspace_bytes = std::size_t{32} << 20;

__device__ std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

/// Fills memory with fp16 numbers of both signs between 0.0625 and 0.125, which are valid data for all measurements.
__global__ void __launch_bounds__(threads) fill_kernel(uint4* to, std::size_t packets) {
  for (std::size_t i = blockIdx.x * std::size_t{threads} + threadIdx.x; i < packets;
       i += std::size_t{gridDim.x} * threads) {
    std::uint32_t word[4];
    for (std::uint32_t w = 0; w < 4; ++w)
      word[w] = (mixed(static_cast<std::uint32_t>(4 * i) + w) & 0x83ff83ffu) | 0x2c002c00u;
    to[i] = {word[0], word[1], word[2], word[3]};
  }
}

__global__ void __launch_bounds__(threads) read_kernel(const uint4* from, std::size_t packets, std::uint32_t* sink) {
  const std::size_t step = std::size_t{gridDim.x} * threads;
  std::uint32_t sum = 0;
  for (std::size_t i = blockIdx.x * std::size_t{threads} + threadIdx.x; i < packets; i += loads_in_flight * step) {
    uint4 values[loads_in_flight];
#pragma unroll
    for (unsigned l = 0; l < loads_in_flight; ++l)
      values[l] = i + l * step < packets ? __ldcs(from + i + l * step) : uint4{};
#pragma unroll
    for (unsigned l = 0; l < loads_in_flight; ++l) sum += values[l].x ^ values[l].y ^ values[l].z ^ values[l].w;
  }
  if (sum == 0x5eed5eedu) *sink = sum;  // keeps the loads; hardly ever true, and then harmless
}

/// Seconds that the stream takes for the work that `queue_work` queues.
template <typename Work>
double seconds(const stream& in, const Work& queue_work) {
  require(in.synchronize());
  const auto begin = std::chrono::steady_clock::now();
  require(queue_work());
  require(in.synchronize());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double measure_reads(const stream& in, const device_properties& device) {
  if (device.free_bytes < read_bytes_min + (read_bytes_min >> 1))
    throw device_failure({error_kind::unavailable, "measuring bandwidth needs 6 GiB of free device memory", ""});
  const std::size_t bytes = std::clamp(device.free_bytes / 2, read_bytes_min, read_bytes_max);
  const device_buffer<uint4> memory(bytes / sizeof(uint4));
  const device_buffer<std::uint32_t> sink(1);
  require(launch({"fill", {device.sm_count * 4}, {threads}, 0, in}, fill_kernel, memory.data(), memory.size()));
  double best = 0;
  for (const unsigned blocks_each : {1u, 2u, 4u, 8u, 16u}) {
    const launch_shape shape{"read", {device.sm_count * blocks_each}, {threads}, 0, in};
    const auto read = [&] { return launch(shape, read_kernel, memory.data(), memory.size(), sink.data()); };
    require(read());
    const double time = seconds(in, [&]() -> result<void> {
      for (int pass = 0; pass < read_passes; ++pass)
        if (const auto queued = read(); !queued) return queued;
      return {};
    });
    best = std::max(best, static_cast<double>(memory.bytes()) * read_passes / time);
  }
  return best;
}

void measure_gemms(const stream& in, const device_properties& device, machine_limits& to) {
  const auto library = open_matmul_library();
  if (!library) {
    to.matrix_by = library.error().message;
    return;
  }
  to.matrix_by = (*library)->name();
  library_shape square;
  square.outputs = square.inputs = square.in_stride = square.out_stride = gemm_size;
  const auto work = (*library)->prepare(square, gemm_size, gemm_workspace_bytes);
  if (!work) throw device_failure(work.error());
  constexpr std::size_t packets = std::size_t{gemm_size} * gemm_size * sizeof(half) / sizeof(uint4);
  const device_buffer<uint4> a(packets), b(packets), out(packets);
  const device_buffer<std::byte> workspace(gemm_workspace_bytes);
  for (const auto* matrix : {&a, &b})
    require(launch({"fill", {device.sm_count * 4}, {threads}, 0, in}, fill_kernel, matrix->data(), packets));
  gemm p;
  p.matrix.data = a.data(), p.in = b.data(), p.out = out.data();
  const double operations = 2.0 * gemm_size * gemm_size * gemm_size;
  for (std::size_t algorithm = 0; algorithm < (*work)->algorithms(); ++algorithm) {
    const auto multiply = [&] { return (*work)->queue(in, algorithm, p, gemm_size, workspace); };
    if (!multiply()) continue;
    const double time = seconds(in, [&]() -> result<void> {
      for (int pass = 0; pass < gemm_passes; ++pass)
        if (const auto queued = multiply(); !queued) return queued;
      return {};
    });
    to.matrix_flop_per_s = std::max(to.matrix_flop_per_s, operations * gemm_passes / time);
  }
}

}  // namespace

result<machine_limits> measure_limits(int device) {
  const auto described = describe_device(device);
  if (!described) return described.error();
  try {
    const stream in;
    machine_limits limits;
    limits.read_bytes_per_s = measure_reads(in, *described);
    measure_gemms(in, *described, limits);
    return limits;
  } catch (const device_failure& failure) {
    return failure.why();
  } catch (const std::exception& other) {
    return error{error_kind::unavailable, std::string("the device cannot be measured: ") + other.what(), ""};
  }
}

}  // namespace skein::kernels::gpu
