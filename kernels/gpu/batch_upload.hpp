#pragma once
#include "kernels/gpu/batch.hpp"
#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/runtime/stream.hpp"

namespace skein::kernels::gpu {

/// Carries the rows of each tick to their fixed places on the device. The pinned side is written again only when the
/// copy before has been made.
class batch_upload {
 public:
  batch_upload(std::uint32_t rows_max, std::uint32_t runs_max, std::uint32_t wanted_max);

  /// Queues the copy of a tick's rows. The batch's `room` is what it needs now.
  [[nodiscard]] result<void> send_rows(const batch& rows, stream_handle in);
  /// Adds the wanted rows to those that were sent last.
  [[nodiscard]] result<void> send_wanted(std::span<const std::uint32_t> wanted, stream_handle in);

  [[nodiscard]] const device_batch& on_device() const { return on_device_; }
  [[nodiscard]] std::size_t bytes() const { return device_.bytes(); }

 private:
  /// Waits until the pinned side may be written.
  [[nodiscard]] result<void> await_copy() const { return copied_.synchronize(); }
  [[nodiscard]] result<void> copy_words(std::size_t count, stream_handle in);

  // Where each part begins in both buffers, in words of 32 bits; the counts come first.
  const std::size_t wanted_, tokens_, run_of_row_, runs_;
  pinned_buffer<std::uint32_t> pinned_;
  device_buffer<std::uint32_t> device_;
  event copied_;
  batch_counts counts_;
  device_batch on_device_;
};

}  // namespace skein::kernels::gpu
