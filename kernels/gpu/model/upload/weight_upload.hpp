#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/tensor.hpp"
#include "kernels/gpu/types/elements.hpp"
#include "kernels/weights/model_weights.hpp"
#include "kernels/weights/weight_format.hpp"

namespace skein::kernels::gpu {

/// Copies tensors from mapped files to the device. Threads convert pieces into pinned memory and the caller's thread
/// sends the pieces that are ready, so that reading, converting and copying overlap. Conversion between bf16 and fp16
/// happens on the device. Values beyond the range of fp16 become its largest value. Pinned memory is bounded whatever
/// the sizes of the tensors: two pieces per thread, or two of the longest row or panel if that is more.
class weight_upload {
 public:
  struct options {
    std::uint32_t threads = 0;  ///< that convert; 0: one per CPU available, at most 8, or 64 if tensors are quantised
    std::size_t piece_bytes = std::size_t{4} << 20;  ///< longer for a row or panel that does not fit
  };

  /// Progress is reported against `total_bytes`, in bytes of the source.
  weight_upload(const load_progress& progress, std::uint64_t total_bytes, const options& how);
  weight_upload(const load_progress& progress, std::uint64_t total_bytes)
      : weight_upload(progress, total_bytes, options{}) {}

  /// Adds a two-dimensional view, of any strides, as [height, width] rows of `type` at `to` on the device, padded with
  /// zeros. Views and their memory must live until run() returns.
  void add(std::byte* to, const tensor_view& from, element type, std::uint32_t height, std::uint32_t width);

  /// The same as a quantised matrix, in the layout of types/coded_layout.hpp; `height` and `width` are multiples of 64.
  void add_coded(std::byte* to, const tensor_view& from, element type, weight_format format, std::uint32_t height,
                 std::uint32_t width);

  /// The same as rows of `width` codes of e4m3 at `codes`, and at `scales` a float for each of its rows that are not
  /// padding.
  void add_rows(std::byte* codes, std::byte* scales, const tensor_view& from, std::uint32_t height,
                std::uint32_t width);

  /// Copies everything that was added and waits for it; reports progress on the caller's thread. Throws device_failure,
  /// with unsupported if a bf16 weight is beyond the range of the fp16 that it becomes or a scale is too large, and
  /// what a thread threw that converts, such as std::bad_alloc.
  void run();

 private:
  struct tensor {
    tensor_view from;
    element type;
    std::uint32_t width;
    weight_format format = {};    ///< if it is quantised
    std::byte* scales = nullptr;  ///< of a tensor that is stored as rows of codes
  };
  /// Rows of a tensor that are sent together.
  struct job {
    std::size_t tensor;
    std::uint32_t first_row, rows;
    std::byte* to;
    std::uint64_t source_bytes;
  };
  class pieces;

  /// Adds a tensor and its jobs, of whole `lines` of `line_bytes` that have `line_rows` rows each.
  void add_lines(std::byte* to, tensor of, std::uint32_t height, std::uint32_t line_rows, std::size_t line_bytes);
  [[nodiscard]] std::size_t bytes_of(const job& which) const;
  /// The rows that have scales, which follow the codes in a piece.
  [[nodiscard]] std::size_t scaled_rows(const job& which) const;
  void fill_rows(std::byte* piece, const job& which, std::vector<float>& scratch);
  void fill_coded(std::byte* piece, const job& which, std::vector<float>& scratch);
  void fill(std::byte* piece, const job& which, std::vector<float>& scratch);

  const load_progress progress_;
  const std::uint64_t total_bytes_;
  const std::uint32_t threads_;
  const std::size_t piece_bytes_;
  std::size_t longest_line_ = 0;  ///< bytes
  std::vector<tensor> tensors_;
  std::vector<job> jobs_;
  std::atomic<std::uint64_t> beyond_f16_ = 0;    ///< weights that became fp16 and are too large for it
  std::atomic<std::uint64_t> beyond_scale_ = 0;  ///< groups of codes whose scale is too large beside bf16 activations
};

}  // namespace skein::kernels::gpu
