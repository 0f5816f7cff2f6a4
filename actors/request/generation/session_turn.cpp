#include "actors/request/generation/session_turn.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.hpp"
#include "protocol/json/json_writer.hpp"
#include "protocol/responses_api/responses_request.hpp"

namespace skein::request {
namespace {

using persistence::version_record;

constexpr std::size_t note_every_tokens = 16;
constexpr std::size_t note_share = 8;         // a note repeats the whole turn: at most one per this share of its length
constexpr std::size_t note_token_bytes = 12;  // of a record, for each token of an ordinary turn

std::int64_t wall_clock_ms() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count();
}

/// The number of tokens that are entirely within the first `bytes` of their text, and their bytes.
struct whole_tokens {
  std::size_t count = 0;
  std::uint64_t bytes = 0;
};
whole_tokens tokens_within(const std::vector<token_id>& tokens, std::uint64_t bytes,
                           const tokenizer::vocabulary& vocabulary) {
  whole_tokens whole;
  for (; whole.count < tokens.size(); ++whole.count) {
    const std::size_t size = vocabulary.text(tokens[whole.count]).size();
    if (whole.bytes + size > bytes) break;
    whole.bytes += size;
  }
  return whole;
}

bool has_answer(const std::vector<protocol::chat_message>& messages) {
  return std::ranges::any_of(messages, [](const auto& m) { return m.role == "assistant"; });
}

bool has_only_new(const std::vector<protocol::chat_message>& messages) {
  const auto users = std::ranges::count_if(messages, [](const auto& m) { return m.role == "user"; });
  const bool results = std::ranges::any_of(messages, [](const auto& m) { return m.role == "tool"; });
  return (users == 1 || (users == 0 && results)) && !has_answer(messages);
}

/// Index of the answer with calls that, after system messages, precedes nothing but results of tools; the number of
/// messages if there is none.
std::size_t repeated_answer(const std::vector<protocol::chat_message>& messages) {
  const auto answer = std::ranges::find_if(
      messages, [](const auto& m) { return m.raw || (m.role != "system" && m.role != "developer"); });
  if (answer == messages.end() || answer->raw || !answer->calls || answer + 1 == messages.end()) return messages.size();
  const bool results = std::all_of(answer + 1, messages.end(), [](const auto& m) { return m.role == "tool"; });
  return results ? static_cast<std::size_t>(answer - messages.begin()) : messages.size();
}

/// The request's stop rules and logit bias, for an answer that may be resumed later.
void write_rules(protocol::json_writer& out, const protocol::generation_request& request) {
  out.key("stop").begin_array();
  for (const std::string& stop : request.stop) out.value(stop);
  out.end_array().key("stop_ids").begin_array();
  for (const token_id id : request.sampling.stop_ids) out.value(id);
  out.end_array().key("ignore_eos").value(request.ignore_eos).key("logit_bias").begin_array();
  for (const auto& entry : request.sampling.logit_bias)
    out.begin_array().value(entry.token).value(entry.bias).end_array();
  out.end_array();
  if (request.shows_stop) out.key("include_stop_str_in_output").value(true);
  if (request.penalises_prompt) out.key("global_penalty").value(true);
  if (request.force_reasoning) out.key("force_reasoning").value(true);
}

/// What the log keeps of a turn besides its request.
struct turn_facts {
  std::uint32_t hidden = 0;             // tokens of the answer that do not count
  std::optional<std::uint64_t> digest;  // of the body
  protocol::token_usage usage;          // kept with the digest
  std::string more;                     // further data of the answer's dialect, as JSON
};

std::string in_json(const protocol::generation_request& request, const turn_facts& facts) {
  const sampling::sampling_params& p = request.sampling;
  std::string json;
  protocol::json_writer out(json);
  out.begin_object();
  out.key("temperature").value(p.temperature).key("top_p").value(p.top_p).key("top_k").value(p.top_k);
  out.key("min_p").value(p.min_p).key("first_penalty").value(p.first_penalty);
  out.key("repeat_penalty").value(p.repeat_penalty).key("penalty_decay").value(p.penalty_decay);
  out.key("max_tokens").value(p.max_tokens).key("seed").value(p.seed);
  if (facts.hidden > 0) out.key(protocol::hidden_tokens_key).value(facts.hidden);
  if (facts.digest) {
    out.key(protocol::request_digest_key).value(*facts.digest);
    protocol::write_reported_usage(out, facts.usage);
  }
  if (!facts.more.empty()) {
    write_rules(out, request);
    out.key("response").json(facts.more);
  }
  out.end_object();
  return json;
}

}  // namespace

session_turn::session_turn(const protocol::generation_request& request)
    : fields_(*request.session),
      stored_(request.store),
      is_chat_(request.chat),
      style_(request.style),
      think_(request.think) {
  if (!is_chat_) {
    raw_ = request.prompts.front().text;
    return;
  }
  messages_ = request.messages;
  if (!fields_.go_on) chat_ = protocol::render_turns(messages_, think_, style_);
}

persistence::open_session session_turn::question(persistence::return_address reply, std::string initial_state,
                                                 steady_time deadline) {
  persistence::open_session q;
  q.reply = reply;
  q.session.id = fields_.id;
  q.initial_state = std::move(initial_state);
  q.kind = fields_.appends ? persistence::turn_text::increment
           : is_chat_      ? persistence::turn_text::chat_messages
                           : persistence::turn_text::raw_text;
  q.history = is_chat_ ? chat_.turns : raw_;
  q.system_bytes = chat_.system_bytes;
  q.opening_follows = !chat_.opening.empty();
  q.only_new = is_chat_ && has_only_new(messages_);
  if (const auto i = repeated_answer(messages_); i < chat_.ends.size()) {
    q.answer_bytes = messages_[i].content.size();
    q.answer_at = chat_.ends[i] - chat_.end_of_turn.size() - q.answer_bytes;
  }
  q.from = fields_.from_version;
  q.from_key = fields_.from_key;
  q.expected_version = fields_.expected_version;
  q.request_key = fields_.request_key;
  q.continue_unfinished = fields_.go_on;
  q.beyond_limit = fields_.beyond_limit;
  q.must_exist = fields_.must_exist || fields_.go_on || (fields_.from_version && *fields_.from_version > 0);
  q.deadline = deadline;
  return q;
}

result<protocol::fed_text> session_turn::begin(persistence::session_opened opened) {
  opened_ = std::move(opened);
  const bool after_text = opened_.base != storage::beginning && opened_.history_from == 0;
  const auto part = [&](std::string_view text) {  // the end of a turn belongs to the text after it
    if (after_text && !text.starts_with(chat_.end_of_turn)) before_ = chat_.end_of_turn;
  };
  if (continues()) {
    const auto& unfinished = *opened_.unfinished;
    if (unfinished.template_name == "chat") {
      is_chat_ = true;
      messages_.clear();  // tools of this request are described in them
      for (const auto& m : unfinished.messages) messages_.push_back({m.role, m.content, ""});
      style_.turns = protocol::turns_of(std::string_view(unfinished.text).substr(0, unfinished.prompt_bytes), style_);
      chat_ = protocol::render_turns(messages_, think_, style_);
      resent_prompt_ = chat_.turns;
      part(resent_prompt_);
    } else {
      is_chat_ = false;  // the recorded prompt already has the blank line
      resent_prompt_ = unfinished.text.substr(0, unfinished.prompt_bytes);
    }
    return protocol::fed_text();
  }
  if (opened_.repeats_answer) {
    messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(repeated_answer(messages_)));
    chat_ = protocol::render_turns(messages_, think_, style_);
  }
  from_ = static_cast<std::size_t>(opened_.history_from);
  if (is_chat_ && opened_.repeats_system) from_ = chat_.system_bytes;
  const std::string& whole = is_chat_ ? chat_.turns : raw_;
  check(from_ <= whole.size());
  resent_prompt_ = whole.substr(from_);
  drop_known_messages();
  part(resent_prompt_);
  protocol::fed_text fed = is_chat_ ? protocol::text_to_feed(chat_, from_) : protocol::fed_text{resent_prompt_};
  fed.text.insert(0, before_);
  fed.added_bytes = is_chat_ ? 0 : before_.size();
  fed.turn_bytes += fed.turn_bytes > 0 ? before_.size() : 0;
  if (fed.text.empty() && opened_.base != storage::beginning)
    return error{error_kind::invalid_argument,
                 "the session already ends with this text; send a new message, or continue an unfinished answer",
                 is_chat_ ? "messages" : "prompt"};
  return fed;
}

error session_turn::in_own_words(error why) const {
  if (!fields_.from_key.empty() && why.kind == error_kind::not_found) {
    why.field = "previous_response_id";
    why.message = "there is no response '" + fields_.from_key + "'";
  }
  if (fields_.branches && why.kind == error_kind::not_found)
    why.message = "State not found for dialogue_idx=" + std::to_string(fields_.from_version.value_or(0));
  return why;
}

/// Only the messages of this turn stay.
void session_turn::drop_known_messages() {
  if (from_ == 0 || !is_chat_) return;
  const std::size_t known_to = from_ + (opened_.repeats_system ? 0 : chat_.end_of_turn.size());
  std::size_t known = 0;
  while (known < messages_.size() && chat_.ends[known] <= known_to) ++known;
  messages_.erase(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(known));
}

std::optional<error> session_turn::refusal_of(const version_record& done) const {
  if (fields_.go_on && responds())
    return error{error_kind::conflict, "response was resumed by another client; try again", "session_id"};
  const auto was = protocol::request_digest_in(done.sampling);
  if (was && digest_ && *was != *digest_)
    return error{error_kind::conflict, "Idempotency-Key was used for a request with another body; use a new key",
                 "Idempotency-Key"};
  return std::nullopt;
}

protocol::answer_form session_turn::continued_form() const {
  const auto& unfinished = *opened_.unfinished;
  if (!is_chat_ || chat_.opening.empty()) return protocol::answer_form::raw;
  return protocol::form_after(std::string_view(unfinished.text).substr(0, unfinished.prompt_bytes));
}

void session_turn::set_prompt(std::vector<token_id> tokens) {
  prompt_ = std::move(tokens);
  said_ = static_cast<std::uint32_t>(prompt_.size());
  if (continues()) said_ = std::min(said_, opened_.unfinished->prompt_tokens);
}

std::vector<token_id> session_turn::earlier_answer() const { return {prompt_.begin() + said_, prompt_.end()}; }

std::vector<engine::prompt_part> session_turn::parts() const {
  std::vector<engine::prompt_part> parts = opened_.resume.parts;
  const auto ahead = static_cast<std::uint32_t>(opened_.resume.ahead), all = static_cast<std::uint32_t>(prompt_.size());
  if (ahead < said_) parts.push_back({said_ - ahead, false});
  if (said_ < all) parts.push_back({all - std::max(said_, ahead), true});
  return parts;
}

session_turn::counts session_turn::usage(std::uint64_t prefix) const {
  const auto& resume = opened_.resume;
  const std::uint64_t fed = resume.feed.size();
  counts c;
  c.prompt = prompt_.size();
  if (opened_.history_from > 0) {  // the client sent the whole history
    c.prompt += resume.cached_tokens + fed;
    c.cached = resume.cached_tokens + prefix;
  } else {
    c.cached = resume.ahead + (prefix > fed ? prefix - fed : 0);
  }
  return c;
}

std::optional<version_record> session_turn::note(const answer_state& answer, const tokenizer::vocabulary& vocabulary) {
  const std::size_t sampled = answer.kept().sampled.size();
  const std::size_t length = std::max(prompt_.size() + sampled, note_bytes_ / note_token_bytes);
  if (!stored_ || sampled < noted_ + std::max(note_every_tokens, length / note_share)) return std::nullopt;
  noted_ = sampled;
  const auto certain = tokens_within(answer.kept().sampled, answer.certain_bytes(), vocabulary);
  version_record so_far = record(answer, certain.count, {}, vocabulary);
  note_bytes_ = storage::content_bytes(so_far);
  return so_far;
}

result<session_turn::ending> session_turn::end(const answer_state& answer,
                                               const tokenizer::vocabulary& vocabulary) const {
  const auto& kept = answer.kept();
  const auto whole = tokens_within(kept.sampled, kept.visible_bytes, vocabulary);
  ending e;
  e.sampled = static_cast<std::uint32_t>(whole.count);
  if (whole.bytes < kept.visible_bytes) {
    const auto rest = vocabulary.text(kept.sampled[whole.count]).substr(0, kept.visible_bytes - whole.bytes);
    if (auto count = vocabulary.encode(rest, e.more); !count) return count.error();
  }
  e.version = record(answer, whole.count, e.more, vocabulary);
  // The answer is continued by feeding its last token again. The device has such a state where it ended the answer.
  const bool cut_by_device = e.version.unfinished && e.version.stop_reason != "client_gone";
  if (cut_by_device && e.sampled > 0 && e.more.empty()) --e.sampled, e.lacks = 1;
  e.segment = segment(kept.content);
  e.version.segment_bytes = e.segment.size();
  return e;
}

version_record session_turn::record(const answer_state& answer, std::size_t sampled, const std::vector<token_id>& more,
                                    const tokenizer::vocabulary& vocabulary) const {
  const auto& kept = answer.kept();
  version_record v;
  v.created_ms = wall_clock_ms();
  v.tokens = prompt_;
  v.tokens.insert(v.tokens.end(), kept.sampled.begin(), kept.sampled.begin() + static_cast<std::ptrdiff_t>(sampled));
  v.tokens.insert(v.tokens.end(), more.begin(), more.end());
  v.prompt_tokens = said_;
  for (std::size_t i = 0; i < v.tokens.size(); ++i) {
    if (i == said_) v.prompt_bytes = v.text.size();
    v.text += vocabulary.text(v.tokens[i]);
  }
  if (said_ == v.tokens.size()) v.prompt_bytes = v.text.size();
  for (const auto& m : messages_) v.messages.push_back({m.role, m.content});
  v.reasoning = kept.reasoning;
  v.answer = kept.content;
  v.finish_reason = kept.end.reason == protocol::finish_reason::length ? "length" : "stop";
  if (kept.end.administrative) v.stop_reason = kept.end.administrative->stop_reason;
  // An answer that was stopped before its first token does not become the head either.
  v.unfinished = protocol::is_parked(v.stop_reason) || (!v.stop_reason.empty() && kept.sampled.empty());
  v.template_name = is_chat_ ? "chat" : "raw";
  v.sampling = in_json(answer.call().request, {answer.hidden_tokens(), digest_, answer.usage(), answer.remembered()});
  v.request_key = fields_.request_key;
  return v;
}

std::string session_turn::segment(const std::string& content) const {
  return before_ + resent_prompt_ + (is_chat_ ? protocol::resent_answer(chat_, content) : content);
}

protocol::session_note session_turn::note_of(persistence::version_id version, persistence::durability durable,
                                             bool unfinished) const {
  protocol::session_note n;
  n.id = fields_.id;
  n.version = version;
  n.durable = to_string(durable);
  n.stored = stored_;
  n.unfinished = unfinished;
  if (fields_.branches) n.parent = opened_.base;
  return n;
}

std::string_view to_string(persistence::session_state state) {
  switch (state) {
    case persistence::session_state::fresh: return "new";
    case persistence::session_state::continued: return "continued";
    case persistence::session_state::rebuilt: return "rebuilt";
  }
  return "";
}

std::string_view to_string(persistence::durability durable) {
  switch (durable) {
    case persistence::durability::memory: return "memory";
    case persistence::durability::process: return "process";
    case persistence::durability::power: return "power";
  }
  return "";
}

}  // namespace skein::request
