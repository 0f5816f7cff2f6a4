#include "actors/request/shared/login_guard.hpp"

#include <arpa/inet.h>

#include <utility>

namespace skein::request {
namespace {

constexpr std::size_t network_bytes = 8;

}  // namespace

std::string network_of(std::string_view address) {
  std::string text(address);
  in6_addr six{};
  if (inet_pton(AF_INET6, text.c_str(), &six) != 1) return text;
  return {reinterpret_cast<const char*>(six.s6_addr), network_bytes};
}

std::optional<duration> login_guard::must_wait(std::string_view address, steady_time now) {
  const std::lock_guard lock(mutex_);
  forget_until(now);
  return records_.empty() ? std::nullopt : wait_of(network_of(address), 1, now);
}

std::optional<duration> login_guard::judge(std::string_view address, bool right, steady_time now) {
  return right ? std::nullopt : count(network_of(address), 1, now);
}

std::optional<duration> login_guard::judge_visit(std::string_view address, steady_time now) {
  return count("visits of " + network_of(address), visits_a_failure, now);
}

std::optional<duration> login_guard::count(std::string network, std::uint32_t allowance, steady_time now) {
  const std::lock_guard lock(mutex_);
  if (limits_.login_failures_max == 0) return std::nullopt;
  forget_until(now);
  if (const auto wait = wait_of(network, allowance, now)) return wait;
  count_failure(std::move(network), now);
  return std::nullopt;
}

void login_guard::change(const config::limit_settings& limits) {
  const std::lock_guard lock(mutex_);
  limits_ = limits;
}

std::size_t login_guard::addresses() const {
  const std::lock_guard lock(mutex_);
  return records_.size();
}

std::optional<duration> login_guard::wait_of(const std::string& network, std::uint32_t allowance,
                                             steady_time now) const {
  const auto found = by_network_.find(network);
  if (found == by_network_.end() || found->second->failures / allowance < limits_.login_failures_max)
    return std::nullopt;
  if (found->second->until <= now) return std::nullopt;  // hidden behind windows of another length
  return found->second->until - now;
}

void login_guard::count_failure(std::string network, steady_time now) {
  if (const auto found = by_network_.find(network); found != by_network_.end()) {
    ++found->second->failures;
    return;
  }
  if (records_.size() >= limits_.login_addresses_max) forget_oldest();
  records_.push_back({std::move(network), now + std::chrono::milliseconds(limits_.login_window_ms), 1});
  by_network_.emplace(records_.back().network, std::prev(records_.end()));
}

/// All windows have one length, so the oldest ends first.
void login_guard::forget_until(steady_time now) {
  while (!records_.empty() && records_.front().until <= now) forget_oldest();
}

void login_guard::forget_oldest() {
  by_network_.erase(records_.front().network);
  records_.pop_front();
}

}  // namespace skein::request
