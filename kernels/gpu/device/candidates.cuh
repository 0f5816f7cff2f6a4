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

/// The blocks of a part of a row that are worth a read; one list for all functions of a block, as shared memory is
/// short.
struct passing_blocks {
  static constexpr std::uint32_t most = 1024;
  std::uint32_t count;
  std::uint16_t block[most];
};
__device__ inline passing_blocks& passing_of_block() {
  __shared__ passing_blocks passing;
  return passing;
}

/// A row whose maximum is known. Weights are exp((logit - max) / temperature).
struct weighed_row {
  logit_row row;
  const float* block_max;
  float max, scale;

  [[nodiscard]] __device__ float weight(float logit) const { return exp_of_negative((logit - max) * scale); }
  [[nodiscard]] __device__ std::uint32_t blocks() const { return (row.vocab + block_tokens - 1) / block_tokens; }

  /// Calls visit(token, logit) for this thread's share of the tokens at or above `floor` in some blocks of tokens. All
  /// threads call this together: first they look for the blocks that are worth a read, then they read those.
  template <typename Visit>
  __device__ void for_each_above(float floor, std::uint32_t first_block, std::uint32_t end_block,
                                 const Visit& visit) const {
    constexpr std::uint32_t stride = mass_threads / block_lanes;
    constexpr unsigned loads = 4;  // in flight
    passing_blocks& passing = passing_of_block();
    for (std::uint32_t first = first_block; first < end_block; first += passing_blocks::most) {
      __syncthreads();  // nobody still reads the list before
      if (threadIdx.x == 0) passing.count = 0;
      __syncthreads();
      for (std::uint32_t i = threadIdx.x; i < passing_blocks::most && first + i < end_block; i += mass_threads)
        if (block_max[first + i] >= floor) passing.block[atomicAdd(&passing.count, 1u)] = static_cast<std::uint16_t>(i);
      __syncthreads();
      for (std::uint32_t i = threadIdx.x / block_lanes; i < passing.count; i += loads * stride) {
        std::uint32_t tokens[loads];
        bool is_block[loads];
        logit_packet values[loads];
        for (unsigned u = 0; u < loads; ++u) {
          is_block[u] = i + u * stride < passing.count;
          const std::uint32_t block = first + (is_block[u] ? passing.block[i + u * stride] : 0u);
          tokens[u] = block * block_tokens + threadIdx.x % block_lanes * logit_packet::size;
        }
        row.load(tokens, is_block, values);
        for (unsigned u = 0; u < loads; ++u) {
          row.restrict(tokens[u], values[u]);
          for (unsigned p = 0; p < logit_packet::size; ++p)
            if (values[u].values[p] >= floor) visit(tokens[u] + p, values[u].values[p]);
        }
      }
    }
  }
};

/// The tokens at or above a floor. Used as the entries of a descent, it looks at ever fewer of them.
class candidates {
 public:
  /// Gathers them into `list`, in shared memory, if there is room for all. `floor` is a float, not minus infinity.
  __device__ candidates(const weighed_row& row, float floor, candidate_list* list)
      : row_(row), floor_(floor), ceiling_(row.max), first_block_(0), end_block_(row.blocks()), list_(list) {
    gather();
  }

  [[nodiscard]] __device__ float floor() const { return floor_; }
  /// When they fit the list, thread i of mass_threads has entries i, i + mass_threads ...
  [[nodiscard]] __device__ std::uint32_t count() const { return count_; }

  /// Calls visit(token, logit, weight) for this thread's share.
  template <typename Visit>
  __device__ void for_each(const Visit& visit) const {
    if (is_listed()) {
      for (std::uint32_t i = threadIdx.x; i < count_; i += mass_threads)
        visit(list_->token[i], list_->logit[i], to_weight(list_->weight[i]));
    } else {
      row_.for_each_above(floor_, first_block_, end_block_, [&](std::uint32_t token, float logit) {
        visit(token, logit, to_weight(row_.weight(logit)));
      });
    }
  }

  /// From now on nobody asks for others than these `count`. They take the place of another's list.
  __device__ void focus_on_logits(float lowest, float highest, std::uint32_t count) {
    if (is_listed() || count > candidates_max) return;
    floor_ = lowest;
    ceiling_ = highest;
    gather();
  }
  __device__ void focus_on_tokens(std::uint32_t first, std::uint32_t last) {
    first_block_ = first / block_tokens;
    end_block_ = last / block_tokens < row_.blocks() ? last / block_tokens + 1 : row_.blocks();
  }

 private:
  [[nodiscard]] __device__ bool is_listed() const { return count_ <= candidates_max; }

  __device__ void gather() {
    __shared__ std::uint32_t count;
    __syncthreads();  // nobody still reads the count before
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    row_.for_each_above(floor_, first_block_, end_block_, [&](std::uint32_t token, float logit) {
      if (logit > ceiling_) return;
      const std::uint32_t at = atomicAdd(&count, 1u);
      if (at >= candidates_max) return;
      list_->token[at] = token;
      list_->logit[at] = logit;
      list_->weight[at] = row_.weight(logit);
    });
    __syncthreads();
    count_ = count;
  }

  weighed_row row_;
  float floor_, ceiling_;
  std::uint32_t first_block_, end_block_;
  candidate_list* list_;
  std::uint32_t count_;
};

}  // namespace skein::kernels::gpu
