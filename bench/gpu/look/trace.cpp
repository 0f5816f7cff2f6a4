// Records when each kernel of a program begins and ends, also inside CUDA graphs: CUDA loads the library that
// $CUDA_INJECTION64_PATH names. Writes a line for each kernel to $TRACE_CSV: begin and end in ns, blocks, dynamic
// shared memory in bytes, name. See README.md.
#include <cupti.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct kernel_time {
  std::uint64_t begin, end;
  unsigned blocks, shared_bytes;
  std::string name;
};
constexpr std::size_t kernels_max = 4'000'000, buffer_bytes = 8 << 20;

std::mutex of_kernels;
std::vector<kernel_time> kernels;

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records_max) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, buffer_bytes));
  *bytes = *buffer ? buffer_bytes : 0, *records_max = 0;
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid_bytes) {
  const std::scoped_lock lock(of_kernels);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || kernels.size() == kernels_max) continue;
    const auto* const of = reinterpret_cast<const CUpti_ActivityKernel9*>(record);
    kernels.push_back({of->start, of->end, static_cast<unsigned>(of->gridX),
                       static_cast<unsigned>(of->dynamicSharedMemory), of->name ? of->name : ""});
  }
  std::free(buffer);
}

void write_trace() {
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const char* const path = std::getenv("TRACE_CSV");
  std::FILE* const file = path ? std::fopen(path, "w") : nullptr;
  if (!file) {
    std::fprintf(stderr, "trace: TRACE_CSV names no file that can be written\n");
    return;
  }
  const std::scoped_lock lock(of_kernels);
  std::ranges::sort(kernels, {}, &kernel_time::begin);
  for (const kernel_time& k : kernels)
    std::fprintf(file, "%llu,%llu,%u,%u,%s\n", static_cast<unsigned long long>(k.begin),
                 static_cast<unsigned long long>(k.end), k.blocks, k.shared_bytes, k.name.c_str());
  std::fclose(file);
}

}  // namespace

extern "C" int InitializeInjection() {
  if (cuptiActivityRegisterCallbacks(give_buffer, take_buffer) != CUPTI_SUCCESS ||
      cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS) {
    std::fprintf(stderr, "trace: CUPTI does not record kernels here\n");
    return 0;
  }
  std::atexit(write_trace);
  return 1;
}
