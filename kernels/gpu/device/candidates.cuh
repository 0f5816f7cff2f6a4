#pragma once
#include "kernels/gpu/device/logit_chunk.cuh"

/// The tokens of a row that limits may leave: those at or above a floor, with their weights.
namespace skein::kernels::gpu {

inline constexpr std::uint32_t candidates_max = 3072;  ///< in shared memory; a flatter row is read again and again

struct candidate_list {
  std::uint32_t token[candidates_max];
  float logit[candidates_max];
  float weight[candidates_max];
};

/// A row whose maximum is known. Weights are exp((logit - max) / temperature).
struct weighed_row {
  logit_row row;
  const float* block_max;
  float max, scale;

  [[nodiscard]] __device__ float weight(float logit) const { return exp_of_negative((logit - max) * scale); }
  /// Calls visit(token, logit) for this thread's share of the tokens at or above `floor`.
  template <typename Visit>
  __device__ void for_each_above(float floor, const Visit& visit) const {
    constexpr unsigned at_once = 4;  // loads in flight
    constexpr std::uint32_t stride = mass_threads / block_lanes;
    const std::uint32_t blocks = (row.vocab + block_tokens - 1) / block_tokens;
    for (std::uint32_t first = threadIdx.x / block_lanes; first < blocks; first += at_once * stride) {
      bool passes[at_once];
      logit_packet values[at_once];
      for (unsigned u = 0; u < at_once; ++u) {
        const std::uint32_t b = first + u * stride;
        passes[u] = b < blocks && block_max[b] >= floor;
      }
      for (unsigned u = 0; u < at_once; ++u)
        if (passes[u]) values[u] = row.load(token_of(first + u * stride));
      for (unsigned u = 0; u < at_once; ++u) {
        if (!passes[u]) continue;
        const std::uint32_t token = token_of(first + u * stride);
        row.restrict(token, values[u]);
        for (unsigned i = 0; i < logit_packet::size; ++i)
          if (values[u].values[i] >= floor) visit(token + i, values[u].values[i]);
      }
    }
  }

 private:
  [[nodiscard]] __device__ static std::uint32_t token_of(std::uint32_t block) {
    return block * block_tokens + threadIdx.x % block_lanes * logit_packet::size;
  }
};

class candidates {
 public:
  /// Gathers them into `list`, in shared memory, if there is room for all. `floor` is a float, not minus infinity.
  __device__ candidates(const weighed_row& row, float floor, candidate_list* list)
      : row_(row), floor_(floor), list_(list) {
    __shared__ std::uint32_t count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    row_.for_each_above(floor_, [&](std::uint32_t token, float logit) {
      const std::uint32_t at = atomicAdd(&count, 1u);
      if (at >= candidates_max) return;
      list_->token[at] = token;
      list_->logit[at] = logit;
      list_->weight[at] = row_.weight(logit);
    });
    __syncthreads();
    count_ = count;
  }

  [[nodiscard]] __device__ float floor() const { return floor_; }

  /// Calls visit(token, logit, weight) for this thread's share.
  template <typename Visit>
  __device__ void for_each(const Visit& visit) const {
    if (count_ <= candidates_max) {
      for (std::uint32_t i = threadIdx.x; i < count_; i += mass_threads)
        visit(list_->token[i], list_->logit[i], to_weight(list_->weight[i]));
    } else {
      row_.for_each_above(
          floor_, [&](std::uint32_t token, float logit) { visit(token, logit, to_weight(row_.weight(logit))); });
    }
  }

 private:
  weighed_row row_;
  float floor_;
  candidate_list* list_;
  std::uint32_t count_;
};

}  // namespace skein::kernels::gpu
