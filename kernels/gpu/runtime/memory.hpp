#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "kernels/gpu/runtime/failure.hpp"
#include "kernels/gpu/runtime/runtime.hpp"

namespace skein::kernels::gpu {

/// Throws device_failure if an allocation failed; the message has the size, the purpose and the free memory.
inline void require_memory(SKEIN_GPU(Error_t) code, const char* doing, std::size_t bytes, const char* purpose) {
  if (code == SKEIN_GPU(Success)) return;
  std::size_t free_bytes = 0, total_bytes = 0;
  const bool known = SKEIN_GPU(MemGetInfo)(&free_bytes, &total_bytes) == SKEIN_GPU(Success);
  auto why =
      outcome(code, (std::string(doing) + ' ' + std::to_string(bytes) + " bytes for " + purpose).c_str()).error();
  if (known) why.message += " (" + std::to_string(free_bytes) + " bytes of device memory are free)";
  throw device_failure(std::move(why));
}

/// Bytes that device_buffers hold now, on all devices.
inline std::atomic<std::size_t> device_bytes_held{0};

/// `count` elements in device memory, not initialised. Allocated at start, never in a tick.
template <typename T>
class device_buffer {
 public:
  device_buffer() = default;
  /// Throws device_failure if the memory is not available; `purpose` is for the message.
  explicit device_buffer(std::size_t count, const char* purpose = "work") : count_(count) {
    void* memory = nullptr;
    require_memory(SKEIN_GPU(Malloc)(&memory, bytes()), "allocating", bytes(), purpose);
    data_ = static_cast<T*>(memory);
    device_bytes_held.fetch_add(bytes(), std::memory_order_relaxed);
  }
  ~device_buffer() {
    static_cast<void>(SKEIN_GPU(Free)(data_));
    device_bytes_held.fetch_sub(bytes(), std::memory_order_relaxed);
  }
  device_buffer(device_buffer&& other) noexcept { swap(other); }
  device_buffer& operator=(device_buffer&& other) noexcept {
    device_buffer(std::move(other)).swap(*this);
    return *this;
  }
  device_buffer(const device_buffer&) = delete;  // a copy would need a stream

  /// Device addresses: the host may compute with them but not dereference them.
  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T); }

 private:
  void swap(device_buffer& other) noexcept { std::swap(data_, other.data_), std::swap(count_, other.count_); }

  T* data_ = nullptr;
  std::size_t count_ = 0;
};

/// Pinned host memory, for copies that run while the host continues; zeroed at construction.
template <typename T>
class pinned_buffer {
 public:
  explicit pinned_buffer(std::size_t count, const char* purpose = "copies") : count_(count) {
    void* memory = nullptr;
    require_memory(SKEIN_GPU(HostAlloc)(&memory, bytes(), SKEIN_GPU(HostAllocDefault)), "pinning", bytes(), purpose);
    data_ = static_cast<T*>(memory);
    std::uninitialized_value_construct_n(data_, count_);
  }
  ~pinned_buffer() { static_cast<void>(SKEIN_GPU(FreeHost)(data_)); }
  pinned_buffer(const pinned_buffer&) = delete;  // queued copies may still point here
  pinned_buffer& operator=(const pinned_buffer&) = delete;

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::span<T> all() const { return {data_, count_}; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T); }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace skein::kernels::gpu
