#include "actors/request/answer/row_text.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/utf8.hpp"

namespace skein::request {

std::uint64_t text_place::pass(std::string_view bytes) {
  const bool was_open = assembler_.held() > 0;
  std::string first, rest;
  assembler_.push(bytes.substr(0, 1), first);
  const bool broken = was_open && !first.empty() && utf8_length(first) + assembler_.held() > 1;
  assembler_.push(bytes.substr(std::min<std::size_t>(bytes.size(), 1)), rest);
  const std::uint64_t place = characters_ + (broken ? 1 : 0);  // the incomplete character became U+FFFD
  characters_ += utf8_length(first) + utf8_length(rest);
  return place;
}

row_text::row_text(const tokenizer::vocabulary& vocabulary, std::vector<std::string> stops, protocol::answer_form form,
                   bool shows_stop, protocol::call_splitter calls, protocol::first_newlines newlines)
    : vocabulary_(vocabulary),
      shows_stop_(shows_stop),
      matcher_(std::move(stops)),
      splitter_(form, newlines),
      call_splitter_(std::move(calls)),
      lead_(protocol::closes_tag(form) ? form : protocol::answer_form::raw, newlines) {}

void row_text::push(token_id token, const sampling::token_logprobs* logprobs) {
  check(!stopped_, "no token follows a row's stop string");
  const std::string_view bytes = vocabulary_.text(token);
  if (!is_hidden(bytes)) {
    ++tokens_;
    if (splitter_.reasoning()) ++reasoning_tokens_;
    score(token, logprobs);
  }
  bytes_in_ += bytes.size();
  scratch_.clear();
  const auto outcome = matcher_.push(bytes, scratch_);
  release(scratch_);
  if (outcome.stop) {
    stopped_ = matcher_.stops()[*outcome.stop];
    if (shows_stop_) release(std::string_view(*stopped_).substr(stopped_->size() - outcome.dropped));
    waiting_.clear();  // these are behind the cut
  }
}

void row_text::push_stop_token(token_id token, const sampling::token_logprobs* logprobs) {
  check(!stopped_, "no token follows a row's stop string");
  ++tokens_;
  score(token, logprobs);
}

bool row_text::is_hidden(std::string_view bytes) {
  const bool hidden = lead_.open() && !bytes.empty() && lead_.cut(bytes).empty() && hidden_tokens_ < hidden_tokens_max;
  hidden_tokens_ += hidden ? 1 : 0;
  return hidden;
}

/// The token's log-probability waits until the token's text is released.
void row_text::score(token_id token, const sampling::token_logprobs* logprobs) {
  if (!logprobs) return;
  logprob_sum_ += logprobs->logprob;
  waiting_.push_back({bytes_in_, {token, *logprobs}});
}

void row_text::go_on_after(const std::vector<token_id>& tokens) {
  std::string text;
  for (const token_id token : tokens) {
    (void)is_hidden(vocabulary_.text(token));
    text += vocabulary_.text(token);
  }
  release(text);
  matcher_.follow(text);
  bytes_out_ = 0;
}

void row_text::finish() {
  scratch_.clear();
  matcher_.finish(scratch_);
  release(scratch_);
  for (auto& w : waiting_) ready_.logprobs.push_back(std::move(w.token));  // tokens without text at the end
  waiting_.clear();
  bytes_out_ -= std::min<std::uint64_t>(bytes_out_, assembler_.finish());
  protocol::think_splitter::parts rest;
  splitter_.finish(rest);
  ready_.reasoning += rest.reasoning;
  divide(rest.content, true);
}

/// Divides the content into text and calls.
void row_text::divide(std::string_view content, bool last) {
  call_splitter_.push(content, ready_.content, ready_.calls);
  if (last) call_splitter_.finish(ready_.content, ready_.calls);
}

void row_text::release(std::string_view bytes) {
  bytes_out_ += bytes.size();
  while (!waiting_.empty() && waiting_.front().first_byte < bytes_out_) {
    ready_.logprobs.push_back(std::move(waiting_.front().token));
    waiting_.pop_front();
  }
  std::string characters;
  assembler_.push(bytes, characters);
  protocol::think_splitter::parts parts;
  splitter_.push(characters, parts);
  ready_.reasoning += parts.reasoning;
  divide(parts.content, false);
}

row_text::piece row_text::take() {
  for (const auto& piece : ready_.calls) {
    calls_begun_ += piece.name.empty() ? 0 : 1;
    calls_ended_ += piece.ends ? 1 : 0;
  }
  return std::exchange(ready_, {});
}

}  // namespace skein::request
