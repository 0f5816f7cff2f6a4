#include "kernels/gpu/gemm/tile_probe.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <string>
#include <vector>

#include "kernels/gpu/gemm/mma/matmul_mma.hpp"
#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/runtime/stream.hpp"

namespace skein::kernels::gpu {

namespace {

constexpr int runs = 3;

/// Imposes shapes in its scope.
class imposed {
 public:
  imposed() = default;
  ~imposed() { impose_shape({}); }
  imposed(const imposed&) = delete;  // one at a time
  imposed& operator=(const imposed&) = delete;
  void operator()(mma_shape shape) { impose_shape(shape); }
};

/// Numbers of both signs between 1/16 and 1/8 in fp16, or small ones in bf16: a chip takes more power for them than
/// for zeros, as for weights.
device_buffer<std::uint16_t> numbers(std::size_t count, stream_handle in) {
  device_buffer<std::uint16_t> all(count, "a measurement");
  std::vector<std::uint16_t> some(count);
  std::uint32_t state = 1;
  for (std::uint16_t& value : some) {
    state = state * 1664525 + 1013904223;
    value = static_cast<std::uint16_t>((state >> 16 & 0x83ff) | 0x2c00);
  }
  require(copy_to_device(all.data(), some.data(), all.bytes(), in));
  require(wait_for(in));
  return all;
}

double fastest(const stream& in, const stopwatch& watch, const std::function<result<void>()>& work) {
  double least = 0;
  for (int i = 0; i < runs; ++i) {
    const auto seconds = watch(in, work);
    if (!seconds) throw device_failure(seconds.error());
    require(in.synchronize());
    if (i == 0 || *seconds < least) least = *seconds;
  }
  return least;
}

tile_times measure(const device_profile& profile, element type, const tile_probe& probe, const stopwatch& watch) {
  const stream in;
  const std::uint32_t inputs = padded(probe.inputs), outputs = padded(probe.outputs);
  const auto weights = numbers(std::size_t{outputs} * inputs, in), rows = numbers(std::size_t{probe.rows} * inputs, in);
  const device_buffer<std::uint16_t> out(std::size_t{probe.rows} * outputs, "a measurement");
  gemm product;
  product.matrix = {weights.data(), probe.outputs, probe.inputs, row_format(type)};
  product.in = rows.data(), product.in_stride = inputs;
  product.out = out.data(), product.out_stride = outputs;
  tile_times times = {};
  imposed impose;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto shape = static_cast<mma_shape>(static_cast<std::size_t>(mma_shape::small) + i);
    const auto tiles = mma_tiles(shape, profile, probe.outputs, probe.rows);
    if (!tiles) continue;
    impose(shape);
    const double seconds = fastest(in, watch, [&] { return matmul_mma(in, type, {&product, 1}, nullptr, probe.rows); });
    const std::uint32_t in_turn = (*tiles + profile.sm_count - 1) / profile.sm_count;
    times[i] = seconds * 1e6 / in_turn / (inputs / matrix_tile);
  }
  return times;
}

}  // namespace

result<tile_times> measure_tiles(int device, element type, const tile_probe& probe, const stopwatch& watch) {
  if (const auto r = use_device(device); !r) return r.error();
  const auto profile = profile_of(device);
  if (!profile) return profile.error();
  const bool has_mma =
      type == element::bf16 ? profile->has_bf16() : type == element::f16 && profile->has_tensor_cores();
  if (!has_mma || profile->has_wgmma) return tile_times{};
  try {
    return measure(*profile, type, probe, watch);
  } catch (const device_failure& failure) {
    return failure.why();
  } catch (const std::exception& other) {
    return error{error_kind::unavailable, std::string("the device cannot be measured: ") + other.what(), ""};
  }
}

result<tile_times> measure_tiles(int device, element type) {
  return measure_tiles(device, type, tile_probe{}, seconds_on_device);
}

}  // namespace skein::kernels::gpu
