#include "actors/request/answer/answer_scores.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace skein::request {

using protocol::logprob_entry;

answer_scores::answer_scores(const prepared_call& call, const tokenizer::vocabulary& vocabulary)
    : vocabulary_(vocabulary),
      wanted_(call.request.sampling.logprobs),
      scores_prompt_(call.score_prompt),
      echo_skips_(call.echo_skips),
      is_chat_(call.request.chat),
      top_(call.request.sampling.top_logprobs),
      of_prompts_(call.prompts.size()) {}

void answer_scores::add(std::uint32_t prompt, const std::vector<sampling::token_logprobs>& scores) {
  auto& all = of_prompts_.at(prompt);
  all.insert(all.end(), scores.begin(), scores.end());
}

std::vector<logprob_entry> answer_scores::entries(const std::vector<scored_token>& tokens, text_place& place) const {
  std::vector<logprob_entry> out;
  if (!wanted_) return out;
  for (const auto& t : tokens) out.push_back(entry(t, vocabulary_.text(t.token), place));
  return out;
}

logprob_entry answer_scores::entry(const scored_token& scored, std::string_view text, text_place& place) const {
  logprob_entry e;
  e.text = text;
  e.logprob = scored.logprobs.logprob;
  e.top = alternatives_of(scored);
  e.text_offset = place.pass(e.text);
  return e;
}

std::vector<logprob_entry> answer_scores::of_prompt(std::uint32_t prompt, const std::vector<token_id>& tokens,
                                                    text_place& place) const {
  if (!scores_prompt_) return {};
  const auto& scores = of_prompts_[prompt];
  std::vector<logprob_entry> out;
  std::size_t skipped = echo_skips_;
  for (std::size_t i = 0; i < tokens.size() && i <= scores.size(); ++i) {
    std::string_view text = vocabulary_.text(tokens[i]);
    const std::size_t cut = std::min(skipped, text.size());
    skipped -= cut;
    if (cut > 0 && cut == text.size()) continue;
    text.remove_prefix(cut);
    if (i > 0) {
      out.push_back(entry({tokens[i], scores[i - 1]}, text, place));
      continue;
    }
    logprob_entry first;
    first.text = text;
    first.text_offset = place.pass(first.text);
    out.push_back(std::move(first));
  }
  place.end_part();
  return out;
}

/// The requested number of best tokens, plus the sampled token if it is not among them. Chats that request none get
/// none.
std::vector<std::pair<std::string, float>> answer_scores::alternatives_of(const scored_token& sampled) const {
  std::vector<std::pair<std::string, float>> all;
  if (top_ == 0 && is_chat_) return all;
  bool named = false;
  for (const auto& best : std::span(sampled.logprobs.top).first(std::min(sampled.logprobs.count, top_))) {
    all.emplace_back(vocabulary_.text(best.token), best.logprob);
    named = named || best.token == sampled.token;
  }
  if (!named) all.emplace_back(vocabulary_.text(sampled.token), sampled.logprobs.logprob);
  return all;
}

}  // namespace skein::request
