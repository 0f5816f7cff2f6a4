#include "actors/request/shared/request_register.hpp"

#include <algorithm>
#include <utility>

namespace skein::request {

void request_register::enter(std::shared_ptr<running_request> request) {
  const std::lock_guard lock(mutex_);
  request->ticket = ++entered_;
  running_.push_back(std::move(request));
}

void request_register::leave(const std::shared_ptr<running_request>& request) {
  request->finished = true;
  const std::lock_guard lock(mutex_);
  running_.remove(request);
  last_ = request;
}

request_register::list request_register::running() const {
  const std::lock_guard lock(mutex_);
  return {running_.begin(), running_.end()};
}

request_register::place request_register::place_of(const running_request& request) const {
  const std::lock_guard lock(mutex_);
  place p{request.ticket};
  for (const auto& r : running_) {
    if (r->admitted_at != 0 || r->what().model != request.what().model) continue;
    ++p.waiting;
    if (r.get() == &request) p.position = p.waiting;
  }
  return p;
}

std::shared_ptr<const running_request> request_register::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

void request_register::keep(paused_request paused) {
  const std::lock_guard lock(mutex_);
  forget_old(paused.since);
  const tenant_id tenant = paused.was->what().tenant;
  const auto is_theirs = [&](const paused_request& p) { return p.was->what().tenant == tenant; };
  paused_.push_back(std::move(paused));
  if (std::cmp_less_equal(std::ranges::count_if(paused_, is_theirs), limits_.requests_max)) return;
  paused_.erase(std::ranges::find_if(paused_, is_theirs));
}

const paused_request* request_register::named(std::string_view id, const caller& who) const {
  const paused_request* seen = nullptr;
  for (const auto& p : paused_) {
    const auto& what = p.was->what();
    if (what.id != id || !who.sees(what.tenant)) continue;
    if (what.tenant == who.tenant) return &p;
    if (!seen) seen = &p;
  }
  return seen;
}

std::optional<paused_request> request_register::find(std::string_view id, const caller& who, steady_time now) {
  const std::lock_guard lock(mutex_);
  forget_old(now);
  const auto* const found = named(id, who);
  return found ? std::optional(*found) : std::nullopt;
}

std::optional<paused_request> request_register::take(const running_request& was, steady_time now) {
  const std::lock_guard lock(mutex_);
  forget_old(now);
  const auto found = std::ranges::find_if(paused_, [&](const paused_request& p) { return p.was.get() == &was; });
  if (found == paused_.end()) return std::nullopt;
  std::optional<paused_request> taken(std::move(*found));
  paused_.erase(found);
  return taken;
}

std::vector<std::shared_ptr<const running_request>> request_register::paused(steady_time now) {
  const std::lock_guard lock(mutex_);
  forget_old(now);
  std::vector<std::shared_ptr<const running_request>> all;
  all.reserve(paused_.size());
  for (const auto& p : paused_) all.push_back(p.was);
  return all;
}

std::string request_register::model_of_paused(std::string_view id, const caller& who) const {
  const std::lock_guard lock(mutex_);
  const auto* const found = named(id, who);
  return found ? found->was->what().model : std::string();
}

void request_register::forget_old(steady_time now) {
  while (!paused_.empty() && now - paused_.front().since > std::chrono::seconds(limits_.age_max_s)) paused_.pop_front();
}

}  // namespace skein::request
