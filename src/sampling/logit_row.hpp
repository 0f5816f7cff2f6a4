#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "sampling/logit_block.hpp"

namespace skein::sampling {

/// The logits of one sampling step, in the sampler's memory: finite, in blocks with their maxima, later with their
/// weights. Call order: load, change logits(), scan, then argmax or exponentiate.
class logit_row {
 public:
  explicit logit_row(std::uint32_t vocab);
  /// The memory that one row reserves.
  [[nodiscard]] static std::size_t planned_bytes(std::uint32_t vocab);

  void load(std::span<const float> logits);
  [[nodiscard]] bool was_finite() const { return was_finite_; }  ///< no loaded logit was NaN or infinite
  [[nodiscard]] std::span<float> logits();

  /// Removes the tokens that are not allowed (see sampler::draw) and finds the maxima.
  void scan(std::span<const std::uint32_t> allowed);

  [[nodiscard]] float max() const { return max_; }
  [[nodiscard]] token_id argmax() const;  ///< lowest id among equals

  /// Computes the weights exp((logit - max) / temperature): the softmax up to the factor 1 / total().
  void exponentiate(float temperature);
  [[nodiscard]] double total() const { return total_; }

  [[nodiscard]] std::uint32_t vocab() const { return vocab_; }
  [[nodiscard]] std::size_t blocks() const { return logits_.size(); }
  [[nodiscard]] const logit_block& block_logits(std::size_t block) const { return logits_[block]; }
  [[nodiscard]] const logit_block& block_weights(std::size_t block) const { return weights_[block]; }
  [[nodiscard]] double block_weight(std::size_t block) const { return sums_[block]; }
  [[nodiscard]] std::span<const float> block_maxima() const { return maxima_; }

 private:
  std::uint32_t vocab_;
  bool was_finite_ = true;
  float max_ = no_logit;
  double total_ = 0;
  std::vector<logit_block> logits_;
  std::vector<logit_block> weights_;
  std::vector<float> maxima_;  // [blocks]
  std::vector<double> sums_;   // [blocks] of the weights
};

}  // namespace skein::sampling
