#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/gpu/matmul_library.hpp"

namespace skein::kernels::gpu {

/// Seconds that a stream takes for what `queue_work` puts into it, which may run any number of times.
using stopwatch = std::function<result<double>(stream_handle in, const std::function<result<void>()>& queue_work)>;
/// By the device's clock, recorded in a graph: the host's share does not count. The work runs once before, for all that
/// is loaded with a first launch.
[[nodiscard]] result<double> seconds_on_device(stream_handle in, const std::function<result<void>()>& queue_work);

/// The products of a model: by our own kernels, and those of many rows by a library wherever it was measured to be
/// faster. Then the bits of a row may hang on how many rows there are.
///
/// Measurements hold for rows in buckets, each twice as high as the one before. A launch of several products may become
/// some by the library and one launch of ours for the others, if that is faster than ours for all; or it is left to
/// ours in parts, if that is the fastest.
class tuned_matmul {
 public:
  static constexpr std::uint32_t library_rows_min = 256;
  static constexpr std::size_t workspace_bytes = std::size_t{64} << 20;

  tuned_matmul(const matmul_functions& ours, element type) : ours_(ours), type_(type) {}
  /// Takes the workspace, for products of up to `rows_max` rows. Throws device_failure.
  tuned_matmul(const matmul_functions& ours, element type, std::unique_ptr<matmul_library> library,
               std::uint32_t rows_max, stopwatch watch = seconds_on_device);

  /// The most rows of each bucket, rising; none without a library.
  [[nodiscard]] std::vector<std::uint32_t> bucket_rows() const;
  /// Measures that launch and launches of those shapes, unless they are known, for the bucket of `rows`; writes to
  /// their outputs and waits. *row_count is `rows`. What was never measured is multiplied by ours. Second products are
  /// measured, and where there is a library also run, in a launch of their own.
  [[nodiscard]] result<void> learn(stream_handle in, std::span<const product> launch, const std::uint32_t* row_count,
                                   std::uint32_t rows);

  /// As matmul_functions; where there is a library, products of library_rows_min rows and more are in parts only if
  /// they were measured, and segments of others are not kept.
  [[nodiscard]] result<void> run(stream_handle in, std::span<const product> launch, const std::uint32_t* row_count,
                                 std::uint32_t rows_room) const;
  [[nodiscard]] bool splits(std::span<const product> launch, std::uint32_t rows_room) const {
    return ours_.splits(launch, rows_room) && (!takes(rows_room) || is_better_in_parts(independent(launch), rows_room));
  }

  [[nodiscard]] std::size_t bytes() const { return workspace_.bytes(); }
  /// For people: what the library does, as "cuBLASLt 130100; 4096x4096 of 512 1024"; empty without one.
  [[nodiscard]] std::string description() const;

 private:
  // How one product of a launch is done: by ours where `library` is null.
  struct way {
    product shape;  ///< of which same_shape() counts
    std::shared_ptr<library_product> library;
    std::size_t algorithm = 0;
  };
  struct launch_ways {
    std::vector<way> of;  ///< one for each product
    bool in_parts;        ///< all by ours, where they can be
  };
  struct bucket {
    std::uint32_t rows_max;
    std::vector<way> products;
    std::vector<launch_ways> launches;
  };

  [[nodiscard]] bool takes(std::uint32_t rows) const { return library_ && rows >= library_rows_min; }
  [[nodiscard]] const bucket* find_bucket(std::uint32_t rows) const;
  [[nodiscard]] static const launch_ways* find_launch(const bucket& b, std::span<const product> launch);
  [[nodiscard]] bool is_better_in_parts(std::span<const product> launch, std::uint32_t rows) const;
  [[nodiscard]] result<double> seconds_in_parts(stream_handle in, std::span<const product> launch,
                                                const std::uint32_t* row_count, std::uint32_t rows) const;
  [[nodiscard]] result<way> fastest(stream_handle in, bucket& b, const product& p, const std::uint32_t* row_count,
                                    std::uint32_t rows);
  [[nodiscard]] result<void> run_as(stream_handle in, std::span<const way> ways, std::span<const product> launch,
                                    const std::uint32_t* row_count, std::uint32_t rows) const;
  /// The buckets in which a launch leaves that product to the library.
  [[nodiscard]] std::string rows_by_library(const product& p) const;
  [[nodiscard]] result<void> run_by_library(stream_handle in, const way& how, const product& p,
                                            std::uint32_t rows) const;

  matmul_functions ours_;
  element type_;
  std::unique_ptr<matmul_library> library_;
  stopwatch watch_;
  device_buffer<std::byte> workspace_;
  std::vector<bucket> buckets_;
};

}  // namespace skein::kernels::gpu
