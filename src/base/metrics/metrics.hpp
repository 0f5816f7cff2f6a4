#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

/// Metrics of the server. Each number is written by one thread, which neither locks nor allocates, and may be read by
/// any.
/// A metric that several threads count has one number per thread; the reader adds them up.
namespace skein::metrics {

inline constexpr std::size_t buckets_max = 20;

// Upper bounds of buckets, in seconds unless the name says otherwise.
inline constexpr std::array first_token_bounds{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                               0.25,  0.5,   0.75, 1.0,  2.5,  5.0,  7.5,  10.0};
/// Starts below 1 ms because an RWKV token may take less.
inline constexpr std::array token_bounds{0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.075,
                                         0.1,    0.15,  0.2,   0.3,   0.4,   0.5,    0.75, 1.0,   2.5};
inline constexpr std::array request_bounds{0.01, 0.02, 0.04, 0.08,  0.16,  0.32,  0.64,
                                           1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92};
inline constexpr std::array token_count_bounds{1.0,   2.0,    5.0,    10.0,   20.0,    50.0,    100.0,   200.0,
                                               500.0, 1000.0, 2000.0, 5000.0, 10000.0, 20000.0, 50000.0, 100000.0};
inline constexpr std::array row_bounds{1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0};

/// Sum of one or more histograms with the same bounds.
struct histogram_sum;

/// Counts values by bucket.
class histogram {
 public:
  /// `bounds`: ascending, at most buckets_max, must outlive the histogram.
  explicit histogram(std::span<const double> bounds) : bounds_(bounds) {}

  /// Called by one thread only.
  void observe(double value) noexcept { observe(value, 1); }
  /// Counts the same value `times` times.
  void observe(double value, std::uint64_t times) noexcept;
  /// Copies the counts of another histogram with the same bounds. Called by the thread that writes this one.
  void mirror(const histogram& other) noexcept;

  [[nodiscard]] std::span<const double> bounds() const { return bounds_; }

 private:
  friend struct histogram_sum;
  std::span<const double> bounds_;
  std::array<std::atomic<std::uint64_t>, buckets_max + 1> counts_{};
  std::atomic<double> total_{0};
};

struct histogram_sum {
  std::span<const double> bounds;
  std::array<std::uint64_t, buckets_max + 1> counts{};  ///< per bucket, not cumulative; the last has no upper bound
  double total = 0;                                     ///< sum of all values

  histogram_sum& operator+=(const histogram& more) noexcept;
};

}  // namespace skein::metrics
