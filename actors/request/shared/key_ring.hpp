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

/// API keys: callers, their rights and their usage.
namespace skein::request {

/// Usage of a key; survives a reload of the keys. Thread safe.
class key_usage {
 public:
  struct limits {
    std::uint32_t concurrent_max = 0;     ///< 0: no limit
    std::uint64_t tokens_per_minute = 0;  ///< likewise
  };
  /// Why a request has to wait, and for how long. Nothing: it counts as running until leave().
  struct refusal {
    error why;
    std::chrono::seconds retry_after{1};
  };
  [[nodiscard]] std::optional<refusal> enter(const limits& most, steady_time now);
  void leave() { --running_; }
  /// Starts a new token limit: the next enter() under it finds a full minute's tokens, regardless of earlier spending.
  void begin_limit();
  /// Tokens are charged when they exist, so running requests may overdraw a minute's tokens; the next request then
  /// waits longer.
  void spend(std::uint64_t tokens) { unpaid_.fetch_add(tokens, std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t running() const { return running_; }

 private:
  std::atomic<std::uint32_t> running_{0};
  std::atomic<std::uint64_t> unpaid_{0};
  std::mutex mutex_;
  double tokens_ = 0;       // tokens left
  bool begun_ = false;      // tokens_ is valid
  steady_time counted_at_;  // tokens_ is refilled up to this time
};

/// Who sends a request. Constant; a request keeps its caller to its end.
struct caller {
  std::string key;  ///< its name; empty without a key, or with the password
  tenant_id tenant = default_tenant;
  bool admin = true;
  std::vector<std::string> models;  ///< models that it may use; empty: all
  key_usage::limits limits;
  std::shared_ptr<key_usage> usage;  ///< null: not counted
  shared_flag revoked = {};          ///< no key has this name any more

  [[nodiscard]] bool may_use(std::string_view model) const;
  /// Whether it may see this tenant's data.
  [[nodiscard]] bool sees(const tenant_id& whose) const { return admin || whose == tenant; }
};
using caller_ref = std::shared_ptr<const caller>;

/// The caller that needs no key and may do everything.
[[nodiscard]] const caller_ref& anybody();

/// The caller without a key on an open route of a server that has keys.
[[nodiscard]] const caller_ref& guest();

/// A place among a key's running requests; the destructor gives it back.
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

/// The valid keys. Thread safe.
class key_ring {
 public:
  /// Makes these the valid keys. A key with a known name keeps its usage, even if its secret changed. Callers whose
  /// names are missing become `revoked`.
  void replace(const std::vector<access::api_key>& keys);
  [[nodiscard]] bool empty() const;
  /// The caller with this secret; null: none. The time reveals neither which key matched nor how much of it was right.
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
