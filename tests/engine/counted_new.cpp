#include "tests/engine/counted_new.hpp"

#include <malloc.h>

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
std::atomic<std::size_t> held{0};

void* counted(void* memory) {
  if (counts()) allocations.fetch_add(1, std::memory_order_relaxed);
  if (!memory) throw std::bad_alloc();
  held.fetch_add(malloc_usable_size(memory), std::memory_order_relaxed);
  return memory;
}
void* counted(std::size_t bytes) { return counted(std::malloc(bytes)); }
void* counted(std::size_t bytes, std::align_val_t alignment) {
  const auto line = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(line, (bytes + line - 1) / line * line));
}

void* counted_or_null(std::size_t bytes) {
  void* const memory = std::malloc(bytes);
  return memory ? counted(memory) : nullptr;
}

void give_back(void* memory) {
  held.fetch_sub(malloc_usable_size(memory), std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

namespace skein::test {

std::uint64_t allocation_count() { return allocations.load(std::memory_order_relaxed); }
std::size_t held_bytes() { return held.load(std::memory_order_relaxed); }

}  // namespace skein::test

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
// AddressSanitizer has its own version of these two, which does not call the ones above.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return counted_or_null(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return counted_or_null(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) { return counted(bytes, alignment); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) { return counted(bytes, alignment); }
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete[](void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }
