#include "tests/support/failing_new.hpp"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
thread_local std::size_t fails_from = never;
thread_local bool spared = false;
std::atomic<std::size_t> fails_elsewhere_from{never};

void* allocate_or_null(std::size_t bytes) noexcept {
  const bool fails = bytes >= fails_from || (!spared && bytes >= fails_elsewhere_from.load(std::memory_order_relaxed));
  return fails ? nullptr : std::malloc(bytes);
}

void* allocate(std::size_t bytes) {
  if (void* memory = allocate_or_null(bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

namespace skein::test {

failing_new::failing_new(std::size_t bytes_min) { fails_from = bytes_min; }
failing_new::~failing_new() { fails_from = never; }

failing_new_elsewhere::failing_new_elsewhere(std::size_t bytes_min) {
  spared = true;
  fails_elsewhere_from = bytes_min;
}
failing_new_elsewhere::~failing_new_elsewhere() {
  fails_elsewhere_from = never;
  spared = false;
}

}  // namespace skein::test

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate_or_null(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocate_or_null(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
