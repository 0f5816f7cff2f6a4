#pragma once
#include "kernels/gpu/sampling/logit_chunk.cuh"

/// The results of the scan of a row: for each block of 64 tokens the maximum, and the sum of the weights relative to
/// it.
namespace skein::kernels::gpu {

/// Stores those of a chunk; called by the threads that hold it. A scale of 0: no weights are needed. The arrays are the
/// row's.
__device__ inline void scan_chunk(const logit_packet (&values)[chunk_packets], std::uint32_t chunk, float scale,
                                  float* block_max, float* block_sum) {
  const std::uint32_t own_block = chunk * chunk_blocks + place_in_chunk(packet_of_thread()) / block_tokens;
  const bool stores = threadIdx.x % (block_lanes / chunk_packets) == 0;
  float each[chunk_packets];
  for (unsigned p = 0; p < chunk_packets; ++p) each[p] = packet_max(values[p]);
  const float max = fold_blocks(each, [](float a, float b) { return b > a ? b : a; }) + 0.0f;  // no -0
  if (stores) block_max[own_block] = max;
  if (scale == 0) return;
  float reference[chunk_packets];
  spread_blocks(max < lowest_logit ? 0 : max, reference);  // 0: no token of the block is allowed
  for (unsigned p = 0; p < chunk_packets; ++p) each[p] = packet_sum(values[p], reference[p], scale * log2_e);
  const float sum = fold_blocks(each, [](float a, float b) { return a + b; });
  if (stores) block_sum[own_block] = sum;
}

/// The results of a scan as a thread block reads them. Each thread has neighbouring blocks of tokens, so that a sum
/// over the preceding threads is a sum over the preceding blocks. It holds its first four in registers.
class scanned_blocks {
 public:
  static constexpr unsigned size = packet<float>::size;

  __device__ scanned_blocks(const float* max, const float* sum, std::uint32_t vocab)
      : max_(max),
        sum_(sum),
        count_(blocks_of(vocab)),
        rounds_((count_ + mass_threads * size - 1) / (mass_threads * size)) {
    const std::uint32_t own = first();
    if (own < count_) {
      first_max_ = load_packet(max_ + own);
      first_sum_ = load_packet(sum_ + own);
    }
  }

  /// The number of times that each thread has four blocks.
  [[nodiscard]] __device__ std::uint32_t rounds() const { return rounds_; }
  /// Calls visit(block, maximum, sum) for this thread's four blocks of a round. Blocks beyond the vocabulary and blocks
  /// without an allowed token have the maximum no_logit().
  template <typename Visit>
  __device__ void for_each_of_round(std::uint32_t round, const Visit& visit) const {
    const std::uint32_t own = first() + round * size;
    if (own >= count_) return;
    const packet<float> max = round == 0 ? first_max_ : load_packet(max_ + own);
    const packet<float> sum = round == 0 ? first_sum_ : load_packet(sum_ + own);
    for (unsigned i = 0; i < size; ++i) visit(own + i, max.values[i], sum.values[i]);
  }
  template <typename Visit>
  __device__ void for_each(const Visit& visit) const {
    for (std::uint32_t round = 0; round < rounds_; ++round) for_each_of_round(round, visit);
  }
  [[nodiscard]] __device__ float max_of(std::uint32_t block) const { return max_[block]; }
  /// The maximum of the row. All threads call this together.
  [[nodiscard]] __device__ float max() const {
    float own = no_logit();
    for_each([&](std::uint32_t, float max_of_block, float) { own = max_of_block > own ? max_of_block : own; });
    return block_max(own);
  }

 private:
  [[nodiscard]] __device__ std::uint32_t first() const { return threadIdx.x * rounds_ * size; }

  const float *max_, *sum_;
  std::uint32_t count_, rounds_;
  packet<float> first_max_, first_sum_;
};

}  // namespace skein::kernels::gpu
