#include "tests/model/allocation_meter.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> held = 0, peak = 0;

void count(std::size_t bytes) noexcept {
  const std::size_t now = held += bytes;
  std::size_t most = peak;
  while (most < now && !peak.compare_exchange_weak(most, now)) {
  }
}

}  // namespace

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  count(memory ? malloc_usable_size(memory) : 0);
  return memory;
}
void* operator new(std::size_t bytes) {
  void* const memory = operator new(bytes, std::nothrow);
  return memory ? memory : throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  held -= memory ? malloc_usable_size(memory) : 0;
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace skein::test {

allocation_meter::allocation_meter() : held_before_(held) { peak = held_before_; }
std::size_t allocation_meter::peak_bytes() const { return peak - held_before_; }

}  // namespace skein::test
