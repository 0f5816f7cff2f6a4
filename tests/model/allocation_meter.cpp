#include "tests/model/allocation_meter.hpp"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {
std::size_t held = 0, peak = 0;
}

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  held += memory ? malloc_usable_size(memory) : 0;
  peak = std::max(peak, held);
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

allocation_meter::allocation_meter() : held_before_(held) { peak = held; }
std::size_t allocation_meter::peak_bytes() const { return peak - held_before_; }

}  // namespace skein::test
