#include "base/metrics/metrics.hpp"

#include <algorithm>

namespace skein::metrics {
namespace {

// Only one thread writes, so a load and a store suffice: no locked instruction.
template <typename Number>
void add(std::atomic<Number>& to, Number more) noexcept {
  to.store(to.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

}  // namespace

void histogram::observe(double value, std::uint64_t times) noexcept {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  add(counts_[static_cast<std::size_t>(bucket)], times);
  add(total_, value * static_cast<double>(times));
}

void histogram::mirror(const histogram& other) noexcept {
  for (std::size_t i = 0; i < counts_.size(); ++i)
    counts_[i].store(other.counts_[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
  total_.store(other.total_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

histogram_sum& histogram_sum::operator+=(const histogram& more) noexcept {
  bounds = more.bounds_;
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += more.counts_[i].load(std::memory_order_relaxed);
  total += more.total_.load(std::memory_order_relaxed);
  return *this;
}

}  // namespace skein::metrics
