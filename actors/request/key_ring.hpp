#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "access/api_key.hpp"
#include "actors/shared_flag.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"

/// Who asks, what they may do, and what they have used of it.
namespace skein::request {

/// What a key has used; it stays where the keys are read anew. Thread safe.
class key_usage {
 public:
  struct limits {
    std::uint32_t concurrent_max = 0;     ///< 0: no limit
    std::uint64_t tokens_per_minute = 0;  ///< likewise
  };
  /// Why a request has to wait, and how long; nothing: it counts as running until leave().
  struct refusal {
    error why;
    std::chrono::seconds retry_after{1};
  };
  [[nodiscard]] std::optional<refusal> enter(const limits& most, steady_time now);
  void leave() { --running_; }
  /// A limit of tokens is new: the next enter() under one finds a full minute, whatever was spent before.
  void begin_limit();
  /// Tokens are paid when they are there, so that a minute's tokens may be overdrawn by what runs; the next request
  /// then waits for longer.
  void spend(std::uint64_t tokens) { unpaid_.fetch_add(tokens, std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t running() const { return running_; }

 private:
  std::atomic<std::uint32_t> running_{0};
  std::atomic<std::uint64_t> unpaid_{0};
  std::mutex mutex_;
  double tokens_ = 0;       // that are left
  bool begun_ = false;      // tokens_ means something
  steady_time counted_at_;  // what came in is in tokens_ up to then
};

/// One who asks. Constant; a request keeps it to its end.
struct caller {
  std::string key;  ///< its name; empty for who needs none, or has the one password
  tenant_id tenant = default_tenant;
  bool admin = true;
  std::vector<std::string> models;  ///< that it may use; empty: all
  key_usage::limits limits;
  std::shared_ptr<key_usage> usage;  ///< null: nobody counts
  shared_flag revoked = {};          ///< there is no key of its name any more

  [[nodiscard]] bool may_use(std::string_view model) const;
  /// Whether it may see what this tenant does.
  [[nodiscard]] bool sees(const tenant_id& whose) const { return admin || whose == tenant; }
};
using caller_ref = std::shared_ptr<const caller>;

/// Whoever needs no key: may do everything.
[[nodiscard]] const caller_ref& anybody();

/// Who brings nothing where nothing is asked for, beside others who have keys.
[[nodiscard]] const caller_ref& guest();

/// A place among a key's running requests, given back at its end.
class key_lease {
 public:
  key_lease() = default;
  explicit key_lease(std::shared_ptr<key_usage> usage) : usage_(std::move(usage)) {}
  ~key_lease() { reset(); }
  key_lease(key_lease&& other) noexcept = default;
  key_lease& operator=(key_lease&& other) noexcept {
    reset();
    usage_ = std::move(other.usage_);
    return *this;
  }
  void reset() {
    if (usage_) usage_->leave();
    usage_.reset();
  }

 private:
  std::shared_ptr<key_usage> usage_;
};

/// The keys that count now. Thread safe.
class key_ring {
 public:
  /// From now on these count; who is known by name keeps what it has used, also with another secret. Callers whose names
  /// are not among them become `revoked`.
  void replace(const std::vector<access::api_key>& keys);
  [[nodiscard]] bool empty() const;
  /// Whose secret it is; null: nobody's. The time tells neither which key it is nor how much of one is right.
  [[nodiscard]] caller_ref find(std::string_view secret) const { return find(access::hash_of(secret)); }
  [[nodiscard]] caller_ref find(const sha256_digest& hash_of_secret) const;

 private:
  using list = std::vector<std::pair<sha256_digest, caller_ref>>;
  [[nodiscard]] std::shared_ptr<const list> current() const;

  mutable std::mutex mutex_;
  std::shared_ptr<const list> keys_ = std::make_shared<list>();
  struct known_key {
    std::shared_ptr<key_usage> usage;
    key_usage::limits limits;
    shared_flag revoked;
  };
  std::map<std::string, known_key> usages_;  // by name
};

}  // namespace skein::request
