#include "actors/request/generation/prefix_use.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace skein::request {

bool prefix_use::may(const prepared_call& call) {
  return call.prompts.size() == 1 && !call.score_prompt && call.request.use_prefix_cache;
}

persistence::find_prefix prefix_use::question(persistence::return_address reply, std::string initial_state,
                                              const prepared_call& call, std::size_t offset, std::uint32_t chunk_tokens,
                                              std::uint32_t first_part) const {
  const auto place = [&](std::uint32_t mark) { return mark > 0 ? mark + static_cast<std::uint32_t>(offset) : 0; };
  persistence::find_prefix q;
  q.reply = reply;
  q.initial_state = std::move(initial_state);
  q.tokens = tokens_;
  q.system_tokens = place(call.system_tokens);
  q.turn_tokens = place(call.turn_tokens);
  q.chunk_tokens = chunk_tokens, q.first_part = first_part;
  return q;
}

void prefix_use::found(persistence::prefix_found found) {
  check(found.position < tokens_->size());
  found_ = std::move(found);
}

void prefix_use::apply(device::submit& message) {
  const auto rest = tokens_->begin() + found_.position;
  message.prompt.assign(rest, tokens_->end());
  tokens_.reset();  // from now on the device holds them
  std::uint32_t swallowed = found_.position;
  for (auto& part : message.parts) {
    const std::uint32_t of_part = std::min(part.tokens, swallowed);
    part.tokens -= of_part, swallowed -= of_part;
  }
  if (found_.state) message.from = {std::move(found_.state), found_.key};
  if (!may_keep_) return;
  for (const auto& wanted : std::exchange(found_.keep, {}))
    message.copies.push_back({wanted.key, wanted.position - found_.position});
}

std::vector<persistence::state_key> prefix_use::unanswered() {
  std::vector<persistence::state_key> keys;
  for (const auto& wanted : std::exchange(found_.keep, {})) keys.push_back(wanted.key);
  return keys;
}

}  // namespace skein::request
