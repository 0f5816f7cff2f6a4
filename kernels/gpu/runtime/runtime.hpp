#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include "base/check.hpp"
#include "base/result.hpp"
#include "kernels/gpu/types/device_profile.hpp"
#include "kernels/gpu/types/device_properties.hpp"

// The only code that depends on the GPU runtime. The three runtimes have the same calls with different prefixes.
#if defined(SKEIN_GPU_EMULATOR)
#include "kernels/gpu/runtime/emulator/emulator.hpp"
#define SKEIN_GPU(name) emu##name
#define SKEIN_GPU_NAME "emulator"
#elif defined(__HIPCC__) || defined(__HIP_PLATFORM_AMD__)
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#define SKEIN_GPU(name) hip##name
#define SKEIN_GPU_NAME "hip"
#define hipDeviceProp hipDeviceProp_t
#define hipHostAlloc hipHostMalloc
#define hipHostAllocDefault hipHostMallocDefault
#define hipFreeHost hipHostFree
#define hipDevAttrMultiProcessorCount hipDeviceAttributeMultiprocessorCount
#define hipDeviceAttr hipDeviceAttribute_t
#define hipDevAttrMaxSharedMemoryPerBlockOptin hipDeviceAttributeMaxSharedMemoryPerBlock
#else
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define SKEIN_GPU(name) cuda##name
#define SKEIN_GPU_NAME "cuda"
#endif

/// The parts of a GPU runtime that kernels, launchers and owners use, under one set of names for CUDA, HIP and the
/// emulator. Every call that touches the device names its stream; the runtime's error codes do not leave this file.
namespace skein::kernels::gpu {

inline constexpr const char* runtime_name = SKEIN_GPU_NAME;
#if defined(SKEIN_GPU_EMULATOR)
inline constexpr bool runtime_is_emulated = true;  ///< kernels never run concurrently
#else
inline constexpr bool runtime_is_emulated = false;
#endif

using stream_handle = SKEIN_GPU(Stream_t);
using event_handle = SKEIN_GPU(Event_t);
using graph_handle = SKEIN_GPU(Graph_t);
using graph_exec_handle = SKEIN_GPU(GraphExec_t);

/// Converts a runtime's error code to unavailable, with the failed operation and the runtime's message.
inline result<void> outcome(SKEIN_GPU(Error_t) code, const char* what) {
  if (code == SKEIN_GPU(Success)) return {};
  return error{error_kind::unavailable, std::string("GPU: ") + what + ": " + SKEIN_GPU(GetErrorString)(code), ""};
}

/// At least one, or an error.
inline result<int> device_count() {
  int count = 0;
  if (const auto r = outcome(SKEIN_GPU(GetDeviceCount)(&count), "counting devices"); !r) return r.error();
  if (count == 0) return error{error_kind::unavailable, "GPU: no device found", ""};
  return count;
}
/// Selects the device for the calling thread.
inline result<void> use_device(int device) { return outcome(SKEIN_GPU(SetDevice)(device), "selecting the device"); }
/// What profile_of(device) says about tiles from now on; for all models on that device.
void set_tile_times(int device, const tile_times& times);
/// The profile of a device, limited by the one in $SKEIN_DEVICE_PROFILE and by impose_profile. Queried at every launch
/// that needs it, which is fast. Errors: unavailable; bad_config if the variable names no profile.
[[nodiscard]] result<device_profile> profile_of(int device);
/// Of the current device.
[[nodiscard]] result<device_profile> current_profile();
/// Limits devices for the calling thread, too, for tests and benchmarks.
void impose_profile(const std::optional<device_profile>& profile);

inline result<device_properties> describe_device(int device) {
  SKEIN_GPU(DeviceProp) properties{};
  if (const auto r = outcome(SKEIN_GPU(GetDeviceProperties)(&properties, device), "describing a device"); !r)
    return r.error();
  if (const auto r = use_device(device); !r) return r.error();
  std::size_t free_bytes = 0, total_bytes = 0;
  if (const auto r = outcome(SKEIN_GPU(MemGetInfo)(&free_bytes, &total_bytes), "querying the free memory"); !r)
    return r.error();
  const auto profile = profile_of(device);
  if (!profile) return profile.error();
  return device_properties{properties.name,
                           total_bytes,
                           free_bytes,
                           static_cast<std::uint32_t>(properties.multiProcessorCount),
                           static_cast<std::uint32_t>(properties.warpSize),
                           !profile->has_tensor_cores() || profile->has_bf16()};
}

/// The number of SMs of the current device.
inline result<std::uint32_t> count_sms() {
  const auto profile = current_profile();
  if (!profile) return profile.error();
  return profile->sm_count;
}

inline result<void> copy_to_device(void* to, const void* pinned, std::size_t bytes, stream_handle stream) {
  return outcome(SKEIN_GPU(MemcpyAsync)(to, pinned, bytes, SKEIN_GPU(MemcpyHostToDevice), stream),
                 "copying to the device");
}
inline result<void> copy_to_host(void* pinned, const void* from, std::size_t bytes, stream_handle stream) {
  return outcome(SKEIN_GPU(MemcpyAsync)(pinned, from, bytes, SKEIN_GPU(MemcpyDeviceToHost), stream),
                 "copying from the device");
}
inline result<void> copy_on_device(void* to, const void* from, std::size_t bytes, stream_handle stream) {
  return outcome(SKEIN_GPU(MemcpyAsync)(to, from, bytes, SKEIN_GPU(MemcpyDeviceToDevice), stream),
                 "copying on the device");
}
inline result<void> fill_with_zeros(void* to, std::size_t bytes, stream_handle stream) {
  return outcome(SKEIN_GPU(MemsetAsync)(to, 0, bytes, stream), "clearing memory");
}

/// The launch configuration of a kernel; `name` appears in error messages.
struct launch_shape {
  const char* name;
  dim3 grid, block;
  std::size_t shared_bytes = 0;  ///< dynamic shared memory, see dynamic_shared() in device/block.cuh
  stream_handle stream;
  bool uses_pdl = false;  ///< PDL, if the device has it: the kernel keeps the rules of device/pdl.cuh
  unsigned cluster = 1;   ///< blocks per cluster, see device/block_pair.cuh; above 1 only for kernels that overlap
  /// Memory that the L2 cache replaces first (an access policy window), because the kernel reads it once. At most
  /// device_profile::streamed_bytes_max bytes.
  std::span<const std::byte> streamed = {};
};

#if defined(SKEIN_GPU_EMULATOR)
template <typename... Parameters>
result<void> launch(const launch_shape& shape, void (*kernel)(Parameters...),
                    std::type_identity_t<Parameters>... arguments) {
  const emulator::own_memory mine;
  emulator::enqueue(shape.stream, shape.name, shape.grid, shape.block, shape.shared_bytes, shape.uses_pdl,
                    shape.cluster, [=] { kernel(arguments...); });
  return {};
}
#elif defined(__CUDACC__) || defined(__HIPCC__)
template <typename... Parameters>
result<void> launch(const launch_shape& shape, void (*kernel)(Parameters...),
                    std::type_identity_t<Parameters>... arguments) {
  void* addresses[] = {&arguments..., nullptr};
  check(shape.cluster == 1 || shape.uses_pdl);
#if defined(__CUDACC__)
  const auto profile = shape.uses_pdl ? current_profile() : device_profile{};
  if (!profile) return profile.error();
  cudaLaunchAttribute attributes[3]{};
  unsigned count = 0;
  if (profile->has_pdl) {
    cudaLaunchAttribute& pdl = attributes[count++];
    pdl.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    pdl.val.programmaticStreamSerializationAllowed = 1;
  }
  if (profile->has_pdl && shape.cluster > 1) {
    cudaLaunchAttribute& cluster = attributes[count++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {shape.cluster, 1, 1};
  }
  if (!shape.streamed.empty()) {
    cudaLaunchAttribute& window = attributes[count++];
    window.id = cudaLaunchAttributeAccessPolicyWindow;
    window.val.accessPolicyWindow = {const_cast<std::byte*>(shape.streamed.data()), shape.streamed.size(), 1,
                                     cudaAccessPropertyStreaming, cudaAccessPropertyNormal};
  }
  if (count > 0) {
    const cudaLaunchConfig_t config{shape.grid, shape.block, shape.shared_bytes, shape.stream, attributes, count};
    return outcome(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), addresses), shape.name);
  }
#endif
  return outcome(SKEIN_GPU(LaunchKernel)(reinterpret_cast<const void*>(kernel), shape.grid, shape.block, addresses,
                                         shape.shared_bytes, shape.stream),
                 shape.name);
}
#endif

/// Allows a kernel more dynamic shared memory than the default 48 KiB; an error if the device has less. For the current
/// device.
template <typename... Parameters>
result<void> allow_shared_bytes([[maybe_unused]] void (*kernel)(Parameters...), [[maybe_unused]] std::size_t bytes) {
#if defined(__CUDACC__) || defined(__HIPCC__)
  const auto code =
      SKEIN_GPU(FuncSetAttribute)(reinterpret_cast<const void*>(kernel),
                                  SKEIN_GPU(FuncAttributeMaxDynamicSharedMemorySize), static_cast<int>(bytes));
  if (code != SKEIN_GPU(Success)) static_cast<void>(SKEIN_GPU(GetLastError)());  // clears it: the caller gets the code
  return outcome(code, "requesting shared memory");
#else
  return {};
#endif
}

#if !defined(SKEIN_GPU_EMULATOR)
using half = ::__half;
#if defined(__CUDACC__) || defined(__HIPCC__)
__device__ inline float half_to_float(half value) { return __half2float(value); }
__device__ inline half float_to_half(float value) { return __float2half_rn(value); }
#endif
#endif

}  // namespace skein::kernels::gpu
