#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "sampling/sampling_params.hpp"

namespace skein::test {

/// One streamed completion of a server with `--device fake`, and the only text that it may be answered with.
struct fake_wish {
  std::vector<token_id> prompt;
  sampling::sampling_params sampling;

  /// The whole HTTP request.
  [[nodiscard]] std::string request() const;
  /// The first `tokens` tokens of the answer; the byte vocabulary has one character a token.
  [[nodiscard]] std::string text(std::size_t tokens) const;
  [[nodiscard]] std::string text() const { return text(sampling.max_tokens); }
};

/// Wishes of different numbers have different prompts; every other one is greedy, the rest draw by a seed of their own.
[[nodiscard]] fake_wish make_wish(std::uint64_t number, std::uint32_t prompt_tokens, std::uint32_t max_tokens);

}  // namespace skein::test
