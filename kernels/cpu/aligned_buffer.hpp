#pragma once
#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace skein::kernels::cpu {

/// Allocates zeroed memory, aligned to 64 bytes. From 2 MiB it is aligned to huge pages and requests them: weights are
/// read in long streams, and 4 KiB pages would cost a TLB miss every 64 lines. Throws std::bad_alloc.
[[nodiscard]] void* allocate_zeroed(std::size_t bytes);
void release_zeroed(void* memory, std::size_t bytes);
/// The memory that allocate_zeroed takes for `bytes`: whole cache lines, or whole huge pages.
[[nodiscard]] std::size_t allocated_bytes(std::size_t bytes);
/// The total of all allocations that were not released.
[[nodiscard]] std::size_t zeroed_bytes_held();

/// Owns `size` elements of a trivial type. Move-only, because copying weights or states is never intended.
template <typename T>
class aligned_buffer {
 public:
  aligned_buffer() = default;
  explicit aligned_buffer(std::size_t size) : memory_(make(size), deleter{size}) {}

  [[nodiscard]] T* data() const { return memory_.get(); }
  [[nodiscard]] std::size_t size() const { return memory_.get_deleter().size; }
  [[nodiscard]] std::size_t bytes() const { return size() * sizeof(T); }
  [[nodiscard]] std::span<T> all() const { return {data(), size()}; }

 private:
  struct deleter {
    std::size_t size = 0;
    void operator()(T* memory) const { release_zeroed(memory, size * sizeof(T)); }
  };
  static T* make(std::size_t size) {
    if (size > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_alloc();
    return static_cast<T*>(allocate_zeroed(size * sizeof(T)));
  }

  std::unique_ptr<T[], deleter> memory_;
};

}  // namespace skein::kernels::cpu
