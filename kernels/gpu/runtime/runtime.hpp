#pragma once
#include <cstddef>
#include <string>
#include <type_traits>

#include "base/result.hpp"

// The only place that knows which GPU runtime this is compiled for. The three have the same calls under three prefixes.
#if defined(SKEIN_GPU_EMULATOR)
#include "kernels/gpu/runtime/emulator/emulator.hpp"
#define SKEIN_GPU(name) emu##name
#elif defined(__HIPCC__) || defined(__HIP_PLATFORM_AMD__)
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#define SKEIN_GPU(name) hip##name
#define hipDeviceProp hipDeviceProp_t
#define hipHostAlloc hipHostMalloc
#define hipHostAllocDefault hipHostMallocDefault
#define hipFreeHost hipHostFree
#else
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define SKEIN_GPU(name) cuda##name
#endif

/// What kernels, launchers and owners use of a GPU runtime, under one set of names for CUDA, HIP and the emulator.
/// Every call that touches the device names its stream; a foreign error code goes no further than this file.
namespace skein::kernels::gpu {

using stream_handle = SKEIN_GPU(Stream_t);
using event_handle = SKEIN_GPU(Event_t);
using graph_handle = SKEIN_GPU(Graph_t);
using graph_exec_handle = SKEIN_GPU(GraphExec_t);

/// A runtime's answer as ours: unavailable, with what was tried and the runtime's own words.
inline result<void> outcome(SKEIN_GPU(Error_t) code, const char* what) {
  if (code == SKEIN_GPU(Success)) return {};
  return error{error_kind::unavailable, std::string("GPU: ") + what + ": " + SKEIN_GPU(GetErrorString)(code), ""};
}

struct device_properties {
  std::string name;
  std::size_t memory_bytes = 0;
  std::uint32_t multiprocessors = 0, warp_width = 0;
};

inline result<int> device_count() {
  int count = 0;
  if (const auto r = outcome(SKEIN_GPU(GetDeviceCount)(&count), "looking for devices"); !r) return r.error();
  return count;
}
/// For the calling thread, from now on.
inline result<void> use_device(int device) { return outcome(SKEIN_GPU(SetDevice)(device), "choosing a device"); }
inline result<device_properties> describe_device(int device) {
  SKEIN_GPU(DeviceProp) properties{};
  if (const auto r = outcome(SKEIN_GPU(GetDeviceProperties)(&properties, device), "describing a device"); !r)
    return r.error();
  return device_properties{properties.name, properties.totalGlobalMem,
                           static_cast<std::uint32_t>(properties.multiProcessorCount),
                           static_cast<std::uint32_t>(properties.warpSize)};
}
/// Bytes that can still be allocated on the device in use.
inline result<std::size_t> free_memory() {
  std::size_t free_bytes = 0, total_bytes = 0;
  if (const auto r = outcome(SKEIN_GPU(MemGetInfo)(&free_bytes, &total_bytes), "asking for memory"); !r)
    return r.error();
  return free_bytes;
}

inline result<void> copy_to_device(void* to, const void* pinned, std::size_t bytes, stream_handle stream) {
  return outcome(SKEIN_GPU(MemcpyAsync)(to, pinned, bytes, SKEIN_GPU(MemcpyHostToDevice), stream), "copying to it");
}
inline result<void> copy_to_host(void* pinned, const void* from, std::size_t bytes, stream_handle stream) {
  return outcome(SKEIN_GPU(MemcpyAsync)(pinned, from, bytes, SKEIN_GPU(MemcpyDeviceToHost), stream), "copying from it");
}
inline result<void> copy_on_device(void* to, const void* from, std::size_t bytes, stream_handle stream) {
  return outcome(SKEIN_GPU(MemcpyAsync)(to, from, bytes, SKEIN_GPU(MemcpyDeviceToDevice), stream), "copying on it");
}
inline result<void> fill_with_zeros(void* to, std::size_t bytes, stream_handle stream) {
  return outcome(SKEIN_GPU(MemsetAsync)(to, 0, bytes, stream), "clearing memory");
}

/// Where and how often a kernel runs; `name` is for what goes wrong.
struct launch_shape {
  const char* name;
  dim3 grid, block;
  std::size_t shared_bytes = 0;  ///< dynamic shared memory, see dynamic_shared() in device/block.cuh
  stream_handle stream;
};

#if defined(SKEIN_GPU_EMULATOR)
template <typename... Parameters>
result<void> launch(const launch_shape& shape, void (*kernel)(Parameters...),
                    std::type_identity_t<Parameters>... arguments) {
  emulator::enqueue(shape.stream, shape.name, shape.grid, shape.block, shape.shared_bytes,
                    [=] { kernel(arguments...); });
  return {};
}
#elif defined(__CUDACC__) || defined(__HIPCC__)
template <typename... Parameters>
result<void> launch(const launch_shape& shape, void (*kernel)(Parameters...),
                    std::type_identity_t<Parameters>... arguments) {
  kernel<<<shape.grid, shape.block, shape.shared_bytes, shape.stream> > >(arguments...);
  return outcome(SKEIN_GPU(GetLastError)(), shape.name);
}
#endif

#if !defined(SKEIN_GPU_EMULATOR)
using half = ::__half;
#if defined(__CUDACC__) || defined(__HIPCC__)
__device__ inline float half_to_float(half value) { return __half2float(value); }
__device__ inline half float_to_half(float value) { return __float2half_rn(value); }
#endif
#endif

}  // namespace skein::kernels::gpu
