#pragma once
#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "actors/persistence/shared/persistence_mailbox.hpp"

namespace skein::persistence {

/// An outbox for a sink that may be out of memory: a reply that the sink cannot take now is kept in memory allocated at
/// the start and sent later, in order. So no reply is lost. For one thread.
class reply_outbox final : public reply_sink {
 public:
  explicit reply_outbox(reply_sink& to, std::size_t kept_max = 1024) : to_(to) { kept_.reserve(kept_max); }

  /// Throws std::bad_alloc only if kept_max replies are kept already; `r` is then untouched. Other exceptions of the
  /// sink for `r` are passed on: the caller can still refuse the request.
  void deliver(reply&& r) override {
    if (kept_.empty() && taken(r)) return;
    if (kept_.size() == kept_.capacity()) throw std::bad_alloc();
    kept_.push_back(std::move(r));
  }
  /// Sends kept replies until the sink fails to take one. Never throws, whatever the sink does: replies that it took
  /// must not be sent again, and the one that failed is tried again later.
  void send() noexcept {
    const auto left = std::ranges::find_if(kept_, [this](reply& r) { return !taken_now(r); });
    kept_.erase(kept_.begin(), left);
  }
  [[nodiscard]] bool keeps_any() const { return !kept_.empty(); }
  /// Whether there is room for the replies to one more message; most messages have at most one.
  [[nodiscard]] bool has_room() const { return kept_.size() <= kept_.capacity() / 2; }

 private:
  bool taken(reply& r) {
    try {
      to_.deliver(std::move(r));
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  bool taken_now(reply& r) noexcept {
    try {
      return taken(r);
    } catch (...) {
      return false;
    }
  }

  reply_sink& to_;
  std::vector<reply> kept_;
};

}  // namespace skein::persistence
