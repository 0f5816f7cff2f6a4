#pragma once
#include <cstddef>
#include <string>

#include "actors/request/answer/prepare.hpp"
#include "base/result.hpp"
#include "protocol/responses/answer.hpp"
#include "sampling/sampling_params.hpp"
#include "tokenizer/vocabulary.hpp"

namespace skein::request {

/// The bytes of JSON that a whole answer, or one that is kept, may still take. Other streams hold little and have no
/// budget.
class answer_budget {
 public:
  explicit answer_budget(const prepared_call& call)
      : is_limited_(!call.request.stream || call.request.session.has_value()), left_(call.answer_bytes_max) {}

  /// Takes the JSON around the texts. Errors: invalid_argument if that alone exceeds limits.response_bytes_max.
  [[nodiscard]] result<void> take_frame(const prepared_call& call, const protocol::answer_head& head,
                                        const std::string& request_name, const protocol::request_limits& limits);
  /// Takes a token's text and log-probabilities (null: none); false if they do not fit.
  [[nodiscard]] bool take(token_id token, const sampling::token_logprobs* logprobs, std::uint32_t top,
                          const tokenizer::vocabulary& vocabulary);

 private:
  const bool is_limited_;
  std::size_t left_;
};

}  // namespace skein::request
