#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/request/shared/key_ring.hpp"
#include "actors/request/shared/tuned_states.hpp"
#include "base/clock.hpp"
#include "base/ids.hpp"
#include "config/config.hpp"
#include "protocol/chat/think_splitter.hpp"
#include "protocol/requests/generation_request.hpp"

/// The generation calls of all io threads, for routes that show or end them.
namespace skein::request {

/// Orders to a running request; park: a response is interrupted so that another client can resume it.
enum class order : std::uint8_t { stop, pause, park };

/// Outcome of an order. refused: the request cannot do that, and runs on.
enum class outcome : std::uint8_t { nothing_ran, done, refused };

/// One generation call. Its numbers are written by its io thread and read by any.
class running_request {
 public:
  struct facts {
    std::string id;  ///< X-Request-Id
    std::string endpoint, model, session;
    tenant_id tenant = default_tenant;
    std::int64_t created = 0;  ///< Unix seconds
    std::uint32_t max_tokens = 0;
  };
  /// Carries an order out on the call's io thread, then calls `done` there. Thread safe; the call may be gone by then.
  using messenger = std::function<void(order what, std::function<void(outcome)> done)>;

  running_request(facts what, messenger tell) : what_(std::move(what)), tell_(std::move(tell)) {}

  [[nodiscard]] const facts& what() const { return what_; }
  void tell(order what, std::function<void(outcome)> done) {
    (what == order::stop ? stop_requested : pause_requested) = true;
    tell_(what, std::move(done));
  }

  // Ticks of steady_time since its epoch; 0: not yet.
  std::atomic<std::int64_t> admitted_at{0}, first_token_at{0}, last_token_at{0};
  std::atomic<std::uint64_t> prompt_tokens{0}, cached_tokens{0}, fed_tokens{0}, generated_tokens{0};
  std::atomic<bool> stop_requested{false}, pause_requested{false}, finished{false};
  std::atomic<std::uint64_t> ticket{0};  // its number in the register

 private:
  const facts what_;
  const messenger tell_;
};

/// A paused chat answer: what is needed to resume it. The state is not kept; it is rebuilt from the tokens, as after
/// every loss of a state.
struct paused_request {
  std::shared_ptr<const running_request> was;
  protocol::generation_request request;  ///< without its texts; max_tokens is what remains
  std::vector<token_id> tokens;          ///< prompt and answer so far
  std::vector<token_id> answered;        ///< the end of `tokens` that the client has as text
  protocol::answer_form form = protocol::answer_form::raw;
  std::optional<tuned_state> tuned;
  std::string model_identity;
  steady_time since{};
};

/// Shared by all io threads. The lock is held only while some pointers are copied.
class request_register {
 public:
  /// The position of a request among those that wait for a slot; 0: it does not wait.
  struct place {
    std::uint64_t ticket = 0;  ///< number of the request since the start
    std::size_t position = 0, waiting = 0;
  };

  using list = std::vector<std::shared_ptr<running_request>>;

  explicit request_register(const config::pause_settings& limits = {}) : limits_(limits) {}

  void enter(std::shared_ptr<running_request> request);
  void leave(const std::shared_ptr<running_request>& request);
  /// In order of arrival.
  [[nodiscard]] list running() const;
  [[nodiscard]] place place_of(const running_request& request) const;
  /// The request that ended last; null if none has.
  [[nodiscard]] std::shared_ptr<const running_request> last() const;

  [[nodiscard]] const config::pause_settings& limits() const { return limits_; }
  void keep(paused_request paused);
  /// A copy of a paused request that `who` may see; nothing if there is none of that id, or it is too old. Clients
  /// choose the ids, so several tenants may have the same one: the caller's own comes first.
  [[nodiscard]] std::optional<paused_request> find(std::string_view id, const caller& who, steady_time now);
  /// Removes and returns a paused request; nothing if it is no longer there.
  [[nodiscard]] std::optional<paused_request> take(const running_request& was, steady_time now);
  [[nodiscard]] std::vector<std::shared_ptr<const running_request>> paused(steady_time now);
  /// The model of what find() finds; empty: nothing.
  [[nodiscard]] std::string model_of_paused(std::string_view id, const caller& who) const;

 private:
  [[nodiscard]] const paused_request* named(std::string_view id, const caller& who) const;
  void forget_old(steady_time now);

  const config::pause_settings limits_;
  mutable std::mutex mutex_;
  std::list<std::shared_ptr<running_request>> running_;
  std::uint64_t entered_ = 0;
  std::shared_ptr<const running_request> last_;
  std::deque<paused_request> paused_;  // oldest first
};

}  // namespace skein::request
