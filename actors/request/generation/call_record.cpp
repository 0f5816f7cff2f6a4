#include "actors/request/generation/call_record.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

#include "actors/request/shared/logged_text.hpp"
#include "base/log/log.hpp"

namespace skein::request {
namespace {

double milliseconds(duration d) { return std::chrono::duration<double, std::milli>(d).count(); }
double seconds(duration d) { return std::chrono::duration<double>(d).count(); }
std::int64_t ticks(steady_time t) { return t.time_since_epoch().count(); }

std::string endpoint_of(const call_origin& origin, const protocol::generation_request& request) {
  if (origin.dialect == &protocol::dialects::resume) return "server.resume";
  if (request.prompt_field == "input") return "responses";
  if (request.chat) return "chat.completions";
  if (request.prompt_field == "prompt") return "completions";
  return request.session ? "state.chat.completions" : "batch.completions";
}

}  // namespace

std::optional<key_usage::refusal> call_record::enter(const caller_ref& who, const std::string& model) {
  if (who->usage) {
    if (auto no = who->usage->enter(who->limits, context_->time->now())) return no;
    place_ = key_lease(usage_ = who->usage);
  }
  series_ = &counts().generation(model, who->key);
  return std::nullopt;
}

void call_record::enlist(const call_origin& origin, const protocol::generation_request& request,
                         running_request::messenger tell) {
  if (request.session) session_ = request.session->id;
  entry_ = std::make_shared<running_request>(
      running_request::facts{origin.request_name, endpoint_of(origin, request), origin.model->id(), session_,
                             origin.who->tenant, std::time(nullptr), request.sampling.max_tokens},
      std::move(tell));
  context_->requests->enter(entry_);
}

void call_record::delist() {
  if (entry_ && !entry_->finished) context_->requests->leave(entry_);
}

void call_record::leave() {
  delist();
  place_.reset();
}

void call_record::prompt(const protocol::token_usage& usage, const prefix_use* prefix) {
  if (prefix) {
    series_->prefix_queries.fetch_add(prefix->tokens(), std::memory_order_relaxed);
    series_->prefix_hits.fetch_add(prefix->position(), std::memory_order_relaxed);
  }
  entry_->prompt_tokens = usage.prompt_tokens;
  entry_->cached_tokens = usage.cached_tokens;
}

void call_record::admitted(std::chrono::microseconds queued) {
  queued_ = std::max(queued_, queued);
  if (!first_token_) entry_->admitted_at = ticks(context_->time->now());  // later prompts may follow the first token
}

/// Tokens of one delivery arrive together, so a reader sees the time between deliveries.
void call_record::token(steady_time received, std::size_t rows) {
  const steady_time now = context_->time->now();
  if (!first_token_) entry_->first_token_at = ticks(*(first_token_ = now));
  entry_->last_token_at = ticks(now);
  ++entry_->generated_tokens;
  if (!last_token_)
    series_->first_token.observe(seconds(now - received));
  else if (rows == 1)
    series_->inter_token.observe(seconds(now - *last_token_));
  last_token_ = now;
  series_->generated_total.fetch_add(1, std::memory_order_relaxed);
  spend(1);
}

void call_record::spend(std::uint64_t tokens) {
  if (usage_) usage_->spend(tokens);
}

void call_record::count_rejection(const call_origin& origin, error_kind why) {
  counts().count_rejection(origin.model ? origin.model->id() : "none", origin.who->key, why);
}

void call_record::count_ending(steady_time received, bool whole, const answer_state& answer) {
  const protocol::token_usage usage = answer.usage();
  const steady_time now = context_->time->now();
  const ending kind = !whole ? ending::abort : answer.finish_word() == "length" ? ending::length : ending::stop;
  series_->ended[static_cast<std::size_t>(kind)].fetch_add(1, std::memory_order_relaxed);
  series_->prompt_total.fetch_add(usage.prompt_tokens, std::memory_order_relaxed);
  series_->whole.observe(seconds(now - received));
  series_->queue.observe(seconds(queued_));
  series_->prompt_tokens.observe(static_cast<double>(usage.prompt_tokens));
  series_->generated_tokens.observe(static_cast<double>(usage.completion_tokens));
  if (!first_token_) return;
  const steady_time admitted(duration(entry_->admitted_at.load()));
  series_->prefill.observe(seconds(*first_token_ - admitted));
  series_->decode.observe(seconds(*last_token_ - *first_token_));
  if (usage.completion_tokens > 1 && answer.rows() == 1)
    series_->per_token.observe(seconds(*last_token_ - *first_token_) /
                               static_cast<double>(usage.completion_tokens - 1));
}

void call_record::ended(const call_origin& origin, unsigned status, std::string_view how, const answer_state* answer,
                        bool begun) {
  const protocol::token_usage usage = answer ? answer->usage() : protocol::token_usage{};
  const steady_time now = context_->time->now();
  if (answer && begun) count_ending(origin.received, status == 200, *answer);
  log::info("request", {{"request_id", origin.request_name},
                        {"key_id", origin.who->key},
                        {"session", session_},
                        {"route", logged_text(origin.route)},
                        {"status", status},
                        {"prompt_tokens", usage.prompt_tokens},
                        {"cached_tokens", usage.cached_tokens},
                        {"completion_tokens", usage.completion_tokens},
                        {"queue_ms", milliseconds(queued_)},
                        {"ttft_ms", first_token_ ? milliseconds(*first_token_ - origin.received) : 0.0},
                        {"total_ms", milliseconds(now - origin.received)},
                        {"finish_reason", how}});
}

}  // namespace skein::request
