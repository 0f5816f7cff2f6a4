#include "actors/request/answer/answer_state.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.hpp"

namespace skein::request {

using device::finish_cause;
using protocol::answer_end;
using protocol::finish_reason;

namespace {

/// `end`: with what is known of it.
answer_end ended_by(finish_cause cause, answer_end end, const std::string& request_name) {
  switch (cause) {
    case finish_cause::stop_id:
    case finish_cause::cancelled: end.reason = finish_reason::stop; break;
    case finish_cause::budget: end.reason = finish_reason::length; break;
    case finish_cause::timeout:
      end.reason = finish_reason::length;
      end.administrative = protocol::administrative_stop{"timeout", request_name};
      break;
    case finish_cause::shutdown:
      end.reason = finish_reason::length;
      end.administrative = protocol::administrative_stop{"drain", request_name};
      break;
    case finish_cause::device_lost:
    case finish_cause::not_finite:  // the whole answer is an error
      end.reason = finish_reason::length;
      end.administrative = protocol::administrative_stop{"device_lost", request_name};
      break;
  }
  return end;
}

}  // namespace

answer_state::answer_state(prepared_call call, const served_model& model, protocol::answer_head head,
                           std::string request_name)
    : call_(std::move(call)),
      model_(model),
      head_(std::move(head)),
      request_name_(std::move(request_name)),
      stream_(call_.prompts.size() * call_.rows_per_prompt()),
      scores_(call_, *model_.vocabulary),
      budget_(call_) {
  head_.constraint_notes = call_.constraint_notes;
  const std::size_t rows = call_.prompts.size() * call_.rows_per_prompt();
  rows_.reserve(rows);
  for (std::uint32_t prompt = 0; prompt < call_.prompts.size(); ++prompt)
    for (std::uint32_t row = 0; row < call_.rows_per_prompt(); ++row)
      rows_.emplace_back(row_text(*model_.vocabulary, call_.request.stop, call_.form, call_.request.shows_stop,
                                  {call_.request.tool_names, call_.request.calls_at_once}, call_.newlines),
                         prompt * call_.request.n + row);
  rows_left_ = static_cast<std::uint32_t>(rows);
  for (const auto& p : call_.prompts) prompt_tokens_ += p.size();
  set_hidden_budget();
}

void answer_state::set_hidden_budget() {
  const bool samples = !rows_.empty() && call_.request.sampling.max_tokens > 0;
  hidden_budget_ = samples ? rows_.front().text.hidden_tokens_left() : 0;
}

std::vector<token_id> answer_state::give_prompt(std::uint32_t prompt) {
  const bool keep = call_.request.echo || call_.prompts.size() > 1 || call_.pause_tokens_max > 0;
  return keep ? call_.prompts[prompt] : std::move(call_.prompts[prompt]);
}

std::size_t answer_state::number_of(std::uint32_t prompt, std::uint32_t row) const {
  check(row < call_.rows_per_prompt());
  return prompt * call_.rows_per_prompt() + row;
}

// ---------------------------------------------------------------- events

void answer_state::on_admitted(std::uint32_t prompt) {
  if (!call_.request.echo && call_.pause_tokens_max == 0) std::vector<token_id>().swap(call_.prompts[prompt]);
  if (!call_.request.stream || !call_.request.chat) return;
  for (std::uint32_t row = 0; row < call_.rows_per_prompt(); ++row) begin_row(prompt, row);
}

bool answer_state::on_token(std::uint32_t prompt, std::uint32_t row, token_id token,
                            const sampling::token_logprobs* logprobs) {
  answer_row& r = at(prompt, row);
  if (r.over) return false;  // sampled before the device knew of the stop
  const bool fits = budget_.take(token, logprobs, call_.request.sampling.top_logprobs, *model_.vocabulary);
  if (call_.stops_at(token)) {
    r.text.push_stop_token(token, fits ? logprobs : nullptr);
    if (token != model_.vocabulary->end()) r.end.stop_reason = token;
    return false;  // row_finished follows
  }
  if (!fits) {
    answer_end end;
    end.reason = finish_reason::length;
    end.administrative = protocol::administrative_stop{"response_bytes_max", request_name_};
    end_row(prompt, row, std::move(end));
    return true;
  }
  r.text.push(token, logprobs);
  keep(token);
  if (r.text.stopped()) {
    answer_end end;
    end.stop_reason = *r.text.stopped();
    end_row(prompt, row, std::move(end));
    return true;
  }
  if (hidden_budget_ > 0 && r.text.tokens() >= call_.request.sampling.max_tokens) {
    answer_end end;  // earlier than the device, whose budget includes tokens that may be hidden
    end.reason = finish_reason::length;
    end_row(prompt, row, std::move(end));
    return true;
  }
  if (!call_.request.stream) {
    if (is_kept()) collect(prompt, row);  // for progress notes
  } else if (++r.tokens_since_event >= call_.request.chunk_size) {
    send_piece(prompt, row);
  }
  return false;
}

void answer_state::on_row_finished(std::uint32_t prompt, std::uint32_t row, finish_cause cause) {
  answer_row& r = at(prompt, row);
  if (!r.over) end_row(prompt, row, ended_by(cause, std::move(r.end), request_name_));
}

void answer_state::stop(std::string_view why) {
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].over) continue;
    answer_end end = std::move(rows_[i].end);
    end.reason = finish_reason::stop;
    end.administrative = protocol::administrative_stop{std::string(why), request_name_};
    end_row(i / call_.rows_per_prompt(), i % call_.rows_per_prompt(), std::move(end));
  }
}

// ---------------------------------------------------------------- streams

/// Writes what precedes a row's first text: the role of a chat answer, the echoed prompt of a completion.
void answer_state::begin_row(std::uint32_t prompt, std::uint32_t row) {
  answer_row& r = at(prompt, row);
  if (r.begun) return;
  r.begun = true;
  const auto& writer = *call_.request.writer;
  stream_.append(writer.begin_event(head_, r.index));
  if (!call_.request.echo) return;
  const std::string text = echo_text(prompt);
  const auto scores = scores_.of_prompt(prompt, call_.prompts[prompt], r.place);
  const protocol::row_delta echo{r.index, "", text, scores};
  stream_.append(writer.delta_events(head_, {&echo, 1}));
}

void answer_state::send_piece(std::uint32_t prompt, std::uint32_t row) {
  answer_row& r = at(prompt, row);
  begin_row(prompt, row);
  row_text::piece piece = r.take(head_.id);
  if (piece.empty()) return;
  r.tokens_since_event = 0;
  keep(piece);
  const std::size_t number = number_of(prompt, row);
  if (stream_.has_delta(number)) write_stream();
  auto scores = scores_.entries(piece.logprobs, r.place);
  stream_.add(number, r.index, std::move(piece), std::move(scores));
}

void answer_state::write_stream() {
  const auto& writer = *call_.request.writer;
  if (stream_.write(writer, head_, note())) stream_.append(writer.last_events(head_, usage(), note()));
}

/// For whole answers.
void answer_state::collect(std::uint32_t prompt, std::uint32_t row) {
  answer_row& r = at(prompt, row);
  row_text::piece piece = r.take(head_.id);
  keep(piece);
  r.collect(std::move(piece));
}

void answer_state::keep(const row_text::piece& piece) {
  if (!is_kept()) return;
  kept_.reasoning += piece.reasoning;
  kept_.content += piece.content;
  for (const auto& call : piece.calls) protocol::add_piece(call, kept_.content, call_.request.style.turns);
}

/// Keeps a token for the session, or to resume after a pause. Above pause_tokens_max the request cannot be paused any
/// more.
void answer_state::keep(token_id token) {
  if (!is_kept() && call_.pause_tokens_max == 0) return;
  kept_.sampled.push_back(token);
  if (is_kept() || prompt_tokens_ + kept_.sampled.size() <= call_.pause_tokens_max) return;
  call_.pause_tokens_max = 0;
  kept_.sampled = {};
  call_.prompts.front() = {};
}

void answer_state::end_row(std::uint32_t prompt, std::uint32_t row, answer_end end) {
  answer_row& r = at(prompt, row);
  r.text.finish();
  r.over = true;
  r.end = std::move(end);
  --rows_left_;
  if (call_.request.stream)
    send_piece(prompt, row);
  else
    collect(prompt, row);
  if (r.text.calls() && r.end.reason == finish_reason::stop && !r.end.administrative)
    r.end.reason = finish_reason::tool_calls;
  if (is_kept()) {
    kept_.visible_bytes = r.text.visible_bytes();
    kept_.end = r.end;
  } else if (call_.request.stream) {
    stream_.add_end(r.index, r.end);
  }
}

void answer_state::continue_after(const std::vector<token_id>& earlier) {
  answer_row& r = at(0, 0);
  r.text.go_on_after(earlier);
  set_hidden_budget();
  const row_text::piece known = r.take(head_.id);
  keep(known);
  r.resume_after(known);
}

std::uint64_t answer_state::certain_bytes() const { return rows_.front().text.certain_bytes(); }

void answer_state::conclude(protocol::session_note note) {
  note_ = std::move(note);
  if (call_.request.stream) stream_.add_end(rows_.front().index, rows_.front().end);
}

std::string answer_state::take_stream() {
  write_stream();
  return stream_.take();
}

// ---------------------------------------------------------------- whole answers

std::string answer_state::body() {
  check(over());
  std::vector<protocol::whole_row> rows;
  for (std::uint32_t prompt = 0; prompt < call_.prompts.size(); ++prompt) {
    std::uint32_t place = 0;
    for (const std::uint32_t row : best_rows(prompt))
      rows.push_back(whole(prompt, row, prompt * call_.request.n + place++));
  }
  return call_.request.writer->body(head_, std::move(rows), usage(), note());
}

protocol::whole_row answer_state::whole(std::uint32_t prompt, std::uint32_t row, std::uint32_t index) {
  answer_row& r = at(prompt, row);
  protocol::whole_row w;
  w.index = index;
  w.reasoning = std::move(r.reasoning);
  if (call_.request.echo) w.content = echo_text(prompt);
  w.content += r.content;
  w.tool_calls = std::move(r.calls);
  w.end = r.end;
  if (!scores_.are_wanted()) return w;
  w.logprobs.emplace();
  if (call_.request.echo) w.logprobs = scores_.of_prompt(prompt, call_.prompts[prompt], r.place);
  for (auto& e : scores_.entries(std::exchange(r.logprobs, {}), r.place)) w.logprobs->push_back(std::move(e));
  return w;
}

/// The n rows of a prompt that are returned: the first n, or with best_of those with the best mean log-probability.
std::vector<std::uint32_t> answer_state::best_rows(std::uint32_t prompt) const {
  std::vector<std::uint32_t> rows(call_.rows_per_prompt());
  std::iota(rows.begin(), rows.end(), 0u);
  if (call_.request.best_of > call_.request.n) {
    const auto mean = [&](std::uint32_t row) {
      const row_text& t = rows_[prompt * call_.rows_per_prompt() + row].text;
      return t.tokens() == 0 ? 0.0 : t.logprob_sum() / t.tokens();
    };
    std::ranges::stable_sort(rows, [&](std::uint32_t a, std::uint32_t b) { return mean(a) > mean(b); });
  }
  rows.resize(call_.request.n);
  return rows;
}

// ---------------------------------------------------------------- parts

std::string answer_state::echo_text(std::uint32_t prompt) const {
  std::string bytes;
  for (token_id t : call_.prompts[prompt]) bytes += model_.vocabulary->text(t);
  bytes.erase(0, call_.echo_skips);
  bytes.insert(0, call_.echo_known);
  tokenizer::utf8_assembler assembler;
  std::string text;
  assembler.push(bytes, text);
  return text;
}

protocol::token_usage answer_state::usage() const {
  protocol::token_usage u{.prompt_tokens = prompt_tokens_, .cached_tokens = cached_tokens_};
  for (const auto& r : rows_) {
    u.completion_tokens += r.text.tokens();
    u.reasoning_tokens += r.text.reasoning_tokens();
  }
  return u;
}

void answer_state::count_prompt(std::uint64_t tokens, std::uint64_t cached) {
  prompt_tokens_ = tokens;
  cached_tokens_ = cached;
}

std::string_view answer_state::finish_word() const {
  if (rows_.empty()) return "stop";
  const answer_end& end = rows_.front().end;
  if (end.administrative) return end.administrative->stop_reason;
  return protocol::to_string(end.reason);
}

}  // namespace skein::request
