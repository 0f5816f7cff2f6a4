#include "kernels/cpu/aligned_buffer.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace skein::kernels::cpu {

namespace {

constexpr std::size_t line_bytes = 64;
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

std::size_t rounded_up(std::size_t bytes, std::size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

/// Whole huge pages; maps one more than needed and gives the unaligned ends back.
void* map_huge(std::size_t bytes) {
  void* mapped = mmap(nullptr, bytes + huge_page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(mapped);
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(begin) % huge_page_bytes;
  if (before > 0) munmap(begin, before);
  if (before < huge_page_bytes) munmap(begin + before + bytes, huge_page_bytes - before);
  madvise(begin + before, bytes, MADV_HUGEPAGE);  // a wish: without huge pages everything still works
  return begin + before;
}

}  // namespace

void* allocate_zeroed(std::size_t bytes) {
  if (bytes >= huge_page_bytes) return map_huge(rounded_up(bytes, huge_page_bytes));
  const std::size_t whole_lines = rounded_up(bytes + 1, line_bytes);
  void* memory = std::aligned_alloc(line_bytes, whole_lines);
  if (!memory) throw std::bad_alloc();
  std::memset(memory, 0, whole_lines);
  return memory;
}

void release_zeroed(void* memory, std::size_t bytes) {
  if (bytes >= huge_page_bytes)
    munmap(memory, rounded_up(bytes, huge_page_bytes));
  else
    std::free(memory);
}

}  // namespace skein::kernels::cpu
