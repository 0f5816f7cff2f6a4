#include "kernels/cpu/aligned_buffer.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace skein::kernels::cpu {

namespace {

constexpr std::size_t line_bytes = 64;
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

std::size_t rounded_up(std::size_t bytes, std::size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

std::atomic<std::size_t> bytes_held{0};

/// Maps `bytes`, a multiple of the huge page size; maps one page more than needed and unmaps the unaligned ends.
void* map_huge(std::size_t bytes) {
  void* mapped = mmap(nullptr, bytes + huge_page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(mapped);
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(begin) % huge_page_bytes;
  if (before > 0) munmap(begin, before);
  if (before < huge_page_bytes) munmap(begin + before + bytes, huge_page_bytes - before);
  madvise(begin + before, bytes, MADV_HUGEPAGE);  // best effort: everything works without huge pages
  return begin + before;
}

}  // namespace

std::size_t allocated_bytes(std::size_t bytes) {
  return bytes >= huge_page_bytes ? rounded_up(bytes, huge_page_bytes) : rounded_up(bytes + 1, line_bytes);
}

std::size_t zeroed_bytes_held() { return bytes_held.load(std::memory_order_relaxed); }

void* allocate_zeroed(std::size_t bytes) {
  const std::size_t allocated = allocated_bytes(bytes);
  void* const memory = bytes >= huge_page_bytes ? map_huge(allocated) : std::aligned_alloc(line_bytes, allocated);
  if (!memory) throw std::bad_alloc();
  if (bytes < huge_page_bytes) std::memset(memory, 0, allocated);
  bytes_held.fetch_add(allocated, std::memory_order_relaxed);
  return memory;
}

void release_zeroed(void* memory, std::size_t bytes) {
  if (!memory) return;
  bytes_held.fetch_sub(allocated_bytes(bytes), std::memory_order_relaxed);
  if (bytes >= huge_page_bytes)
    munmap(memory, allocated_bytes(bytes));
  else
    std::free(memory);
}

}  // namespace skein::kernels::cpu
