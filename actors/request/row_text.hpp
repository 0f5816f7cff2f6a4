#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "protocol/think_splitter.hpp"
#include "sampling/sampling_params.hpp"
#include "tokenizer/detokenizer.hpp"
#include "tokenizer/stop_matcher.hpp"
#include "tokenizer/vocabulary.hpp"

namespace skein::request {

/// The most tokens of the template's closing tag that do not count. The device samples them all the same.
inline constexpr std::uint32_t hidden_tokens_max = 8;

/// A generated token with its log-probabilities, for the response.
struct scored_token {
  token_id token = no_token;
  sampling::token_logprobs logprobs;
};

/// Where tokens lie in the text of a choice, in characters, as the client sees it.
class text_place {
 public:
  /// The place of the next token, and goes past it. A token that ends a character has the place of that character.
  std::uint64_t pass(std::string_view bytes);
  /// The echoed prompt ends: the answer begins with whole characters of its own.
  void end_part() { (void)assembler_.finish(); }

 private:
  tokenizer::utf8_assembler assembler_;
  std::uint64_t characters_ = 0;
};

/// From one row's tokens to the text that a client sees: bytes, stop strings, whole UTF-8 characters, thoughts apart.
/// A plain class; what it gives does not depend on how tokens cut the text.
class row_text {
 public:
  /// `shows_stop`: the stop string that ends the row belongs to its text.
  row_text(const tokenizer::vocabulary& vocabulary, std::vector<std::string> stops, protocol::answer_form form,
           bool shows_stop = false);

  /// What has become certain since the last take().
  struct piece {
    std::string reasoning, content;
    std::vector<scored_token> logprobs;  ///< of tokens that the text so far shows at least in part
    [[nodiscard]] bool empty() const { return reasoning.empty() && content.empty() && logprobs.empty(); }
  };

  /// One more token; not to be called for stop ids, which have no text, nor after stopped(). The end of text and ids
  /// without text add nothing.
  void push(token_id token, const sampling::token_logprobs* logprobs);
  /// The token that ends the row: it has no text, but it counts and has its log-probability.
  void push_stop_token(token_id token, const sampling::token_logprobs* logprobs);
  /// No more tokens come: gives out what was held back. Once.
  void finish();
  [[nodiscard]] piece take();

  /// The stop string that ended the row, if one did.
  [[nodiscard]] const std::optional<std::string>& stopped() const { return stopped_; }
  /// Bytes of the tokens' text up to where the row was cut; once finished. What is cut: a stop string and all after it,
  /// and bytes at the end that are no whole character.
  [[nodiscard]] std::uint64_t visible_bytes() const { return bytes_out_; }
  /// The row goes on where an earlier answer with these tokens broke; its text is given out first. Nothing of it
  /// counts, and no stop string begins in it. Before any push.
  void go_on_after(const std::vector<token_id>& tokens);
  /// Bytes, counted as above, that are certain already: no stop string can take them back.
  [[nodiscard]] std::uint64_t certain_bytes() const {
    return bytes_out_ - std::min<std::uint64_t>(bytes_out_, assembler_.held());
  }
  /// Tokens that count: all but those that only close the tag in which the template ends.
  [[nodiscard]] std::uint32_t tokens() const { return tokens_; }
  [[nodiscard]] std::uint32_t hidden_tokens() const { return hidden_tokens_; }
  /// How many more may come that do not count.
  [[nodiscard]] std::uint32_t hidden_tokens_left() const {
    return lead_.open() ? hidden_tokens_max - hidden_tokens_ : 0;
  }
  [[nodiscard]] std::uint32_t reasoning_tokens() const { return reasoning_tokens_; }
  /// Sum of the tokens' log-probabilities so far, for best_of.
  [[nodiscard]] double logprob_sum() const { return logprob_sum_; }

 private:
  struct waiting_logprobs {
    std::uint64_t first_byte;
    scored_token token;
  };
  void release(std::string_view bytes);
  [[nodiscard]] bool is_hidden(std::string_view bytes);
  void score(token_id token, const sampling::token_logprobs* logprobs);

  const tokenizer::vocabulary& vocabulary_;
  const bool shows_stop_;
  tokenizer::stop_matcher matcher_;
  tokenizer::utf8_assembler assembler_;
  protocol::think_splitter splitter_;
  protocol::answer_lead lead_;            // by token, where the splitter has bytes that are certain
  std::deque<waiting_logprobs> waiting_;  // tokens whose bytes are still held back
  piece ready_;
  std::optional<std::string> stopped_;
  std::string scratch_;
  std::uint64_t bytes_in_ = 0, bytes_out_ = 0;
  std::uint32_t tokens_ = 0, reasoning_tokens_ = 0, hidden_tokens_ = 0;
  double logprob_sum_ = 0;
};

}  // namespace skein::request
