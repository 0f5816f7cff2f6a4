#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/tensor.hpp"
#include "kernels/gpu/elements.hpp"
#include "kernels/rwkv7_weights.hpp"

namespace skein::kernels::gpu {

/// Brings tensors from mapped files to the device: threads convert pieces of them into pinned memory, the caller's
/// sends what is ready, so that reading, converting and copying all go on at once. What is bf16 there and fp16 here, or
/// the other way round, is converted where it arrives. What is beyond an fp16 becomes its largest value. The pinned
/// memory is bounded, whatever the tensors' sizes: two pieces a thread.
class weight_upload {
 public:
  struct options {
    std::uint32_t threads = 0;  ///< that convert; 0: as many as the process may use, at most 8
    std::size_t piece_bytes = std::size_t{4} << 20;
  };

  /// `total_bytes` is what the progress is told as the whole, in the bytes of the source.
  weight_upload(const load_progress& progress, std::uint64_t total_bytes, const options& how);
  weight_upload(const load_progress& progress, std::uint64_t total_bytes)
      : weight_upload(progress, total_bytes, options{}) {}

  /// A two-dimensional view, of any strides, as [height, width] rows of `type` at `to` on the device; what it does not
  /// have is zeros. A row must fit into a piece (checked). Views and their memory live until run() is done.
  void add(std::byte* to, const tensor_view& from, element type, std::uint32_t height, std::uint32_t width);

  /// Brings over all that was added, and waits for it; the progress is told on the caller's thread. Throws
  /// device_failure.
  void run();

 private:
  struct tensor {
    tensor_view from;
    element type;
    std::uint32_t width;
  };
  /// Rows of a tensor that go over at once.
  struct job {
    std::size_t tensor;
    std::uint32_t first_row, rows;
    std::byte* to;
    std::uint64_t source_bytes;
  };
  class pieces;

  [[nodiscard]] std::size_t bytes_of(const job& which) const;
  void fill(std::byte* piece, const job& which, std::vector<float>& scratch) const;

  const load_progress progress_;
  const std::uint64_t total_bytes_;
  const std::uint32_t threads_;
  const std::size_t piece_bytes_;
  std::vector<tensor> tensors_;
  std::vector<job> jobs_;
};

}  // namespace skein::kernels::gpu
