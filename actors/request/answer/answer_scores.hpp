#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "actors/request/answer/prepare.hpp"
#include "actors/request/answer/row_text.hpp"
#include "protocol/responses/answer.hpp"
#include "sampling/sampling_params.hpp"
#include "tokenizer/vocabulary.hpp"

namespace skein::request {

/// The log-probabilities that a client asked for: those of generated tokens, and of an echoed prompt, as the members of
/// a response.
class answer_scores {
 public:
  /// `vocabulary` outlives this.
  answer_scores(const prepared_call& call, const tokenizer::vocabulary& vocabulary);

  /// The next scores of a prompt's tokens, from its second one.
  void add(std::uint32_t prompt, const std::vector<sampling::token_logprobs>& scores);
  /// Whether the response has log-probabilities at all.
  [[nodiscard]] bool are_wanted() const { return wanted_; }
  /// `place`: of the row's next token; moves past these.
  [[nodiscard]] std::vector<protocol::logprob_entry> entries(const std::vector<scored_token>& tokens,
                                                             text_place& place) const;
  /// Those of an echoed prompt, whose answer begins after it.
  [[nodiscard]] std::vector<protocol::logprob_entry> of_prompt(std::uint32_t prompt,
                                                               const std::vector<token_id>& tokens,
                                                               text_place& place) const;

 private:
  [[nodiscard]] protocol::logprob_entry entry(const scored_token& scored, std::string_view text,
                                              text_place& place) const;
  [[nodiscard]] std::vector<std::pair<std::string, float>> alternatives_of(const scored_token& sampled) const;

  const tokenizer::vocabulary& vocabulary_;
  const bool wanted_, scores_prompt_;
  const std::size_t echo_skips_;
  const bool is_chat_;
  const std::uint32_t top_;
  std::vector<std::vector<sampling::token_logprobs>> of_prompts_;  // of tokens 1..
};

}  // namespace skein::request
