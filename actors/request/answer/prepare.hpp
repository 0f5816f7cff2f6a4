#pragma once
#include <algorithm>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "actors/request/shared/service_context.hpp"
#include "base/result.hpp"
#include "protocol/chat/think_splitter.hpp"
#include "protocol/requests/generation_request.hpp"

namespace skein::request {

/// Rows that the device generates for each prompt.
[[nodiscard]] inline std::uint32_t rows_per_prompt(const protocol::generation_request& request) {
  return std::max(request.n, request.best_of);
}

/// A call that is ready for the device.
struct prepared_call {
  protocol::generation_request request;
  std::vector<std::vector<token_id>> prompts;        ///< each at least one token, all below the vocabulary's size
  std::vector<sampling::shared_penalties> priors;    ///< of each prompt; empty: prompts are not penalised
  std::uint32_t system_tokens = 0, turn_tokens = 0;  ///< of a single prompt, as in protocol::fed_text; 0: none
  protocol::answer_form form = protocol::answer_form::raw;
  protocol::first_newlines newlines = protocol::first_newlines::lead;
  /// What the server adds to the parameters of every row. `request` stays as the client sent it, so that it can be
  /// prepared again.
  std::vector<sampling::logit_bias_entry> own_bias;  ///< at most sampling::own_bias_max
  std::vector<token_id> own_stop_ids;                ///< at most sampling::own_stop_ids_max
  std::string constraint_notes = {};                 ///< for answer_head
  bool score_prompt = false;                         ///< echo with logprobs
  std::size_t echo_skips = 0;                        ///< bytes of each prompt before the client's text
  std::string echo_known = {};                       ///< the client's text before the prompt, which a session has
  /// Prompt and answer are kept up to this number of tokens, so that the call can be paused and resumed; 0: it cannot.
  std::size_t pause_tokens_max = 0;
  /// Bytes of JSON that the generated part of a whole answer may take: limits.response_bytes_max minus the echo.
  std::size_t answer_bytes_max = 0;

  [[nodiscard]] std::uint32_t rows_per_prompt() const { return request::rows_per_prompt(request); }
  /// Sampling parameters of one row of one prompt, for the device.
  [[nodiscard]] sampling::sampling_params row_params(std::uint32_t prompt, std::uint32_t row) const;
  [[nodiscard]] bool stops_at(token_id token) const;
};

/// Approximate bytes of a token with `top` alternatives in an answer, in memory and as JSON.
[[nodiscard]] constexpr std::size_t scored_token_bytes(std::uint32_t top) {
  return sizeof(sampling::token_logprobs) + std::size_t{64} * (1 + top);
}

/// Bytes of a call's prompts, penalties and sampling parameters while it waits and runs.
[[nodiscard]] std::size_t held_bytes(const prepared_call& call);

/// Bytes of text and tokens that prepare() will have to read: a suffix counts with each prompt.
[[nodiscard]] std::size_t text_bytes(const protocol::generation_request& request);

/// Renders and tokenises the prompts, sums up their penalties, and checks what needs the vocabulary. Pure; may take
/// long for long texts.
/// Errors: invalid_argument naming the field; too_large for prompts above the limit, or that together exceed
/// settings.key_memory(); invalid_argument (echo) if the echo alone exceeds
/// limits.response_bytes_max or, in a stream, limits.outbound_bytes_max; cancelled once `gone` is requested, which is
/// checked between prompts.
[[nodiscard]] result<prepared_call> prepare(protocol::generation_request request, const served_model& model,
                                            const service_settings& settings, const std::stop_token& gone = {});

}  // namespace skein::request
