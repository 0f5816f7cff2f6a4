#include "tests/engine/counted_new.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

#if defined(SKEIN_GPU_EMULATOR)
#include "kernels/gpu/runtime/emulator/emulator.hpp"
#endif

namespace {

#if defined(SKEIN_GPU_EMULATOR)  // a device takes no memory of the host's for what is queued in it
bool counts() { return skein::kernels::gpu::emulator::own_memory::depth == 0; }
#else
bool counts() { return true; }
#endif

std::atomic<std::uint64_t> allocations{0};

void* counted(std::size_t bytes) {
  if (counts()) allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

namespace skein::test {

std::uint64_t allocation_count() { return allocations.load(std::memory_order_relaxed); }

}  // namespace skein::test

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
