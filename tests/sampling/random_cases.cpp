#include "tests/sampling/random_cases.hpp"

#include <cmath>
#include <initializer_list>
#include <limits>

namespace skein::sampling {
namespace {

// Only the 32 bits that mt19937 has, as an unsigned.
struct generator {
  using result_type = std::uint32_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return 0xffffffff; }
  result_type operator()() { return static_cast<result_type>(engine()); }
  std::mt19937 engine;
};

template <typename T>
T one_of(generator& random, std::initializer_list<T> values) {
  return values.begin()[random() % values.size()];
}

bool chance(generator& random, unsigned one_in) { return random() % one_in == 0; }

std::vector<float> random_logits(generator& random, std::size_t vocab) {
  std::vector<float> logits(vocab);
  std::normal_distribution<float> normal(one_of(random, {-8.0f, 0.0f, 100.0f}),
                                         one_of(random, {0.01f, 1.0f, 3.0f, 20.0f}));
  const unsigned kind = random() % 4;
  const float level = normal(random);
  for (float& x : logits) {
    x = kind == 0 ? level : normal(random);
    if (kind == 1) x = std::round(2 * x) / 2;       // many ties
    if (kind == 2 && chance(random, 8)) x = level;  // one large group of equals
  }
  if (chance(random, 4))
    for (float& x : logits)
      if (chance(random, 20))
        x = one_of(random, {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), -0.0f,
                            0.0f, std::numeric_limits<float>::lowest()});
  if (chance(random, 20)) logits[random() % vocab] = std::numeric_limits<float>::infinity();
  return logits;
}

std::vector<std::uint32_t> random_mask(generator& random, std::size_t vocab) {
  std::vector<std::uint32_t> allowed((vocab + 31) / 32);
  const bool sparse = chance(random, 2);
  for (auto& word : allowed) word = sparse ? random() & random() & random() & random() : random();
  const std::size_t certain = random() % vocab;
  allowed[certain / 32] |= 1u << (certain % 32);
  return allowed;
}

}  // namespace

sampling_case random_case(std::uint32_t seed, std::uint32_t vocab) {
  generator random{std::mt19937(seed)};
  if (vocab == 0) vocab = one_of(random, {1u, 2u, 3u, 7u, 31u, 63u, 64u, 65u, 100u, 129u, 500u, 1000u});
  std::uniform_real_distribution<float> unit(0, 1);

  sampling_case c;
  c.logits = random_logits(random, vocab);
  if (chance(random, 4)) c.allowed = random_mask(random, vocab);
  c.params.temperature = one_of(random, {0.001f, 0.01f, 0.3f, 1.0f, 1.0f, 1.7f, 10.0f, 1000.0f});
  c.params.top_p = one_of(random, {1.0f, 1.0f, 0.999999f, 0.9f, 0.5f, 0.1f, 1e-6f, unit(random)});
  c.params.top_k = one_of<std::int32_t>(
      random, {0, 0, -3, 2, 3, 20, 100, static_cast<std::int32_t>(vocab), static_cast<std::int32_t>(vocab) + 1});
  c.params.min_p = one_of(random, {0.0f, 0.0f, 0.0f, 0.01f, 0.2f, 1.0f, unit(random)});
  c.params.first_penalty = one_of(random, {0.0f, 1.0f, 2.5f, -1.0f});
  c.params.repeat_penalty = one_of(random, {0.0f, 0.1f, 5.0f});
  c.params.penalty_decay = one_of(random, {1.0f, 0.996f, 0.5f});
  for (unsigned n = chance(random, 3) ? random() % 5 : 0; n > 0; --n)
    c.params.logit_bias.push_back({static_cast<token_id>(random() % vocab), one_of(random, {-100.0f, 100.0f, 0.5f}),
                                   one_of<std::uint16_t>(random, {0, 0, 1}), one_of<std::uint16_t>(random, {0, 0, 2})});
  c.params.seed = (std::uint64_t{random()} << 32) | random();
  c.params.row = random() % 128;
  // A sum decides whether a token is kept at all: skip cases whose remainder is as small as the rounding of weights.
  c.params.filters_first = chance(random, 4) && (c.params.top_p == 1 || c.params.top_p < 0.9999f);
  c.params.lasting_penalty = one_of(random, {0.0f, 0.0f, 1.5f, -0.5f});
  if (chance(random, 8)) c.params.noise = one_of(random, {0.01f, 1.5f, 40.0f});
  return c;
}

}  // namespace skein::sampling
