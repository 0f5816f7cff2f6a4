#include "actors/request/answer/answer_state.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>

#include "base/check.hpp"
#include "protocol/json/json_writer.hpp"
#include "protocol/server/tokenize_api.hpp"

namespace skein::request {

using device::finish_cause;
using protocol::answer_end;
using protocol::finish_reason;
using protocol::logprob_entry;

namespace {

/// Approximate bytes of a token and its alternatives as JSON: each text, and its bytes as numbers.
std::size_t scored_bytes(token_id token, const sampling::token_logprobs& logprobs, std::uint32_t top,
                         const tokenizer::vocabulary& vocabulary) {
  constexpr std::size_t a_byte = 9;  // "\\xff" for invalid UTF-8, and "255,"
  const auto bytes_of = [&](token_id id) {
    const std::string_view text = vocabulary.text(id);
    return protocol::json_bytes(text) + a_byte * text.size();
  };
  std::size_t bytes = scored_token_bytes(top) + 2 * bytes_of(token);  // it may be among the alternatives again
  for (const auto& best : std::span(logprobs.top).first(std::min(logprobs.count, top))) bytes += bytes_of(best.token);
  return bytes;
}

/// The requested number of best tokens, plus the sampled token if it is not among them. Chats that request none get
/// none.
std::vector<std::pair<std::string, float>> alternatives_of(const scored_token& sampled,
                                                           const protocol::generation_request& request,
                                                           const tokenizer::vocabulary& vocabulary) {
  const std::uint32_t asked = request.sampling.top_logprobs;
  std::vector<std::pair<std::string, float>> all;
  if (asked == 0 && request.chat) return all;
  bool named = false;
  for (const auto& best : std::span(sampled.logprobs.top).first(std::min(sampled.logprobs.count, asked))) {
    all.emplace_back(vocabulary.text(best.token), best.logprob);
    named = named || best.token == sampled.token;
  }
  if (!named) all.emplace_back(vocabulary.text(sampled.token), sampled.logprobs.logprob);
  return all;
}

}  // namespace

answer_state::answer_state(prepared_call call, const served_model& model, protocol::answer_head head,
                           std::string request_name)
    : call_(std::move(call)), model_(model), head_(std::move(head)), request_name_(std::move(request_name)) {
  head_.constraint_notes = call_.constraint_notes;
  const std::size_t rows = call_.prompts.size() * call_.rows_per_prompt();
  rows_.reserve(rows);
  for (std::size_t i = 0; i < rows; ++i)
    rows_.emplace_back(row_text(*model_.vocabulary, call_.request.stop, call_.form, call_.request.shows_stop,
                                {call_.request.tool_names, call_.request.calls_at_once}));
  rows_left_ = static_cast<std::uint32_t>(rows);
  prompt_scores_.resize(call_.prompts.size());
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

answer_state::row_state& answer_state::at(std::uint32_t prompt, std::uint32_t row) {
  check(row < call_.rows_per_prompt());
  return rows_.at(prompt * call_.rows_per_prompt() + row);
}

std::uint32_t answer_state::choice_index(std::uint32_t prompt, std::uint32_t row) const {
  return prompt * call_.request.n + row;
}

// ---------------------------------------------------------------- events

void answer_state::on_admitted(std::uint32_t prompt) {
  if (!call_.request.echo && call_.pause_tokens_max == 0) std::vector<token_id>().swap(call_.prompts[prompt]);
  if (!call_.request.stream || !call_.request.chat) return;
  for (std::uint32_t row = 0; row < call_.rows_per_prompt(); ++row) begin_row(prompt, row);
}

void answer_state::on_prompt_scored(std::uint32_t prompt, const std::vector<sampling::token_logprobs>& scores) {
  auto& all = prompt_scores_.at(prompt);
  all.insert(all.end(), scores.begin(), scores.end());
}

bool answer_state::on_token(std::uint32_t prompt, std::uint32_t row, token_id token,
                            const sampling::token_logprobs* logprobs) {
  row_state& r = at(prompt, row);
  if (r.over) return false;  // sampled before the device knew of the stop
  if (call_.stops_at(token)) {
    r.text.push_stop_token(token, has_room(token, logprobs) ? logprobs : nullptr);
    if (token != model_.vocabulary->end()) r.end.stop_reason = token;
    return false;  // row_finished follows
  }
  if (!has_room(token, logprobs)) {
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

/// Bytes of a body without any text, with the longest possible numbers and stop reasons.
std::size_t answer_state::frame_bytes() const {
  const protocol::generation_request& request = call_.request;
  answer_end end;
  end.reason = finish_reason::length;
  std::string longest_stop;
  for (const std::string& stop : request.stop)
    if (protocol::json_bytes(stop) > protocol::json_bytes(longest_stop)) longest_stop = stop;
  end.stop_reason = longest_stop;
  end.administrative = protocol::administrative_stop{"response_bytes_max", request_name_};
  std::vector<protocol::whole_row> rows(call_.prompts.size() * request.n);
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    rows[i].index = i;
    rows[i].end = end;
    if (call_.form == protocol::answer_form::thinking) rows[i].reasoning = "-";
    if (request.sampling.logprobs) rows[i].logprobs.emplace();
  }
  constexpr std::uint64_t most = 0xffffffff;
  const protocol::token_usage usage{most, most, most, most};
  protocol::session_note note;
  if (is_kept()) note = {request.session->id, 0xffffffff, "process", false, true, true, 0xffffffff};
  return request.writer->body(head_, std::move(rows), usage, is_kept() ? &note : nullptr).size();
}

result<void> answer_state::make_room_for_frame(const protocol::request_limits& limits) {
  if (call_.request.stream && !is_kept()) return {};
  const std::size_t bytes = frame_bytes();
  if (bytes >= call_.answer_bytes_max)
    return protocol::response_too_long(call_.request.echo ? "echo" : std::string(call_.request.prompt_field), limits);
  call_.answer_bytes_max -= bytes;
  return {};
}

/// Whether the token fits into the byte budget of a whole or kept answer. Other streams hold little and have no budget.
bool answer_state::has_room(token_id token, const sampling::token_logprobs* logprobs) {
  if (call_.request.stream && !is_kept()) return true;
  const std::size_t bytes =
      protocol::json_bytes(model_.vocabulary->text(token)) +
      (logprobs ? scored_bytes(token, *logprobs, call_.request.sampling.top_logprobs, *model_.vocabulary) : 0);
  if (bytes > call_.answer_bytes_max) return false;
  call_.answer_bytes_max -= bytes;
  return true;
}

void answer_state::on_row_finished(std::uint32_t prompt, std::uint32_t row, finish_cause cause) {
  row_state& r = at(prompt, row);
  if (r.over) return;
  answer_end end = std::move(r.end);
  switch (cause) {
    case finish_cause::stop_id:
    case finish_cause::cancelled: end.reason = finish_reason::stop; break;
    case finish_cause::budget: end.reason = finish_reason::length; break;
    case finish_cause::timeout:
      end.reason = finish_reason::length;
      end.administrative = protocol::administrative_stop{"timeout", request_name_};
      break;
    case finish_cause::shutdown:
      end.reason = finish_reason::length;
      end.administrative = protocol::administrative_stop{"drain", request_name_};
      break;
    case finish_cause::device_lost:
    case finish_cause::not_finite:  // the whole answer is an error
      end.reason = finish_reason::length;
      end.administrative = protocol::administrative_stop{"device_lost", request_name_};
      break;
  }
  end_row(prompt, row, std::move(end));
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
  row_state& r = at(prompt, row);
  if (r.begun) return;
  r.begun = true;
  const std::uint32_t index = choice_index(prompt, row);
  const auto& writer = *call_.request.writer;
  stream_ += writer.begin_event(head_, index);
  if (!call_.request.echo) return;
  const std::string text = echo_text(prompt);
  const auto scores = prompt_entries(prompt, r.place);
  const protocol::row_delta echo{index, "", text, scores};
  stream_ += writer.delta_events(head_, {&echo, 1});
}

void answer_state::send_piece(std::uint32_t prompt, std::uint32_t row) {
  row_state& r = at(prompt, row);
  begin_row(prompt, row);
  row_text::piece piece = take_piece(prompt, row);
  if (piece.empty()) return;
  r.tokens_since_event = 0;
  keep(piece);
  if (r.has_delta) write_deltas();
  r.has_delta = true;
  deltas_.push_back({{prompt, row}, std::move(piece)});
}

/// The new text of a row; its calls get numbers and ids.
row_text::piece answer_state::take_piece(std::uint32_t prompt, std::uint32_t row) {
  row_state& r = at(prompt, row);
  row_text::piece piece = r.text.take();
  for (auto& call : piece.calls) {
    const bool begins = !call.name.empty();
    call.number = begins ? r.calls_made++ : r.calls_made - 1;
    if (begins) call.id = protocol::call_id(head_.id, choice_index(prompt, row), call.number);
  }
  return piece;
}

/// Writes the rows' deltas since the last call in order of index, then the ends of finished rows.
void answer_state::write_deltas() {
  const auto index = [&](const row_place& of) { return choice_index(of.prompt, of.row); };
  std::ranges::sort(deltas_, {}, [&](const waiting_delta& d) { return index(d.of); });
  std::vector<std::vector<logprob_entry>> scores;
  scores.reserve(deltas_.size());
  std::vector<protocol::row_delta> rows;
  for (auto& [of, piece] : deltas_) {
    row_state& r = at(of.prompt, of.row);
    r.has_delta = false;
    scores.push_back(entries(std::move(piece.logprobs), r.place));
    rows.push_back({index(of), piece.reasoning, piece.content, scores.back(), piece.calls});
  }
  const auto& writer = *call_.request.writer;
  stream_ += writer.delta_events(head_, rows);
  deltas_.clear();
  for (const auto& of : ended_) stream_ += writer.end_event(head_, index(of), at(of.prompt, of.row).end, note());
  ends_told_ += ended_.size();
  if (!ended_.empty() && ends_told_ == rows_.size()) stream_ += writer.last_events(head_, usage(), note());
  ended_.clear();
}

/// For whole answers.
void answer_state::collect(std::uint32_t prompt, std::uint32_t row) {
  row_state& r = at(prompt, row);
  row_text::piece piece = take_piece(prompt, row);
  keep(piece);
  r.reasoning += piece.reasoning;
  r.content += piece.content;
  for (const auto& call : piece.calls) protocol::add_piece(call, r.calls);
  std::ranges::move(piece.logprobs, std::back_inserter(r.logprobs));
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
  row_state& r = at(prompt, row);
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
    ended_.push_back({prompt, row});
  }
}

void answer_state::continue_after(const std::vector<token_id>& earlier) {
  row_state& r = at(0, 0);
  r.text.go_on_after(earlier);
  set_hidden_budget();
  const row_text::piece known = take_piece(0, 0);
  keep(known);
  for (const auto& call : known.calls) protocol::add_piece(call, r.calls);
  // Of a call that goes on, the client gets what is new.
  if (!r.calls.empty() && r.calls.back().whole) r.calls.clear();
  if (r.calls.empty()) return;
  r.calls.erase(r.calls.begin(), r.calls.end() - 1);
  r.calls.front().arguments.clear();
}

std::uint64_t answer_state::certain_bytes() const { return rows_.front().text.certain_bytes(); }

void answer_state::conclude(protocol::session_note note) {
  note_ = std::move(note);
  if (call_.request.stream) ended_.push_back({0, 0});
}

std::string answer_state::take_stream() {
  write_deltas();
  return std::exchange(stream_, {});
}

// ---------------------------------------------------------------- whole answers

std::string answer_state::body() {
  check(over());
  std::vector<protocol::whole_row> rows;
  for (std::uint32_t prompt = 0; prompt < call_.prompts.size(); ++prompt) {
    std::uint32_t place = 0;
    for (const std::uint32_t row : best_rows(prompt)) rows.push_back(whole(prompt, row, choice_index(prompt, place++)));
  }
  return call_.request.writer->body(head_, std::move(rows), usage(), note());
}

protocol::whole_row answer_state::whole(std::uint32_t prompt, std::uint32_t row, std::uint32_t index) {
  row_state& r = at(prompt, row);
  protocol::whole_row w;
  w.index = index;
  w.reasoning = std::move(r.reasoning);
  if (call_.request.echo) w.content = echo_text(prompt);
  w.content += r.content;
  w.tool_calls = std::move(r.calls);
  w.end = r.end;
  if (!call_.request.sampling.logprobs) return w;
  w.logprobs.emplace();
  if (call_.request.echo) w.logprobs = prompt_entries(prompt, r.place);
  for (auto& e : entries(std::move(r.logprobs), r.place)) w.logprobs->push_back(std::move(e));
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
  tokenizer::utf8_assembler assembler;
  std::string text;
  assembler.push(bytes, text);
  return text;
}

std::vector<logprob_entry> answer_state::entries(std::vector<scored_token> tokens, text_place& place) const {
  std::vector<logprob_entry> out;
  if (!call_.request.sampling.logprobs) return out;
  for (auto& t : tokens) {
    logprob_entry e;
    e.text = model_.vocabulary->text(t.token);
    e.logprob = t.logprobs.logprob;
    e.top = alternatives_of(t, call_.request, *model_.vocabulary);
    e.text_offset = place.pass(e.text);
    out.push_back(std::move(e));
  }
  return out;
}

std::vector<logprob_entry> answer_state::prompt_entries(std::uint32_t prompt, text_place& place) const {
  if (!call_.score_prompt) return {};
  const auto& tokens = call_.prompts[prompt];
  const auto& scores = prompt_scores_[prompt];
  std::vector<logprob_entry> out;
  logprob_entry first;
  first.text = model_.vocabulary->text(tokens[0]);
  first.text_offset = place.pass(first.text);
  out.push_back(std::move(first));
  std::vector<scored_token> rest;
  for (std::size_t i = 0; i < scores.size() && i + 1 < tokens.size(); ++i) rest.push_back({tokens[i + 1], scores[i]});
  for (auto& e : entries(std::move(rest), place)) out.push_back(std::move(e));
  place.end_part();
  return out;
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
