#include "sampling/sampler.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "sampling/philox.hpp"

namespace skein::sampling {
namespace {

constexpr float temperature_min = 0.001f;

bool is_greedy(const sampling_params& params) {
  return params.top_k == 1 || params.top_p == 0 || !(params.temperature >= temperature_min);
}

std::size_t words_for(std::uint32_t vocab) { return (vocab + 31) / 32; }

bool has_noise(const sampling_params& params) { return params.noise > 0 && !is_greedy(params); }

}  // namespace

sampler::sampler(std::uint32_t vocab) : penalties_(vocab), row_(vocab), mask_(words_for(vocab)) {
  candidates_.reserve(vocab);
}

std::size_t sampler::planned_bytes(std::uint32_t vocab) {
  return logit_row::planned_bytes(vocab) + vocab * (sizeof(token_penalty) + sizeof(candidate)) +
         words_for(vocab) * sizeof(std::uint32_t);
}

void sampler::start(const sampling_params& params) {
  params_ = params;
  std::erase_if(params_.logit_bias, [this](const logit_bias_entry& entry) {
    return entry.token < 0 || static_cast<std::uint32_t>(entry.token) >= row_.vocab();
  });
  generated_ = params_.sampled_before;
  penalties_.clear();
  if (params.prior) penalties_.restore(*params.prior);
  rule_ = params.rule ? params.rule->begin() : nullptr;
  stuck_ = false;
  if (rule_ && params.logprobs) allowed_raw_.resize(row_.vocab());
}

sampler::sampled sampler::sample(std::span<const float> logits, std::span<const std::uint32_t> allowed) {
  row_.load(logits);
  penalise(row_.logits());
  return sample_loaded(logits, allowed);
}

sampler::sampled sampler::sample_penalised(std::span<const float> penalised, std::span<const float> raw,
                                           std::span<const std::uint32_t> allowed) {
  row_.load(penalised);
  return sample_loaded(raw, allowed);
}

void sampler::penalise(std::span<float> logits) const {
  check(logits.size() == row_.vocab());
  const auto add = [&](token_id token, float value) {
    float& logit = logits[static_cast<std::size_t>(token)];
    logit = finite_logit(finite_logit(logit) + value);
  };
  for (const auto& entry : params_.logit_bias)
    if (entry.counts_for(generated_)) add(entry.token, entry.bias);
  for (const auto& [token, penalty] : penalties_.sampled()) add(token, -(penalty + params_.lasting_penalty));
}

sampler::sampled sampler::sample_loaded(std::span<const float> raw, std::span<const std::uint32_t> allowed) {
  sampled result;
  allowed = narrowed(allowed);
  result.finite = row_.was_finite();
  result.token = choose(allowed);
  if (params_.logprobs) result.logprobs = score(raw, result.token, allowed);
  record(result.token);
  return result;
}

token_id sampler::choose(std::span<const std::uint32_t> allowed) {
  if (has_noise(params_)) add_noise(row_.logits());
  row_.scan(allowed);
  if (is_greedy(params_) || has_noise(params_)) return row_.argmax();
  const kept_tokens kept = select(row_, params_, candidates_);
  return pick(row_, kept, uniform(params_.seed, params_.row, generated_));
}

/// The tokens that the caller and the rule allow. If the rule allows none, the row is stuck and any token will do.
std::span<const std::uint32_t> sampler::narrowed(std::span<const std::uint32_t> allowed) {
  if (!rule_) return allowed;
  stuck_ = !rule_->allow(mask_);
  const auto both = [&](std::size_t i) { return allowed.empty() ? mask_[i] : mask_[i] & allowed[i]; };
  bool any = false;
  for (std::size_t i = 0; i < mask_.size(); ++i) any |= (mask_[i] = both(i)) != 0;
  if (any) return mask_;
  stuck_ = true;
  return allowed;
}

token_logprobs sampler::score(std::span<const float> raw, token_id token, std::span<const std::uint32_t> allowed) {
  if (!rule_ || allowed.empty()) return log_probabilities(raw, token, params_.top_logprobs);
  const auto is_allowed = [&](std::size_t i) { return (allowed[i / 32] >> (i % 32) & 1) != 0; };
  bool finite = true;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    finite &= std::isfinite(raw[i]);
    allowed_raw_[i] = is_allowed(i) ? raw[i] : lowest_logit;
  }
  token_logprobs scores = log_probabilities(allowed_raw_, token, params_.top_logprobs);
  scores.finite = finite;
  while (scores.count > 0 && !is_allowed(static_cast<std::size_t>(scores.top[scores.count - 1].token))) --scores.count;
  return scores;
}

void sampler::add_noise(std::span<float> logits) const {
  for (std::size_t first = 0; first < logits.size(); first += 4) {
    const auto numbers = uniform_of_tokens(params_.seed, params_.row, generated_, static_cast<std::uint32_t>(first));
    for (std::size_t i = 0; i < 4 && first + i < logits.size(); ++i)
      logits[first + i] = finite_logit(logits[first + i] / params_.temperature + params_.noise * numbers[i]);
  }
}

void sampler::record(token_id token) {
  check(token >= 0);
  check(static_cast<std::uint32_t>(token) < row_.vocab());
  penalties_.record(token, params_);
  if (rule_) rule_->record(token);
  ++generated_;
}

token_id sampler::forced() {
  const token_id only = rule_ ? rule_->forced() : no_token;
  return only >= 0 && static_cast<std::uint32_t>(only) < row_.vocab() ? only : no_token;
}

bool sampler::is_stop(token_id token) const {
  return std::find(params_.stop_ids.begin(), params_.stop_ids.end(), token) != params_.stop_ids.end();
}

sampler::saved sampler::save() const { return {generated_, penalties_.sampled(), rule_ ? rule_->fork() : nullptr}; }

void sampler::restore(const saved& from) {
  for (const token_penalty& p : from.penalties) {
    check(p.token >= 0);
    check(static_cast<std::uint32_t>(p.token) < row_.vocab());
  }
  generated_ = from.generated;
  penalties_.restore(from.penalties);
  if (rule_ && from.rule) rule_ = from.rule->fork();
}

}  // namespace skein::sampling
