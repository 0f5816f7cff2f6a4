#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "base/sha256.hpp"
#include "model/state_layout.hpp"
#include "sampling/sampling_params.hpp"

namespace skein::engine {

/// The model of the fake engine, for tests and load tests without weights. Its state is a hash of all tokens fed so
/// far, its logits are random numbers keyed by that hash, and the real sampler samples from them. So the output is a
/// pure function of prompt and sampling parameters, and one wrong, missing or foreign token changes all later tokens.
struct fake_model {
  std::uint32_t vocab = 256;
  token_id first_text_token = 32;  ///< likely tokens, by default the printable ones of a byte vocabulary
  token_id last_text_token = 126;
  double end_of_text_chance = 0;    ///< fraction of positions where the end of text is almost certain
  std::size_t state_floats = 1024;  ///< of a stored state; even, at least 32
};

/// Two rows of floats.
[[nodiscard]] model::state_layout fake_state_layout(const fake_model& model);

/// The state before the first token.
inline constexpr sha256_digest fake_initial_state{};

/// SHA-256 over the previous state and the token (four bytes, little-endian).
[[nodiscard]] sha256_digest fake_feed(const sha256_digest& state, token_id token);

/// logits : [vocab]
void fake_logits(const fake_model& model, const sha256_digest& state, std::span<float> logits);

/// A state as floats: the hash, one byte per float, then bytes derived from it up to the full size. All are integers
/// below 256, which every storage type represents exactly.
void write_fake_state(const sha256_digest& state, std::span<float> out);

/// The inverse of write_fake_state; false if any float does not match the hash (a torn or mixed state).
[[nodiscard]] bool read_fake_state(std::span<const float> in, sha256_digest& state);

/// The tokens that a request for one row must return, including the one that stops it.
[[nodiscard]] std::vector<token_id> fake_text(const fake_model& model, std::span<const token_id> prompt,
                                              const sampling::sampling_params& params);

}  // namespace skein::engine
