#include "engine/fake/fake_model.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.hpp"
#include "sampling/sampler.hpp"

namespace skein::engine {
namespace {

// Far enough apart that only absurd temperatures sample a token outside the text or miss a certain end of text.
constexpr float text_logit_spread = 6.0f;
constexpr float certain_logit = 40.0f;
constexpr float unlikely_logit = -40.0f;

// The finaliser of SplitMix64: every bit of the result depends on every bit of `x`.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::uint64_t key_of(const sha256_digest& state) {
  std::array<std::uint64_t, 4> words;
  std::memcpy(words.data(), state.data(), state.size());
  return mixed(words[0] ^ mixed(words[1] ^ mixed(words[2] ^ mixed(words[3]))));
}

double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

}  // namespace

model::state_layout fake_state_layout(const fake_model& model) {
  check(model.state_floats % 2 == 0);
  return {.layers = 1, .embd = static_cast<std::uint32_t>(model.state_floats / 2)};
}

sha256_digest fake_feed(const sha256_digest& state, token_id token) {
  std::array<std::uint8_t, 36> bytes;
  std::ranges::copy(state, bytes.begin());
  for (std::size_t i = 0; i < 4; ++i)
    bytes[state.size() + i] = static_cast<std::uint8_t>(static_cast<std::uint32_t>(token) >> (8 * i));
  return sha256(bytes);
}

void fake_logits(const fake_model& model, const sha256_digest& state, std::span<float> logits) {
  check(logits.size() == model.vocab);
  const std::uint64_t key = key_of(state);
  std::ranges::fill(logits, unlikely_logit);
  for (token_id t = model.first_text_token; t <= model.last_text_token; ++t)
    logits[static_cast<std::size_t>(t)] =
        text_logit_spread * static_cast<float>(unit(mixed(key + static_cast<std::uint64_t>(t))));
  if (unit(mixed(~key)) < model.end_of_text_chance) logits[end_of_text] = certain_logit;
}

void write_fake_state(const sha256_digest& state, std::span<float> out) {
  check(out.size() >= state.size());
  const std::uint64_t key = key_of(state);
  std::ranges::copy(state, out.begin());
  for (std::size_t i = state.size(); i < out.size(); ++i) out[i] = static_cast<float>(mixed(key + i) & 255);
}

bool read_fake_state(std::span<const float> in, sha256_digest& state) {
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (!(in[i] >= 0 && in[i] <= 255)) return false;
    state[i] = static_cast<std::uint8_t>(in[i]);
  }
  std::vector<float> demanded(in.size());
  write_fake_state(state, demanded);
  return std::ranges::equal(in, demanded);
}

std::vector<token_id> fake_text(const fake_model& model, std::span<const token_id> prompt,
                                const sampling::sampling_params& params) {
  sha256_digest state = fake_initial_state;
  for (const token_id t : prompt) state = fake_feed(state, t);

  sampling::sampler sampler(model.vocab);
  sampler.start(params);
  std::vector<float> logits(model.vocab);
  std::vector<token_id> text;
  while (text.size() < params.max_tokens) {
    fake_logits(model, state, logits);
    text.push_back(sampler.sample(logits).token);
    if (sampler.is_stop(text.back())) break;
    state = fake_feed(state, text.back());
  }
  return text;
}

}  // namespace skein::engine
