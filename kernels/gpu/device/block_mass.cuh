#pragma once
#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/device/convert.cuh"

/// Counts and weights of tokens that the threads of a block add up. Weights are whole numbers, so a sum is the same in
/// whatever order it is made: no draw hangs on the order of threads or on the width of a warp.
namespace skein::kernels::gpu {

/// What blocks that work on masses are made of: as many threads as bins.
inline constexpr unsigned mass_threads = 256;

/// A weight of 1, the largest token's. Tokens below 2^-44 of it weigh nothing; half a million of weight 1 fit.
inline constexpr float weight_unit = 0x1p44f;
inline constexpr std::uint32_t weighed_tokens_max = 1u << 19;
__device__ inline std::uint64_t to_weight(float of_largest) {
  return static_cast<std::uint64_t>(of_largest * weight_unit);
}

struct mass {
  std::uint32_t count;
  std::uint64_t weight;

  __device__ mass& operator+=(const mass& more) {
    count += more.count;
    weight += more.weight;
    return *this;
  }
  [[nodiscard]] __device__ bool reaches(const mass& either) const {
    return count >= either.count || weight >= either.weight;
  }
};
__device__ inline mass operator+(mass a, const mass& b) { return a += b; }

inline constexpr std::uint32_t any_count = 0xffffffff;
inline constexpr std::uint64_t any_weight = ~std::uint64_t{0};

__device__ inline std::uint32_t shuffle_xor_bits(std::uint32_t bits, unsigned mask) {
  return float_to_bits(shuffle_xor(bits_to_float(bits), mask));
}
__device__ inline std::uint64_t shuffle_xor_bits(std::uint64_t bits, unsigned mask) {
  const std::uint64_t low = shuffle_xor_bits(static_cast<std::uint32_t>(bits), mask);
  const std::uint64_t high = shuffle_xor_bits(static_cast<std::uint32_t>(bits >> 32), mask);
  return high << 32 | low;
}
__device__ inline mass shuffle_xor_sum(const mass& m, unsigned mask) {
  return {shuffle_xor_bits(m.count, mask), shuffle_xor_bits(m.weight, mask)};
}

/// The sum over the threads before this one; `total`: over all.
template <typename Sum>
__device__ Sum block_prefix(const Sum& own, Sum& total) {
  __shared__ Sum of_warp[1024 / 32];
  Sum before{}, sum = own;
  for (unsigned mask = 1; mask < warp_width; mask *= 2) {  // sum: of the mask lanes around this one
    const Sum other = shuffle_xor_sum(sum, mask);
    if (threadIdx.x & mask) before += other;
    sum += other;
  }
  const unsigned own_warp = threadIdx.x / warp_width;
  __syncthreads();  // nobody still reads the sums of the call before
  if (threadIdx.x % warp_width == 0) of_warp[own_warp] = sum;
  __syncthreads();
  total = Sum{};
  for (unsigned warp = 0; warp < blockDim.x / warp_width; ++warp) {
    if (warp == own_warp) before += total;
    total += of_warp[warp];
  }
  return before;
}

/// The largest value of all threads.
__device__ inline float block_max(float value) {
  __shared__ float of_warp[1024 / 32];
  for (unsigned mask = warp_width / 2; mask > 0; mask /= 2) {
    const float other = shuffle_xor(value, mask);
    if (other > value) value = other;
  }
  __syncthreads();  // nobody still reads the maxima of the call before
  if (threadIdx.x % warp_width == 0) of_warp[threadIdx.x / warp_width] = value;
  __syncthreads();
  for (unsigned warp = 0; warp < blockDim.x / warp_width; ++warp)
    if (of_warp[warp] > value) value = of_warp[warp];
  return value;
}

/// A histogram in shared memory, a bin for each thread of the block.
struct mass_bins {
  std::uint32_t count[mass_threads], low[mass_threads], high[mass_threads];

  __device__ void clear() { count[threadIdx.x] = low[threadIdx.x] = high[threadIdx.x] = 0; }
  __device__ void add(unsigned bin, std::uint64_t weight) {
    atomicAdd(&count[bin], 1u);
    // Two additions of 32 bits, which shared memory does by itself, and the carry.
    const auto low_part = static_cast<std::uint32_t>(weight);
    auto high_part = static_cast<std::uint32_t>(weight >> 32);
    if (low_part != 0) {
      const std::uint32_t before = atomicAdd(&low[bin], low_part);
      high_part += before + low_part < before ? 1u : 0u;
    }
    if (high_part != 0) atomicAdd(&high[bin], high_part);
  }
  [[nodiscard]] __device__ mass of(unsigned bin) const {
    return {count[bin], static_cast<std::uint64_t>(high[bin]) << 32 | low[bin]};
  }
};

/// The one histogram of a block: there is no shared memory for one in each function that needs it.
__device__ inline mass_bins& bins_of_block() {
  __shared__ mass_bins bins;
  return bins;
}

/// Where a descent ended: all entries above `key`, and those that equal it.
struct descent {
  std::uint32_t key;
  mass above, here;
};

/// Entries of which there are no more than threads, in shared memory.
struct few_entries {
  struct entry {
    std::uint64_t weight;
    std::uint32_t key;
  } of[mass_threads];
};
__device__ inline few_entries& few_of_block() {
  __shared__ few_entries few;
  return few;
}

/// As descend(), for the first `count` of few_of_block(), which threads may have stored without a barrier since; above
/// them lie entries of the mass `above`. Each is compared with all others, by as many threads as there are to spare.
/// What has the key 0 and weighs nothing is not there, if only the weight has a limit, and one that it reaches.
__device__ inline descent descend_few(std::uint32_t count, const mass& above, const mass& limit) {
  const few_entries& few = few_of_block();
  __shared__ descent found;
  unsigned threads = 1;  // for an entry
  while (threads < 8 && count * threads * 2 <= mass_threads) threads *= 2;
  __syncthreads();
  const std::uint32_t own = threadIdx.x / threads;
  const std::uint32_t key = own < count ? few.of[own].key : 0;
  mass before = {0, 0}, here = {0, 0};
  std::uint32_t equal_before = 0;  // of entries with the same key one speaks for all
#pragma unroll 4
  for (std::uint32_t i = threadIdx.x % threads; i < count; i += threads) {
    const few_entries::entry other = few.of[i];
    if (other.key > key) before += {1, other.weight};
    if (other.key == key) {
      here += {1, other.weight};
      equal_before += i < own;
    }
  }
  for (unsigned mask = 1; mask < threads; mask *= 2) {
    before += shuffle_xor_sum(before, mask);
    here += shuffle_xor_sum(here, mask);
    equal_before += shuffle_xor_bits(equal_before, mask);
  }
  const bool speaks = own < count && equal_before == 0 && threadIdx.x % threads == 0;
  const bool is_last = before.count + here.count == count;
  before += above;
  const bool ends_here = (before + here).reaches(limit) ? !before.reaches(limit) : is_last;
  if (speaks && ends_here) found = {key, before, here};
  __syncthreads();
  return found;
}

/// Goes down from the largest key until count or weight of the entries reach a limit; to the smallest entry when they
/// never do. The keys lie in lowest .. highest, and there is at least one.
///   entries.for_each(visit)  calls visit(key, weight) for this thread's share of the entries, the same each time
///   entries.focus(lowest, highest, count)  is told that nobody will look at others than these any more
///
/// No sorting: entries are distributed by the highest eight bits in which their keys differ, and the bin in which the
/// limit is reached is distributed by the next eight.
template <typename Entries>
__device__ descent descend(std::uint32_t lowest, std::uint32_t highest, const mass& limit, Entries entries) {
  mass_bins& bins = bins_of_block();
  __shared__ descent found;
  descent at = {highest, {0, 0}, {0, 0}};
  unsigned bits = 0;  // of the key that are not known yet
  while (bits < 32 && (lowest ^ highest) >> bits != 0) ++bits;
  while (true) {
    const unsigned shift = bits > 8 ? bits - 8 : 0;
    bins.clear();
    __syncthreads();
    entries.for_each([&](std::uint32_t key, std::uint64_t weight) {
      if (bits == 32 || (key ^ at.key) >> bits == 0) bins.add(key >> shift & 0xffu, weight);
    });
    __syncthreads();
    const std::uint32_t digit = mass_threads - 1 - threadIdx.x;
    const mass own = bins.of(digit);
    mass total;
    const mass before = at.above + block_prefix(own, total);
    const mass after = before + own;
    const bool ends_here = after.reaches(limit) ? !before.reaches(limit) : after.count == at.above.count + total.count;
    if (own.count != 0 && ends_here) found = {(at.key & ~(0xffu << shift)) | digit << shift, before, own};
    __syncthreads();
    at = found;
    if (shift == 0) return at;
    bits = shift;
    const std::uint32_t least = at.key >> bits << bits, most = least | ((1u << bits) - 1);
    entries.focus(least > lowest ? least : lowest, most < highest ? most : highest, at.here.count);
  }
}

}  // namespace skein::kernels::gpu
