#pragma once
#include <cstdint>
#include <memory>

#include "kernels/gpu/device_properties.hpp"
#include "kernels/gpu/machine_limits.hpp"
#include "kernels/gpu/tick_runner.hpp"

/// The boundary of a GPU back end. It is a shared object of its own (libskein_cuda.so), opened when a device is wanted,
/// so that the program starts where there is no GPU, no driver and no such library. It exports one symbol, brings what
/// it needs of src/base along and shares nothing with the program but what passes through here.
///
/// What passes are C++ types. That is sound because both sides are of one build: the same headers, compiler and
/// standard library; `build` says of which, and a program refuses a library of another. Nothing thrown passes.
namespace skein::kernels::gpu {

struct plugin {
  std::uint32_t abi;  ///< plugin_abi; read first, as it stays the first member in every build
  const char* build;  ///< SKEIN_BUILD_ID
  const char* kind;   ///< "cuda", "hip" or "emulator"

  /// Errors: unavailable, with the runtime's own words (no driver, no device).
  result<int> (*device_count)();
  result<device_properties> (*describe_device)(int device);
  /// make_gpu_rwkv7 of tick_runner.hpp. The library must stay loaded as long as the runner lives.
  result<std::unique_ptr<tick_runner>> (*make_rwkv7)(const rwkv7_weights& weights, const gpu_options& options);
  /// plan_gpu_rwkv7 of tick_runner.hpp.
  result<memory_plan> (*plan_rwkv7)(const rwkv7_weights& weights, const gpu_options& options);
  /// measure_limits of machine_limits.hpp.
  result<machine_limits> (*measure_limits)(int device);
};

inline constexpr std::uint32_t plugin_abi = 4;

/// The name and type of the one symbol.
inline constexpr const char* plugin_symbol = "skein_gpu_plugin";
using plugin_function = const plugin* (*)();

}  // namespace skein::kernels::gpu
