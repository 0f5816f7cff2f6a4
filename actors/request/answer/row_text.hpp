#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "protocol/chat/call_splitter.hpp"
#include "protocol/chat/think_splitter.hpp"
#include "sampling/sampling_params.hpp"
#include "tokenizer/detokenizer.hpp"
#include "tokenizer/stop_matcher.hpp"
#include "tokenizer/vocabulary.hpp"

namespace skein::request {

/// Maximum number of tokens of the template's closing tag that do not count. The device samples them nevertheless.
inline constexpr std::uint32_t hidden_tokens_max = 8;

/// A generated token with its log-probabilities, for the response.
struct scored_token {
  token_id token = no_token;
  sampling::token_logprobs logprobs;
};

/// The offsets of tokens in the text of a choice, in characters, as the client sees it.
class text_place {
 public:
  /// Returns the offset of the next token and moves past it. A token that completes a character has that character's
  /// offset.
  std::uint64_t pass(std::string_view bytes);
  /// Ends the echoed prompt, so that the answer begins at a character boundary.
  void end_part() { (void)assembler_.finish(); }

 private:
  tokenizer::utf8_assembler assembler_;
  std::uint64_t characters_ = 0;
};

/// Turns one row's tokens into the client's text: bytes, stop strings, whole UTF-8 characters, reasoning separated from
/// content. A plain class; its output does not depend on token boundaries.
class row_text {
 public:
  /// `shows_stop`: the row's text includes the stop string that ends it.
  row_text(const tokenizer::vocabulary& vocabulary, std::vector<std::string> stops, protocol::answer_form form,
           bool shows_stop = false, protocol::call_splitter calls = {nullptr, false},
           protocol::first_newlines newlines = protocol::first_newlines::lead);

  /// Text that became final since the last take().
  struct piece {
    std::string reasoning, content;
    std::vector<protocol::call_piece> calls;  ///< without ids
    std::vector<scored_token> logprobs;       ///< of tokens that are at least partly in the text so far
    [[nodiscard]] bool empty() const {
      return reasoning.empty() && content.empty() && calls.empty() && logprobs.empty();
    }
  };

  /// Adds a token. Not for stop ids, which have no text, nor after stopped(). The end of text and ids without text add
  /// nothing.
  void push(token_id token, const sampling::token_logprobs* logprobs);
  /// Adds the token that ends the row: it has no text, but it counts and has a log-probability.
  void push_stop_token(token_id token, const sampling::token_logprobs* logprobs);
  /// Ends the row and releases the text that was held back. Call it once.
  void finish();
  [[nodiscard]] piece take();

  /// The row has called tools, and all calls are whole.
  [[nodiscard]] bool calls() const { return calls_begun_ > 0 && calls_ended_ == calls_begun_; }
  /// The stop string that ended the row, if one did.
  [[nodiscard]] const std::optional<std::string>& stopped() const { return stopped_; }
  /// Bytes of the tokens' text up to the cut; valid once finished. The cut removes a stop string and everything after
  /// it, and an incomplete character at the end.
  [[nodiscard]] std::uint64_t visible_bytes() const { return bytes_out_; }
  /// Continues an interrupted answer with these tokens; its text is released first. None of these tokens count. A stop
  /// string that begins in them ends the row where it is complete, but they keep their text. Call it before any push.
  void go_on_after(const std::vector<token_id>& tokens);
  /// Bytes, counted as above, that are final: no stop string can remove them.
  [[nodiscard]] std::uint64_t certain_bytes() const {
    return bytes_out_ - std::min<std::uint64_t>(bytes_out_, assembler_.held());
  }
  /// Tokens that count: all except those that only close the tag with which the template ends.
  [[nodiscard]] std::uint32_t tokens() const { return tokens_; }
  [[nodiscard]] std::uint32_t hidden_tokens() const { return hidden_tokens_; }
  /// How many more tokens may be hidden.
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
  void divide(std::string_view content, bool last);
  [[nodiscard]] bool is_hidden(std::string_view bytes);
  void score(token_id token, const sampling::token_logprobs* logprobs);

  const tokenizer::vocabulary& vocabulary_;
  const bool shows_stop_;
  tokenizer::stop_matcher matcher_;
  tokenizer::utf8_assembler assembler_;
  protocol::think_splitter splitter_;
  protocol::call_splitter call_splitter_;
  protocol::answer_lead lead_;            // by token; the splitter works on final bytes
  std::deque<waiting_logprobs> waiting_;  // tokens whose bytes are still held back
  piece ready_;
  std::uint32_t calls_begun_ = 0, calls_ended_ = 0;  // of those that were taken
  std::optional<std::string> stopped_;
  std::string scratch_;
  std::uint64_t bytes_in_ = 0, bytes_out_ = 0;
  std::uint32_t tokens_ = 0, reasoning_tokens_ = 0, hidden_tokens_ = 0;
  double logprob_sum_ = 0;
};

}  // namespace skein::request
