#pragma once
#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/device/convert.cuh"

/// Counts and weights of tokens, summed over the threads of a block. Weights are integers, so a sum does not depend on
/// its order: no sampled token depends on the order of threads or the width of a warp.
namespace skein::kernels::gpu {

/// The threads of blocks that work on masses: as many as there are bins.
inline constexpr unsigned mass_threads = 256;

/// The weight of the largest token. Tokens below 2^-44 of it weigh nothing; half a million tokens of that weight fit.
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

/// The sum over the preceding threads; `total` is the sum over all threads.
template <typename Sum>
__device__ Sum block_prefix(const Sum& own, Sum& total) {
  __shared__ Sum of_warp[1024 / 32];
  Sum before{}, sum = own;
  for (unsigned mask = 1; mask < warp_width; mask *= 2) {  // sum: over the `mask` lanes around this one
    const Sum other = shuffle_xor_sum(sum, mask);
    if (threadIdx.x & mask) before += other;
    sum += other;
  }
  const unsigned own_warp = threadIdx.x / warp_width;
  __syncthreads();  // the sums of the previous call have been read
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
  __syncthreads();  // the maxima of the previous call have been read
  if (threadIdx.x % warp_width == 0) of_warp[threadIdx.x / warp_width] = value;
  __syncthreads();
  for (unsigned warp = 0; warp < blockDim.x / warp_width; ++warp)
    if (of_warp[warp] > value) value = of_warp[warp];
  return value;
}

/// A histogram in shared memory, with one bin per thread of the block.
struct mass_bins {
  std::uint32_t count[mass_threads], low[mass_threads], high[mass_threads];

  __device__ void clear() { count[threadIdx.x] = low[threadIdx.x] = high[threadIdx.x] = 0; }
  __device__ void add(unsigned bin, std::uint64_t weight) {
    atomicAdd(&count[bin], 1u);
    // Two additions of 32 bits, for which shared memory has native atomics, and the carry.
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

/// The only histogram of a block: shared memory does not suffice for one per function that needs it.
__device__ inline mass_bins& bins_of_block() {
  __shared__ mass_bins bins;
  return bins;
}

/// The end of a descent: the mass of all entries above `key`, and of those that equal it.
struct descent {
  std::uint32_t key;
  mass above, here;
};

/// At most one entry per thread, in shared memory.
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

/// As descend(), for the first `count` entries of few_of_block(), which threads may have stored without a barrier
/// since. `above` is the mass of the entries above them. Compares each entry with all others, using as many threads per
/// entry as are available. An entry with the key 0 and no weight counts as absent, if only the weight has a limit and
/// the entries reach it.
__device__ inline descent descend_few(std::uint32_t count, const mass& above, const mass& limit) {
  const few_entries& few = few_of_block();
  __shared__ descent found;
  unsigned threads = 1;  // per entry
  while (threads < 8 && count * threads * 2 <= mass_threads) threads *= 2;
  __syncthreads();
  const std::uint32_t own = threadIdx.x / threads;
  const std::uint32_t key = own < count ? few.of[own].key : 0;
  mass before = {0, 0}, here = {0, 0};
  std::uint32_t equal_before = 0;  // of the entries with the same key, the first reports
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

/// Descends from the largest key until count or weight of the entries reach a limit, or to the smallest entry if they
/// never do. The keys are in lowest .. highest, and there is at least one.
///   entries.for_each(visit)  calls visit(key, weight) for this thread's share of the entries, the same each time
///   entries.focus(lowest, highest, count)  says that only these entries will be visited from now on
///
/// A radix selection, not a sort: entries are distributed over bins by the highest eight bits in which their keys
/// differ, and those in the bin that reaches the limit by the next eight.
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
