#include "actors/request/shared/key_ring.hpp"

#include <algorithm>
#include <cmath>

namespace skein::request {

std::optional<key_usage::refusal> key_usage::enter(const limits& most, steady_time now) {
  const std::lock_guard lock(mutex_);
  if (most.tokens_per_minute > 0) {
    const auto full = static_cast<double>(most.tokens_per_minute);
    const double a_second = full / 60;
    const auto passed = std::chrono::duration<double>(now - counted_at_).count();
    const auto spent = static_cast<double>(unpaid_.exchange(0));
    tokens_ = begun_ ? std::min(full, tokens_ + passed * a_second) - spent : full;
    begun_ = true;
    counted_at_ = now;
    if (tokens_ <= 0)
      return refusal{{error_kind::overloaded, "this key has used up its tokens for this minute; try again soon", ""},
                     std::chrono::seconds(static_cast<std::int64_t>(std::floor(-tokens_ / a_second)) + 1)};
  }
  if (most.concurrent_max > 0 && running_ >= most.concurrent_max)
    return refusal{{error_kind::overloaded, "this key has too many running requests; try again soon", ""}};
  ++running_;
  return std::nullopt;
}

void key_usage::begin_limit() {
  const std::lock_guard lock(mutex_);
  begun_ = false;
}

bool caller::may_use(std::string_view model) const {
  return models.empty() || std::ranges::find(models, model) != models.end();
}

const caller_ref& anybody() {
  static const caller_ref everything = std::make_shared<caller>();
  return everything;
}

const caller_ref& guest() {
  static const caller_ref nobody = std::make_shared<caller>(caller{"", "open", false, {}, {}, nullptr});
  return nobody;
}

void key_ring::replace(const std::vector<access::api_key>& keys) {
  auto made = std::make_shared<list>();
  std::map<std::string, known_key> usages;
  const std::lock_guard lock(mutex_);
  for (const auto& key : keys) {
    const key_usage::limits limits{key.concurrent_max, key.tokens_per_minute};
    const auto known = usages_.find(key.name);
    const auto usage = known == usages_.end() ? std::make_shared<key_usage>() : known->second.usage;
    if (known != usages_.end() && known->second.limits.tokens_per_minute == 0) usage->begin_limit();
    const shared_flag revoked = known == usages_.end() ? shared_flag() : known->second.revoked;
    usages[key.name] = {usage, limits, revoked};
    made->emplace_back(key.hash, std::make_shared<caller>(
                                     caller{key.name, key.tenant, key.admin, key.models, limits, usage, revoked}));
  }
  for (auto& [name, known] : usages_)
    if (!usages.contains(name)) known.revoked = true;
  usages_ = std::move(usages);
  keys_ = std::move(made);
}

bool key_ring::empty() const { return current()->empty(); }

caller_ref key_ring::find(const sha256_digest& hash_of_secret) const {
  const auto keys = current();
  caller_ref found;
  for (const auto& [known, who] : *keys)
    if (access::same(hash_of_secret, known)) found = who;  // no break: the time must not reveal the position
  return found;
}

std::shared_ptr<const key_ring::list> key_ring::current() const {
  const std::lock_guard lock(mutex_);
  return keys_;
}

}  // namespace skein::request
