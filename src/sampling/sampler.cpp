#include "sampling/sampler.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "sampling/philox.hpp"

namespace skein::sampling {
namespace {

constexpr float temperature_min = 0.001f;

bool is_greedy(const sampling_params& params) {
  return params.top_k == 1 || params.top_p == 0 || !(params.temperature >= temperature_min);
}

bool has_noise(const sampling_params& params) { return params.noise > 0 && !is_greedy(params); }

}  // namespace

sampler::sampler(std::uint32_t vocab) : penalties_(vocab), row_(vocab) { candidates_.reserve(vocab); }

std::size_t sampler::planned_bytes(std::uint32_t vocab) {
  return logit_row::planned_bytes(vocab) + vocab * (sizeof(token_penalty) + sizeof(candidate));
}

void sampler::start(const sampling_params& params) {
  params_ = params;
  std::erase_if(params_.logit_bias, [this](const logit_bias_entry& entry) {
    return entry.token < 0 || static_cast<std::uint32_t>(entry.token) >= row_.vocab();
  });
  generated_ = params_.sampled_before;
  penalties_.clear();
  if (params.prior) penalties_.restore(*params.prior);
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
  result.finite = row_.was_finite();
  result.token = choose(allowed);
  if (params_.logprobs) result.logprobs = log_probabilities(raw, result.token, params_.top_logprobs);
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
  ++generated_;
}

bool sampler::is_stop(token_id token) const {
  return std::find(params_.stop_ids.begin(), params_.stop_ids.end(), token) != params_.stop_ids.end();
}

sampler::saved sampler::save() const { return {generated_, penalties_.sampled()}; }

void sampler::restore(const saved& from) {
  for (const token_penalty& p : from.penalties) {
    check(p.token >= 0);
    check(static_cast<std::uint32_t>(p.token) < row_.vocab());
  }
  generated_ = from.generated;
  penalties_.restore(from.penalties);
}

}  // namespace skein::sampling
