#pragma once
#include <cstdint>
#include <memory>

#include "kernels/gpu/gemm/measure_tiles.hpp"
#include "kernels/gpu/machine_limits.hpp"
#include "kernels/gpu/tick/tick_runner.hpp"
#include "kernels/gpu/types/device_properties.hpp"

/// The interface of a GPU back end. A back end is a shared object (libskein_cuda.so, libskein_hip.so) that is opened
/// when a device is needed, so the program starts without a GPU, a driver or that library. It exports one symbol,
/// contains its own copy of the parts of src/base that it needs, and shares only this interface with the program.
///
/// C++ types cross the interface. That is sound because both sides are from one build: the same headers, compiler and
/// standard library. `build` identifies it, and the program refuses a library from another build. No exception crosses
/// the interface.
namespace skein::kernels::gpu {

struct plugin {
  std::uint32_t abi;  ///< plugin_abi; the first member in every build, so that it can be checked first
  const char* build;  ///< SKEIN_BUILD_ID
  const char* kind;   ///< "cuda", "hip" or "emulator"

  /// Errors: unavailable, with the runtime's message (no driver, no device).
  result<int> (*device_count)();
  result<device_properties> (*describe_device)(int device);
  /// make_runner of tick_runner.hpp. The library must stay loaded as long as the runner lives.
  result<std::unique_ptr<tick_runner>> (*make_runner)(const model_weights& weights, const gpu_options& options);
  /// plan_runner of tick_runner.hpp.
  result<memory_plan> (*plan_runner)(const model_weights& weights, const gpu_options& options);
  /// measure_limits of machine_limits.hpp.
  result<machine_limits> (*measure_limits)(int device);
  /// measure_tiles of measure_tiles.hpp.
  result<tile_times> (*measure_tiles)(int device, element type);
};

inline constexpr std::uint32_t plugin_abi = 11;

/// The name and type of the exported symbol.
inline constexpr const char* plugin_symbol = "skein_gpu_plugin";
using plugin_function = const plugin* (*)();

}  // namespace skein::kernels::gpu
