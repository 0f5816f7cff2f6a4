#include "tests/sampling/slow_sampler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sampling/philox.hpp"

namespace skein::sampling {
namespace {

constexpr float largest = std::numeric_limits<float>::max();

float cleaned(float logit) { return std::isnan(logit) ? 0.0f : std::clamp(logit, -largest, largest); }

bool is_allowed(std::span<const std::uint32_t> allowed, std::size_t i) {
  return allowed.empty() || ((allowed[i / 32] >> (i % 32)) & 1u) != 0;
}

void normalise(std::vector<double>& p) {
  double sum = 0;
  for (const double x : p) sum += x;
  for (double& x : p) x /= sum;
}

// Joint top_k and top_p over groups of equal p, from the most likely down.
void limit(std::vector<double>& p, double top_k, double top_p) {
  std::map<double, std::vector<std::size_t>, std::greater<>> by_probability;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (p[i] > 0) by_probability[p[i]].push_back(i);
  double count_above = 0;
  double mass_above = 0;
  bool reached = false;
  for (const auto& [t, ties] : by_probability) {
    const auto m = static_cast<double>(ties.size());
    double scale = 0;
    if (!reached) scale = std::clamp(std::min((top_p - mass_above) / (t * m), (top_k - count_above) / m), 0.0, 1.0);
    reached = reached || count_above + m >= top_k || mass_above + t * m >= top_p;
    for (const std::size_t i : ties) p[i] *= scale;
    count_above += m;
    mass_above += t * m;
  }
}

}  // namespace

std::vector<double> slow_sampler::kept(std::span<const float> logits, std::span<const std::uint32_t> allowed) const {
  std::vector<float> penalised(logits.begin(), logits.end());
  for (float& x : penalised) x = cleaned(x);
  for (const auto& [token, bias, first, end] : params_.logit_bias) {
    if (sampled_ < first || (end != 0 && sampled_ >= end)) continue;
    penalised[static_cast<std::size_t>(token)] = cleaned(penalised[static_cast<std::size_t>(token)] + bias);
  }
  for (const auto& [token, penalty] : penalty_)
    penalised[static_cast<std::size_t>(token)] =
        cleaned(penalised[static_cast<std::size_t>(token)] - (penalty + params_.lasting_penalty));

  const bool greedy = params_.temperature < 0.001f || params_.top_k == 1 || params_.top_p == 0;
  const bool noisy = params_.noise > 0 && !greedy;
  for (std::size_t i = 0; noisy && i < logits.size(); ++i) {
    const auto words =
        philox4x32({sampled_, params_.row, static_cast<std::uint32_t>(i / 4 * 4), 1},
                   {static_cast<std::uint32_t>(params_.seed), static_cast<std::uint32_t>(params_.seed >> 32)});
    const float number = static_cast<float>(words[i % 4] / 256) / 16777216.0f;
    penalised[i] = cleaned(penalised[i] / params_.temperature + params_.noise * number);
  }

  std::size_t best = logits.size();
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (is_allowed(allowed, i) && (best == logits.size() || penalised[i] > penalised[best])) best = i;

  std::vector<double> p(logits.size(), 0.0);
  if (greedy || noisy) {
    p[best] = 1;
    return p;
  }
  const auto weight_at = [&](std::size_t i, float temperature) {
    return std::exp((double{penalised[i]} - double{penalised[best]}) / double{temperature});
  };
  for (std::size_t i = 0; i < p.size(); ++i)
    if (is_allowed(allowed, i)) p[i] = weight_at(i, params_.filters_first ? 1.0f : params_.temperature);
  for (double& x : p)
    if (x < double{params_.min_p}) x = -x;  // removed, but part of the full softmax that the limits are measured on
  double full = 0;
  for (const double x : p) full += std::abs(x);
  for (double& x : p) x = std::max(x, 0.0) / full;

  const auto vocab = static_cast<double>(p.size());
  const double mass_max = params_.top_p < 1 ? double{params_.top_p} : 2.0;
  limit(p, params_.top_k <= 0 ? vocab : std::min<double>(params_.top_k, vocab), mass_max);
  for (std::size_t i = 0; i < p.size() && params_.filters_first; ++i)
    if (p[i] > 0) p[i] = weight_at(i, params_.temperature);
  normalise(p);
  return p;
}

void slow_sampler::record(token_id token) {
  ++sampled_;
  for (auto& [known, penalty] : penalty_) penalty *= params_.penalty_decay;
  const auto [place, fresh] = penalty_.try_emplace(token, params_.first_penalty);
  if (!fresh) place->second += params_.repeat_penalty;
}

double miss(const std::vector<double>& kept, token_id token, double position) {
  double before = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(token); ++i) before += kept[i];
  const double after = before + kept[static_cast<std::size_t>(token)];
  return std::max({0.0, before - position, position - after});
}

}  // namespace skein::sampling
