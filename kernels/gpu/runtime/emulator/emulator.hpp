#pragma once
#include <math.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/tensor.hpp"
#include "kernels/gpu/runtime/emulator/fibers.hpp"

/// A third GPU runtime beside CUDA and HIP, built on fibers. Its calls have the same names with the prefix emu, so that
/// runtime.hpp has one list for all three. The keywords and built-ins that kernels use follow below.
///
/// Streams are lazy on purpose: queued work runs only when the host waits for it. So a missing wait, or pinned memory
/// that is overwritten too early, shows as wrong numbers. A stream belongs to one host thread at a time.
namespace skein::kernels::gpu {

enum emuError_t {
  emuSuccess,
  emuErrorMemoryAllocation,
  emuErrorLaunchFailure,
  emuErrorInvalidDevice,
  emuErrorNotReady
};
[[nodiscard]] const char* emuGetErrorString(emuError_t code);  ///< for launch failures: the message of the fibers
[[nodiscard]] emuError_t emuGetLastError();

struct emuStream;
struct emuEvent;
struct emuGraph;
using emuStream_t = emuStream*;
using emuEvent_t = emuEvent*;
using emuGraph_t = emuGraph*;
using emuGraphExec_t = emuGraph*;

struct emuDeviceProp {
  char name[64];
  std::size_t totalGlobalMem;
  int multiProcessorCount, warpSize;
};

enum emuMemcpyKind { emuMemcpyHostToDevice, emuMemcpyDeviceToHost, emuMemcpyDeviceToDevice };

emuError_t emuGetDeviceCount(int* count);
emuError_t emuSetDevice(int device);
emuError_t emuGetDeviceProperties(emuDeviceProp* out, int device);
enum emuDeviceAttr {
  emuDevAttrMultiProcessorCount,
  emuDevAttrComputeCapabilityMajor,
  emuDevAttrComputeCapabilityMinor,
  emuDevAttrMaxSharedMemoryPerBlockOptin
};
emuError_t emuGetDevice(int* device);
emuError_t emuDeviceGetAttribute(int* out, emuDeviceAttr what, int device);
emuError_t emuMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes);

emuError_t emuMalloc(void** out, std::size_t bytes);
emuError_t emuFree(void* memory);
emuError_t emuHostAlloc(void** out, std::size_t bytes, unsigned flags);
emuError_t emuFreeHost(void* memory);
emuError_t emuMemcpyAsync(void* to, const void* from, std::size_t bytes, emuMemcpyKind kind, emuStream_t stream);
emuError_t emuMemsetAsync(void* to, int value, std::size_t bytes, emuStream_t stream);

emuError_t emuStreamCreateWithFlags(emuStream_t* out, unsigned flags);
emuError_t emuStreamDestroy(emuStream_t stream);
emuError_t emuStreamSynchronize(emuStream_t stream);
emuError_t emuStreamWaitEvent(emuStream_t stream, emuEvent_t event, unsigned flags);
emuError_t emuEventCreateWithFlags(emuEvent_t* out, unsigned flags);
emuError_t emuEventDestroy(emuEvent_t event);
emuError_t emuEventRecord(emuEvent_t event, emuStream_t stream);
emuError_t emuEventSynchronize(emuEvent_t event);
emuError_t emuEventCreate(emuEvent_t* out);
/// Returns "not ready" a few times and then runs the work before the event: a caller that polls must succeed in the
/// end, and a caller that continues in the meantime must find nothing done.
emuError_t emuEventQuery(emuEvent_t event);
emuError_t emuEventElapsedTime(float* milliseconds, emuEvent_t begin, emuEvent_t end);

/// Between these two calls, work queued in the stream is captured for the graph and does not run.
enum emuStreamCaptureMode { emuStreamCaptureModeThreadLocal };
emuError_t emuStreamBeginCapture(emuStream_t stream, emuStreamCaptureMode mode);
emuError_t emuStreamEndCapture(emuStream_t stream, emuGraph_t* out);
emuError_t emuGraphInstantiate(emuGraphExec_t* out, emuGraph_t graph, emuGraph_t*, char*, std::size_t);
emuError_t emuGraphLaunch(emuGraphExec_t graph, emuStream_t stream);
emuError_t emuGraphDestroy(emuGraph_t graph);
emuError_t emuGraphExecDestroy(emuGraphExec_t graph);

inline constexpr unsigned emuHostAllocDefault = 0, emuStreamNonBlocking = 0, emuEventDisableTiming = 0;

namespace emulator {

/// Queues a kernel. `name` appears in error messages.
void enqueue(emuStream_t stream, const char* name, extent grid, extent block, std::size_t shared_bytes, bool uses_pdl,
             unsigned cluster, std::function<void()> kernel);

/// While one of these exists, heap allocations of this host thread count as the emulator's: a device would make none.
struct own_memory {
  own_memory() { ++depth; }
  ~own_memory() { --depth; }
  own_memory(const own_memory&) = delete;  // it marks a scope
  own_memory& operator=(const own_memory&) = delete;
  static thread_local int depth;
};
/// The properties that the device reports to this host thread.
struct device_traits {
  int sm_count = 2;                  ///< so that matrices of tests are cut into 1, 2 and 4 segments
  int compute_capability_major = 0;  ///< from 7.5 on, at a warp width of 32: it has tensor cores; 9: those of sm_90a
  int compute_capability_minor = 0;
  int shared_bytes_per_block = 227 << 10;
};
/// Two SMs without features; if $SKEIN_EMULATED_DEVICE is "sm_80:N" or the like, N SMs with those of sm_80.
[[nodiscard]] device_traits usual_traits();
inline thread_local device_traits traits = usual_traits();
/// Replaces the device while it exists.
struct other_device {
  explicit other_device(const device_traits& other) : before(std::exchange(traits, other)) {}
  ~other_device() { traits = before; }
  other_device(const other_device&) = delete;  // it marks a scope
  other_device& operator=(const other_device&) = delete;
  device_traits before;
};

/// The number of allocations of device and pinned memory so far, by all threads.
std::uint64_t device_allocations();

/// After an error in a kernel nothing runs on this host thread any more, as on a GPU, until this is called.
void clear_error();

inline float shuffle_xor(float value, unsigned mask,
                         const std::source_location& where = std::source_location::current()) {
  auto& runner = block_runner::of_this_thread();
  const unsigned lane = runner.lane();
  return std::bit_cast<float>(
      static_cast<std::uint32_t>(runner.exchange(std::bit_cast<std::uint32_t>(value), where)[lane ^ mask]));
}
inline std::uint64_t ballot(bool predicate, const std::source_location& where = std::source_location::current()) {
  auto& runner = block_runner::of_this_thread();
  const std::uint64_t* const votes = runner.exchange(predicate, where);
  std::uint64_t mask = 0;
  for (unsigned lane = 0; lane < warp_width; ++lane) mask |= votes[lane] << lane;
  return mask;
}

}  // namespace emulator

// ---- keywords and built-ins of kernels ----

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static thread_local  // blocks run one after another (a cluster's have none), on this host thread

using dim3 = emulator::extent;

/// threadIdx and the like; read in the running fiber.
#define threadIdx (::skein::kernels::gpu::emulator::now.thread_index)
#define blockIdx (::skein::kernels::gpu::emulator::now.block_index)
#define blockDim (::skein::kernels::gpu::emulator::now.block)
#define gridDim (::skein::kernels::gpu::emulator::now.grid)

inline void __syncthreads(const std::source_location& where = std::source_location::current()) {
  emulator::block_runner::of_this_thread().barrier(where);
}

/// Plain operations are enough: fibers do not preempt each other.
template <typename T>
T atomicAdd(T* at, T value) {
  const T before = *at;
  *at = before + value;
  return before;
}

template <typename T>
T atomicMin(T* at, T value) {
  const T before = *at;
  if (value < before) *at = value;
  return before;
}
inline void __threadfence() {}

struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  std::uint32_t x, y, z, w;
};

using std::max;
using std::min;

/// IEEE half precision.
struct half {
  std::uint16_t bits;
};
/// Uses a table, because emulated tensor cores convert many values.
namespace emulator {
extern const std::array<float, 0x10000> half_values;  ///< of all bits
}
inline float half_to_float(half value) { return emulator::half_values[value.bits]; }
inline half float_to_half(float value) { return {f32_to_f16(value)}; }

}  // namespace skein::kernels::gpu
