#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "base/tensor.hpp"

/// The primitives that the stages of stages.hpp are made of, for one row (one token) each, as kernels/reference
/// computes them: plain loops over fp32 values, sums in fp64 so that the judge adds no rounding of its own, one thread.
/// The other back ends fuse these as they like and are tested against them.
///
/// Letters, as in the papers of RWKV-4 to 7: r receptance, w decay, k key, v value, a in-context learning rate, g gate,
/// kk the normalised removal key, S the state of a head, indexed [value, key]. C = H * N channels, H heads of size N.
/// All rows are dense; outputs may be the same memory as an input of the same length unless a line says otherwise.
namespace skein::kernels {

using row = std::span<const float>;
using row_out = std::span<float>;

inline constexpr float layer_norm_eps = 1e-5f;   ///< of ln0, ln1, ln2 and ln_out
inline constexpr float group_norm_eps = 64e-5f;  ///< of ln_x, whatever the head size

/// out = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, with the biased variance.
void layer_norm(row x, row weight, row bias, float eps, row_out out);

/// layer_norm of each of the `heads` equal parts of x on its own; weight and bias have one entry per channel.
void group_norm(row x, std::size_t heads, row weight, row bias, float eps, row_out out);

/// out = now + (before - now) * mix: mix is the share of the previous token.
void token_shift(row now, row before, row mix, row_out out);

/// A matrix (outputs, inputs), row-major.
struct dense_matrix {
  std::size_t outputs = 0, inputs = 0;
  std::vector<float> values;
};

/// The matrix of a view of shape (outputs, inputs); `transposed` views have the shape (inputs, outputs).
[[nodiscard]] dense_matrix load_dense(const tensor_view& view, bool transposed);

/// out[o] = sum over i of matrix[o, i] * x[i]; out and x are different memory.
void linear(const dense_matrix& matrix, row x, row_out out);

/// 1 / (1 + exp(-x))
[[nodiscard]] float sigmoid(float x);

/// x * sigmoid(x)
[[nodiscard]] float silu(float x);

/// x = max(x, 0)^2
void relu_squared(row_out x);

/// The decay of a channel from its low-rank output: exp(-exp(-0.5) * sigmoid(x)), between 0.545 and 1.
[[nodiscard]] float decay(float x);

/// x = x / max(|x|, 1e-12), the Euclidean norm of one head.
void normalise(row_out x);

/// What one token brings to one head; [N] each.
struct wkv7_token {
  row r, w, k, v, kk, a;
};

/// One token through the state of one head, which is updated before it is read:
///   S <- S diag(w) - (S kk) (a * kk)^T + v k^T,   y = S r
/// state is [value, key], N * N; y is [N].
void wkv7(const wkv7_token& token, std::span<float> state, row_out y);

/// One token through the state of one head of RWKV-5 or 6, which is read before it is updated (arXiv 2404.05892):
///   y = (S + v (u * k)^T) r,   S <- S diag(w) + v k^T
/// with u the bonus of the newest token. r, w, k, v, u and y are [N], state is [value, key], N * N.
void wkv6(row r, row w, row k, row v, row u, std::span<float> state, row_out y);

/// The state of RWKV-4, [A] each: numerator and denominator of the weighted mean of all values, both scaled by
/// exp(-pp).
struct wkv4_state {
  row_out aa, bb, pp;
};
inline constexpr float wkv4_empty_exponent = -1e38f;  ///< pp before the first token: "minus infinity"

/// One token through the state of RWKV-4 (arXiv 2305.13048, appendix D), channel by channel:
///   p = max(pp, u + k),      y = (exp(pp - p) aa + exp(u + k - p) v) / (exp(pp - p) bb + exp(u + k - p))
///   q = max(pp - w, k),      aa <- exp(pp - w - q) aa + exp(k - q) v,  bb <- exp(pp - w - q) bb + exp(k - q),  pp <- q
/// with w > 0 the decay of the exponent and u the bonus of the newest token. All are [A].
void wkv4(row w, row u, row k, row v, const wkv4_state& state, row_out y);

/// y[i] += v[i] * sum over j of r[j] * k[j] * r_k[j], within one head.
void add_bonus(row r, row k, row v, row r_k, row_out y);

}  // namespace skein::kernels
