#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/gpu/gemm/matmul_library.hpp"

namespace skein::kernels::gpu {

/// Measures how many seconds a stream takes for the work that `queue_work` queues; may call it any number of times.
using stopwatch = std::function<result<double>(stream_handle in, const std::function<result<void>()>& queue_work)>;
/// Measures the work by the device's clock in a captured CUDA graph, so that launch overhead on the host does not
/// count. The work runs once before, because a first launch also loads code.
[[nodiscard]] result<double> seconds_on_device(stream_handle in, const std::function<result<void>()>& queue_work);

/// The GEMMs of a model: by our own kernels, or for many rows by a library wherever that was measured to be faster.
/// With a library, the bits of a row may depend on the number of rows.
///
/// Measurements hold for buckets of row counts; the limit of each bucket is twice that of the one before. A launch of
/// several GEMMs may be divided between the library and one launch of our kernels if that is faster than our kernels
/// alone, or be left to our kernels with partial sums (split-K) if that is the fastest.
class tuned_matmul {
 public:
  static constexpr std::uint32_t library_rows_min = 256;
  static constexpr std::size_t workspace_bytes = std::size_t{64} << 20;

  tuned_matmul(const matmul_functions& ours, element type) : ours_(ours), type_(type) {}
  /// Allocates the workspace, for GEMMs of up to `rows_max` rows. Throws device_failure.
  tuned_matmul(const matmul_functions& ours, element type, std::unique_ptr<matmul_library> library,
               std::uint32_t rows_max, stopwatch watch = seconds_on_device);

  /// The upper row limits of the buckets, ascending; empty without a library.
  [[nodiscard]] std::vector<std::uint32_t> bucket_rows() const;
  /// Measures this launch, unless launches of the same shapes are known, for the bucket of `rows`; writes to the
  /// outputs and waits. *row_count is `rows`. Launches that were never measured use our kernels. Second products are
  /// measured, and with a library also run, in a launch of their own.
  [[nodiscard]] result<void> learn(stream_handle in, std::span<const gemm> launch, const std::uint32_t* row_count,
                                   std::uint32_t rows);

  /// As matmul_functions. With a library, products of library_rows_min rows or more store partial sums only if that was
  /// measured to be faster; otherwise their `segments` are ignored.
  [[nodiscard]] result<void> run(stream_handle in, std::span<const gemm> launch, const std::uint32_t* row_count,
                                 std::uint32_t rows_room) const;
  [[nodiscard]] bool splits(std::span<const gemm> launch, std::uint32_t rows_room) const {
    return ours_.splits(launch, rows_room) && (!takes(rows_room) || is_better_in_parts(independent(launch), rows_room));
  }

  [[nodiscard]] bool adds_each() const { return ours_.adds_each; }
  [[nodiscard]] double blocks_per_sm() const { return ours_.blocks_per_sm; }

  [[nodiscard]] std::size_t bytes() const { return workspace_.bytes(); }
  /// Human-readable: the GEMMs that the library runs, as "cuBLASLt 130100; 4096x4096 of 512 1024"; empty without one.
  [[nodiscard]] std::string description() const;

 private:
  // How one product of a launch is run: by our kernels if `library` is null.
  struct way {
    gemm shape;  ///< compared by same_shape()
    std::shared_ptr<library_gemm> library;
    std::size_t algorithm = 0;
  };
  struct launch_ways {
    std::vector<way> of;  ///< one per product
    bool in_parts;        ///< all by our kernels, with partial sums where possible
  };
  struct bucket {
    std::uint32_t rows_max;
    std::vector<way> gemms;
    std::vector<launch_ways> launches;
  };

  [[nodiscard]] bool takes(std::uint32_t rows) const { return library_ && rows >= library_rows_min; }
  [[nodiscard]] const bucket* find_bucket(std::uint32_t rows) const;
  [[nodiscard]] static const launch_ways* find_launch(const bucket& b, std::span<const gemm> launch);
  [[nodiscard]] bool is_better_in_parts(std::span<const gemm> launch, std::uint32_t rows) const;
  [[nodiscard]] result<double> seconds_in_parts(stream_handle in, std::span<const gemm> launch,
                                                const std::uint32_t* row_count, std::uint32_t rows) const;
  [[nodiscard]] result<way> fastest(stream_handle in, bucket& b, const gemm& p, const std::uint32_t* row_count,
                                    std::uint32_t rows);
  [[nodiscard]] result<void> run_as(stream_handle in, std::span<const way> ways, std::span<const gemm> launch,
                                    const std::uint32_t* row_count, std::uint32_t rows) const;
  /// The buckets in which a launch leaves that product to the library, as text.
  [[nodiscard]] std::string rows_by_library(const gemm& p) const;
  [[nodiscard]] result<void> run_by_library(stream_handle in, const way& how, const gemm& p, std::uint32_t rows) const;

  matmul_functions ours_;
  element type_;
  std::unique_ptr<matmul_library> library_;
  stopwatch watch_;
  device_buffer<std::byte> workspace_;
  std::vector<bucket> buckets_;
};

}  // namespace skein::kernels::gpu
