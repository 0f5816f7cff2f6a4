#include "kernels/gpu/runtime/emulator/emulator.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/gpu/runtime/emulator/early_reads.hpp"
#include "kernels/gpu/runtime/emulator/launch_count.hpp"

namespace skein::kernels::gpu {

namespace {

using work = std::function<void()>;

constexpr int stale = 0xff;  // fills fresh memory: NaNs as floats
constexpr std::size_t memory_bytes = std::size_t{4} << 30;

constexpr unsigned queries_in_vain = 3;

std::atomic<std::uint64_t> allocations{0}, kernels{0};
thread_local std::string last_trouble;
thread_local emuError_t last_error = emuSuccess;

void forget_kernels() {
  if (auto* const reads = emulator::early_reads::current()) reads->forget();
}

}  // namespace

const std::array<float, 0x10000> emulator::half_values = [] {
  std::array<float, 0x10000> all;
  for (std::size_t bits = 0; bits < all.size(); ++bits) all[bits] = f16_to_f32(static_cast<std::uint16_t>(bits));
  return all;
}();

thread_local int emulator::own_memory::depth = 0;
std::uint64_t emulator::device_allocations() { return allocations; }
std::uint64_t emulator::kernels_queued() { return kernels; }

// "sm_80:5": compute capability 8.0, five SMs.
emulator::device_traits emulator::usual_traits() {
  const char* const given = std::getenv("SKEIN_EMULATED_DEVICE");
  int capability = 0, sm_count = 0;
  if (!given || (std::sscanf(given, "sm_%d:%d", &capability, &sm_count) != 2 &&
                 std::sscanf(given, "sm_%da:%d", &capability, &sm_count) != 2))
    return {};
  return {std::max(1, sm_count), capability / 10, capability % 10};
}

struct emuGraph {
  std::vector<work> nodes;
};

struct emuStream {
  std::deque<work> queue;
  std::uint64_t queued = 0, done = 0;
  emuGraph* capture = nullptr;

  void push(work what) {
    if (capture) {
      capture->nodes.push_back(std::move(what));
    } else {
      queue.push_back(std::move(what));
      ++queued;
    }
  }
  void run_until(std::uint64_t end) {
    const emulator::own_memory mine;
    while (done < end) {
      const work next = std::move(queue.front());
      queue.pop_front();
      ++done;
      next();
    }
  }
};

struct emuEvent {
  emuStream* stream = nullptr;
  std::uint64_t position = 0;  ///< in the stream's queue
  unsigned queries = 0;
  std::shared_ptr<std::chrono::steady_clock::time_point> passed =
      std::make_shared<std::chrono::steady_clock::time_point>();  ///< shared: the stream may outlive the event
  void reach() const {
    if (stream) stream->run_until(position);
  }
};

const char* emuGetErrorString(emuError_t code) {
  switch (code) {
    case emuSuccess: return "no error";
    case emuErrorMemoryAllocation: return "out of memory";
    case emuErrorLaunchFailure: return last_trouble.c_str();
    case emuErrorInvalidDevice: return "no such device";
    case emuErrorNotReady: return "not ready";
  }
  return "?";
}

// As on GPUs: an error in a kernel is reported when its stream is waited for, and persists.
emuError_t emuGetLastError() { return last_error; }

emuError_t emuGetDeviceCount(int* count) { return *count = 1, emuSuccess; }
emuError_t emuSetDevice(int device) { return device == 0 ? emuSuccess : emuErrorInvalidDevice; }
emuError_t emuGetDeviceProperties(emuDeviceProp* out, int device) {
  if (device != 0) return emuErrorInvalidDevice;
  *out = {"emulator", memory_bytes, emulator::traits.sm_count, static_cast<int>(emulator::warp_width)};
  return emuSuccess;
}
emuError_t emuGetDevice(int* device) {
  *device = 0;
  return emuSuccess;
}
emuError_t emuDeviceGetAttribute(int* out, emuDeviceAttr what, int device) {
  if (device != 0) return emuErrorInvalidDevice;
  const auto& of = emulator::traits;
  switch (what) {
    case emuDevAttrMultiProcessorCount: *out = of.sm_count; break;
    case emuDevAttrComputeCapabilityMajor: *out = of.compute_capability_major; break;
    case emuDevAttrComputeCapabilityMinor: *out = of.compute_capability_minor; break;
    case emuDevAttrMaxSharedMemoryPerBlockOptin: *out = of.shared_bytes_per_block; break;
  }
  return emuSuccess;
}
emuError_t emuMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  *free_bytes = *total_bytes = memory_bytes;
  return emuSuccess;
}

emuError_t emuMalloc(void** out, std::size_t bytes) {
  ++allocations;
  *out = bytes <= memory_bytes ? std::aligned_alloc(256, (bytes + 255) / 256 * 256) : nullptr;
  if (*out == nullptr) return emuErrorMemoryAllocation;
  std::memset(*out, stale, bytes);
  emulator::remember_memory(*out, bytes);
  return emuSuccess;
}
emuError_t emuFree(void* memory) {
  if (memory) emulator::forget_memory(memory);
  return std::free(memory), emuSuccess;
}
emuError_t emuHostAlloc(void** out, std::size_t bytes, unsigned) { return emuMalloc(out, bytes); }
emuError_t emuFreeHost(void* memory) { return emuFree(memory); }

emuError_t emuMemcpyAsync(void* to, const void* from, std::size_t bytes, emuMemcpyKind, emuStream_t stream) {
  const emulator::own_memory mine;
  stream->push([=] {
    forget_kernels();
    std::memcpy(to, from, bytes);
  });
  return emuSuccess;
}
emuError_t emuMemsetAsync(void* to, int value, std::size_t bytes, emuStream_t stream) {
  const emulator::own_memory mine;
  stream->push([=] {
    forget_kernels();
    std::memset(to, value, bytes);
  });
  return emuSuccess;
}

emuError_t emuStreamCreateWithFlags(emuStream_t* out, unsigned) { return *out = new emuStream, emuSuccess; }
emuError_t emuStreamDestroy(emuStream_t stream) {
  stream->run_until(stream->queued);
  delete stream;
  return emuSuccess;
}
emuError_t emuStreamSynchronize(emuStream_t stream) {
  stream->run_until(stream->queued);
  return last_error;
}
emuError_t emuStreamWaitEvent(emuStream_t stream, emuEvent_t event, unsigned) {
  const emulator::own_memory mine;
  stream->push([stream = event->stream, position = event->position] {
    if (stream) stream->run_until(position);
  });
  return emuSuccess;
}
emuError_t emuEventCreateWithFlags(emuEvent_t* out, unsigned) { return *out = new emuEvent, emuSuccess; }
emuError_t emuEventCreate(emuEvent_t* out) { return emuEventCreateWithFlags(out, 0); }
emuError_t emuEventDestroy(emuEvent_t event) {
  delete event;
  return emuSuccess;
}
emuError_t emuEventRecord(emuEvent_t event, emuStream_t stream) {
  const emulator::own_memory mine;
  stream->push([passed = event->passed] { *passed = std::chrono::steady_clock::now(); });
  event->stream = stream;
  event->position = stream->queued;
  event->queries = 0;
  return emuSuccess;
}
emuError_t emuEventSynchronize(emuEvent_t event) {
  event->reach();
  return last_error;
}

emuError_t emuEventQuery(emuEvent_t event) {
  if (++event->queries <= queries_in_vain && event->stream && event->stream->done < event->position)
    return emuErrorNotReady;
  return emuEventSynchronize(event);
}
emuError_t emuEventElapsedTime(float* milliseconds, emuEvent_t begin, emuEvent_t end) {
  *milliseconds = std::chrono::duration<float, std::milli>(*end->passed - *begin->passed).count();
  return emuSuccess;
}

emuError_t emuStreamBeginCapture(emuStream_t stream, emuStreamCaptureMode) {
  stream->capture = new emuGraph;
  return emuSuccess;
}
emuError_t emuStreamEndCapture(emuStream_t stream, emuGraph_t* out) {
  *out = std::exchange(stream->capture, nullptr);
  return emuSuccess;
}
emuError_t emuGraphInstantiate(emuGraphExec_t* out, emuGraph_t graph, emuGraph_t*, char*, std::size_t) {
  *out = new emuGraph(*graph);
  return emuSuccess;
}
emuError_t emuGraphLaunch(emuGraphExec_t graph, emuStream_t stream) {
  const emulator::own_memory mine;
  for (const work& node : graph->nodes) stream->push(node);
  return emuSuccess;
}
emuError_t emuGraphDestroy(emuGraph_t graph) {
  delete graph;
  return emuSuccess;
}
emuError_t emuGraphExecDestroy(emuGraphExec_t graph) { return emuGraphDestroy(graph); }

void emulator::clear_error() { last_error = emuSuccess; }

void emulator::enqueue(emuStream_t stream, const char* name, extent grid, extent block, std::size_t shared_bytes,
                       bool uses_pdl, unsigned cluster, std::function<void()> kernel) {
  ++kernels;
  stream->push([=, kernel = std::move(kernel)] {
    if (last_error != emuSuccess) return;
    const auto call = [](void* context) { (*static_cast<const std::function<void()>*>(context))(); };
    auto* const reads = early_reads::current();
    if (reads) reads->begin_kernel(uses_pdl, std::size_t{grid.x} * grid.y * grid.z);
    auto trouble = block_runner::of_this_thread().run(grid, block, shared_bytes, call,
                                                      const_cast<std::function<void()>*>(&kernel), cluster);
    if (reads) reads->end_kernel();
    if (trouble.empty()) return;
    last_error = emuErrorLaunchFailure;
    last_trouble = std::string("kernel ") + name + ": " + trouble;
  });
}

}  // namespace skein::kernels::gpu
