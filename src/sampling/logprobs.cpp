#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.hpp"
#include "sampling/logit_block.hpp"
#include "sampling/sampler.hpp"

namespace skein::sampling {
namespace {

// The best logits so far in descending order. Ids are added in ascending order, so among equals the lower id stays
// first.
class best_list {
 public:
  explicit best_list(std::uint32_t size) : size_(size) {}

  [[nodiscard]] bool takes(float logit) const {
    return size_ > 0 && (out_.count < size_ || logit > out_.top[size_ - 1].logprob);
  }
  void insert(token_id token, float logit) {
    if (!takes(logit)) return;
    if (out_.count < size_) ++out_.count;
    std::uint32_t at = out_.count - 1;
    for (; at > 0 && out_.top[at - 1].logprob < logit; --at) out_.top[at] = out_.top[at - 1];
    out_.top[at] = {token, logit};
  }
  [[nodiscard]] const token_logprobs& logits() const { return out_; }

 private:
  std::uint32_t size_;
  token_logprobs out_;
};

constexpr std::size_t chunk_blocks = 16;  // 4 KiB on the stack

// Calls visit(id of the first token, blocks) for the whole row, a few blocks at a time. True if all logits are finite.
template <typename Visit>
bool for_each_chunk(std::span<const float> logits, const Visit& visit) {
  std::array<logit_block, chunk_blocks> buffer;
  bool finite = true;
  for (std::size_t first = 0; first < logits.size(); first += chunk_blocks * block_tokens) {
    const auto part = logits.subspan(first, std::min(chunk_blocks * block_tokens, logits.size() - first));
    const auto blocks = std::span(buffer).first((part.size() + block_tokens - 1) / block_tokens);
    finite &= read_blocks(part, blocks);
    visit(first, blocks);
  }
  return finite;
}

}  // namespace

token_logprobs log_probabilities(std::span<const float> logits, token_id token, std::uint32_t top) {
  check(token >= 0);
  check(static_cast<std::size_t>(token) < logits.size());

  best_list best(std::min(top, top_logprobs_max));
  float max = no_logit;
  const bool finite = for_each_chunk(logits, [&](std::size_t first, std::span<logit_block> blocks) {
    std::array<float, chunk_blocks> maxima;
    max = std::max(max, find_maxima(blocks, std::span(maxima).first(blocks.size())));
    for (std::size_t b = 0; b < blocks.size(); ++b, first += block_tokens) {
      if (!best.takes(maxima[b])) continue;
      const std::size_t count = std::min(block_tokens, logits.size() - first);
      for (std::size_t i = 0; i < count; ++i) best.insert(static_cast<token_id>(first + i), blocks[b][i]);
    }
  });

  double total = 0;
  for_each_chunk(logits, [&](std::size_t, std::span<logit_block> blocks) {
    std::array<double, chunk_blocks> sums;
    total += exponentiate_blocks(blocks, max, 1, blocks, std::span(sums).first(blocks.size()));
  });

  const double log_total = std::log(total);
  const auto logprob = [&](float logit) {
    return static_cast<float>(std::max<double>(double{logit} - max - log_total, lowest_logit));
  };
  token_logprobs result = best.logits();
  result.finite = finite;
  result.logprob = logprob(finite_logit(logits[static_cast<std::size_t>(token)]));
  for (std::uint32_t i = 0; i < result.count; ++i) result.top[i].logprob = logprob(result.top[i].logprob);
  return result;
}

}  // namespace skein::sampling
