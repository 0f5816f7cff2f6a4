#pragma once
#include "kernels/gpu/sampling/scanned_blocks.cuh"

/// The tokens of a row that may be kept: those at or above a floor, with their weights.
namespace skein::kernels::gpu {

inline constexpr std::uint32_t candidates_max = 3072;  ///< in shared memory; a flatter row is read repeatedly

struct candidate {
  std::uint32_t token;
  float logit;
};
struct candidate_list {
  candidate of[candidates_max];
};

/// A row whose maximum is known. Weights are exp((logit - max) / temperature).
struct weighed_row {
  const logit_row& row;
  const scanned_blocks& blocks;
  float max, scale;

  [[nodiscard]] __device__ float weight(float logit) const { return exp_of_negative((logit - max) * scale); }

  static constexpr unsigned loads = 4;  // in flight
  /// Calls visit(tokens, logits) with packets: this thread's share of the tokens at or above `floor` in some blocks of
  /// tokens. The packets also contain tokens below it. All threads call this together: they first list the blocks that
  /// reach the floor, then read those.
  template <typename Visit>
  __device__ void for_each_above(float floor, std::uint32_t first_block, std::uint32_t end_block,
                                 const Visit& visit) const {
    constexpr std::uint32_t stride = mass_threads / block_lanes;
    __shared__ std::uint16_t passing[mass_threads * scanned_blocks::size];
    __shared__ std::uint32_t passing_count;
    for (std::uint32_t round = 0; round < blocks.rounds(); ++round) {
      __syncthreads();  // the previous list has been read
      if (threadIdx.x == 0) passing_count = 0;
      __syncthreads();
      blocks.for_each_of_round(round, [&](std::uint32_t block, float block_max, float) {
        if (block_max >= floor && block >= first_block && block < end_block)
          passing[atomicAdd(&passing_count, 1u)] = static_cast<std::uint16_t>(block);
      });
      __syncthreads();
      for (std::uint32_t i = threadIdx.x / block_lanes; i < passing_count; i += loads * stride) {
        std::uint32_t tokens[loads];
        bool is_block[loads];
        logit_packet values[loads];
        for (unsigned u = 0; u < loads; ++u) {
          is_block[u] = i + u * stride < passing_count;
          const std::uint32_t block = is_block[u] ? passing[i + u * stride] : 0u;
          tokens[u] = block * block_tokens + threadIdx.x % block_lanes * logit_packet::size;
        }
        row.load(tokens, is_block, values);
        for (unsigned u = 0; u < loads; ++u) row.restrict(tokens[u], values[u]);
        visit(tokens, values);
      }
    }
  }
};

/// The tokens at or above a floor. As the entries of a descent, it visits fewer and fewer of them.
class candidates {
 public:
  /// Gathers them into `list`, in shared memory, if all fit. `floor` is a float, not minus infinity.
  __device__ candidates(const weighed_row& row, float floor, candidate_list* list)
      : row_(row),
        floor_(floor),
        ceiling_(row.max),
        first_block_(0),
        end_block_(blocks_of(row.row.vocab)),
        list_(list) {
    gather();
  }

  [[nodiscard]] __device__ const weighed_row& row() const { return row_; }
  [[nodiscard]] __device__ float floor() const { return floor_; }
  /// If they fit into the list, thread i of mass_threads has entries i, i + mass_threads ...
  [[nodiscard]] __device__ std::uint32_t count() const { return count_; }
  [[nodiscard]] __device__ bool is_listed() const { return count_ <= candidates_max; }

  /// Calls visit(token, logit, weight) for this thread's share.
  template <typename Visit>
  __device__ void for_each(const Visit& visit) const {
    if (is_listed()) {
      for (std::uint32_t i = threadIdx.x; i < count_; i += mass_threads) {
        const candidate own = list_->of[i];
        visit(own.token, own.logit, to_weight(row_.weight(own.logit)));
      }
    } else {
      row_.for_each_above(floor_, first_block_, end_block_, [&](const auto& tokens, const auto& logits) {
        for (unsigned u = 0; u < weighed_row::loads; ++u)
          for (unsigned p = 0; p < logit_packet::size; ++p) {
            const float logit = logits[u].values[p];
            if (logit >= floor_) visit(tokens[u] + p, logit, to_weight(row_.weight(logit)));
          }
      });
    }
  }

  /// Gathers those at or above a higher floor.
  __device__ void raise_floor(float floor) {
    floor_ = floor;
    gather();
  }
  /// Only these `count` candidates will be visited from now on. If they fit, they replace the contents of the list.
  __device__ void focus_on_logits(float lowest, float highest, std::uint32_t count) {
    if (is_listed() || count > candidates_max) return;
    floor_ = lowest;
    ceiling_ = highest;
    gather();
  }
  __device__ void focus_on_tokens(std::uint32_t first, std::uint32_t last) {
    const std::uint32_t blocks = blocks_of(row_.row.vocab);
    first_block_ = first / block_tokens;
    end_block_ = last / block_tokens < blocks ? last / block_tokens + 1 : blocks;
  }

 private:
  // Each thread reserves places for all that it found at once.
  __device__ void gather() {
    __shared__ std::uint32_t count;
    __syncthreads();  // the previous count has been read
    if (threadIdx.x == 0) count = 0;
    row_.for_each_above(floor_, first_block_, end_block_, [&](const auto& tokens, const auto& logits) {
      const auto for_each_found = [&](const auto& visit_found) {
        for (unsigned u = 0; u < weighed_row::loads; ++u)
          for (unsigned p = 0; p < logit_packet::size; ++p) {
            const float logit = logits[u].values[p];
            if (logit >= floor_ && logit <= ceiling_) visit_found(tokens[u] + p, logit);
          }
      };
      std::uint32_t found = 0;
      for_each_found([&](std::uint32_t, float) { ++found; });
      if (found == 0) return;
      std::uint32_t at = atomicAdd(&count, found);
      for_each_found([&](std::uint32_t token, float logit) {
        if (at < candidates_max) list_->of[at] = {token, logit};
        ++at;
      });
    });
    __syncthreads();
    count_ = count;
  }

  const weighed_row& row_;
  float floor_, ceiling_;
  std::uint32_t first_block_, end_block_;
  candidate_list* list_;
  std::uint32_t count_;
};

}  // namespace skein::kernels::gpu
