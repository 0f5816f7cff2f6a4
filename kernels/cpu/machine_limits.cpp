#include "kernels/cpu/machine_limits.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "kernels/cpu/aligned_buffer.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/machine_limits.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/vector_math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace skein::kernels::cpu::HWY_NAMESPACE {

// Sums `count` floats, a multiple of 64; four streams of loads saturate the memory.
float read_all(const float* from, std::size_t count) {
  const floats d;
  const std::size_t quarter = count / 4;
  auto a = hn::Zero(d), b = a, c = a, e = a;
  for (std::size_t i = 0; i < quarter; i += hn::Lanes(d)) {
    for (std::size_t stream = 0; stream < 4; ++stream) hwy::Prefetch(from + stream * quarter + i + 256);
    a = hn::Add(a, hn::Load(d, from + i));
    b = hn::Add(b, hn::Load(d, from + quarter + i));
    c = hn::Add(c, hn::Load(d, from + 2 * quarter + i));
    e = hn::Add(e, hn::Load(d, from + 3 * quarter + i));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

// Twelve independent chains exceed latency times throughput of current FMA units. Returns the number of operations.
double multiply_add(std::size_t rounds, float* sink) {
  const floats d;
  constexpr std::size_t kChains = 12;
  float_vector sums[kChains];
#pragma GCC unroll 12
  for (std::size_t c = 0; c < kChains; ++c) sums[c] = hn::Set(d, static_cast<float>(c));
  const auto factor = hn::Set(d, 0.999f), addend = hn::Set(d, 1.0f);
  for (std::size_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (std::size_t c = 0; c < kChains; ++c) sums[c] = hn::MulAdd(sums[c], factor, addend);
  }
#pragma GCC unroll 12
  for (std::size_t c = 0; c < kChains; ++c) *sink += hn::GetLane(sums[c]);
  return 2.0 * static_cast<double>(rounds * kChains * hn::Lanes(d));
}

}  // namespace skein::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein::kernels::cpu {

HWY_EXPORT(read_all);
HWY_EXPORT(multiply_add);

namespace {

constexpr std::size_t memory_bytes = std::size_t{512} << 20;
constexpr std::size_t piece_floats = std::size_t{1} << 18;  // 1 MiB
constexpr std::size_t fma_rounds = 30000;
constexpr std::size_t fma_tasks_per_thread = 16;

template <typename Work>
double seconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

machine_probe::machine_probe(std::uint32_t threads) : pool_(threads), memory_(memory_bytes / sizeof(float)) {
  pool_.run(memory_.size() / piece_floats, [&](std::size_t piece, std::uint32_t) {
    std::ranges::fill(memory_.all().subspan(piece * piece_floats, piece_floats),
                      1.0f);  // real pages, not the zero page
  });
}

double machine_probe::read_bytes_per_s(std::size_t bytes) {
  std::atomic<float> kept{0};  // stores the results so that the compiler does not remove the work
  const std::size_t all = memory_.size() / piece_floats;
  const std::size_t pieces = std::max<std::size_t>(1, bytes / (piece_floats * sizeof(float)));
  const auto read = HWY_DYNAMIC_DISPATCH(read_all);
  const double time = seconds([&] {
    pool_.run(pieces, [&](std::size_t piece, std::uint32_t) {
      const float* from = memory_.data() + (next_piece_ + piece) % all * piece_floats;
      kept.store(read(from, piece_floats), std::memory_order_relaxed);
    });
  });
  next_piece_ = (next_piece_ + pieces) % all;
  return static_cast<double>(pieces * piece_floats * sizeof(float)) / time;
}

double machine_probe::fma_flop_per_s() {
  std::atomic<float> kept{0};
  std::atomic<double> operations_of_task{0};
  const std::size_t tasks = fma_tasks_per_thread * pool_.threads();
  const auto multiply = HWY_DYNAMIC_DISPATCH(multiply_add);
  const double time = seconds([&] {
    pool_.run(tasks, [&](std::size_t, std::uint32_t) {
      float sink = 0;
      operations_of_task.store(multiply(fma_rounds, &sink), std::memory_order_relaxed);
      kept.store(sink, std::memory_order_relaxed);
    });
  });
  return operations_of_task * static_cast<double>(tasks) / time;
}

}  // namespace skein::kernels::cpu
#endif
