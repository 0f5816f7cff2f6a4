#include "sampling/logit_row.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace skein::sampling {

namespace {

constexpr std::size_t blocks_for(std::uint32_t vocab) { return (vocab + block_tokens - 1) / block_tokens; }

}  // namespace

std::size_t logit_row::planned_bytes(std::uint32_t vocab) {
  return blocks_for(vocab) * (2 * sizeof(logit_block) + sizeof(float) + sizeof(double));
}

logit_row::logit_row(std::uint32_t vocab)
    : vocab_(vocab),
      logits_(blocks_for(vocab)),
      weights_(logits_.size()),
      maxima_(logits_.size()),
      sums_(logits_.size()) {
  check(vocab > 0);
}

void logit_row::load(std::span<const float> logits) {
  check(logits.size() == vocab_);
  was_finite_ = read_blocks(logits, logits_);
}

std::span<float> logit_row::logits() { return {logits_[0].data(), vocab_}; }

void logit_row::scan(std::span<const std::uint32_t> allowed) {
  if (!allowed.empty()) {
    check(allowed.size() == (vocab_ + 31) / 32);
    restrict_blocks(allowed, logits_);
  }
  max_ = find_maxima(logits_, maxima_);
  check(max_ != no_logit, "no token is allowed");
}

token_id logit_row::argmax() const {
  const auto b = static_cast<std::size_t>(std::find(maxima_.begin(), maxima_.end(), max_) - maxima_.begin());
  const auto i = static_cast<std::size_t>(std::find(logits_[b].begin(), logits_[b].end(), max_) - logits_[b].begin());
  return static_cast<token_id>(b * block_tokens + i);
}

void logit_row::exponentiate(float temperature) {
  total_ = exponentiate_blocks(logits_, max_, 1 / temperature, weights_, sums_);
}

}  // namespace skein::sampling
