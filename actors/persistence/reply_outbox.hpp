#pragma once
#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "actors/persistence/persistence_mailbox.hpp"

namespace skein::persistence {

/// Replies on their way to a sink that may lack the memory for one: what it cannot take now is kept,
/// in memory that is allocated at the start, and sent later in order. So a reply that was decided is never lost. For
/// one thread.
class reply_outbox final : public reply_sink {
 public:
  explicit reply_outbox(reply_sink& to, std::size_t kept_max = 1024) : to_(to) { kept_.reserve(kept_max); }

  /// Throws std::bad_alloc only when kept_max replies are kept already; `r` is then untouched. What else the sink
  /// throws for `r` itself is thrown on: its asker can be refused still.
  void deliver(reply&& r) override {
    if (kept_.empty() && taken(r)) return;
    if (kept_.size() == kept_.capacity()) throw std::bad_alloc();
    kept_.push_back(std::move(r));
  }
  /// Sends what is kept, as far as the sink takes it. Throws nothing, whatever the sink does: those that it took must
  /// not be sent again, and the one that it did not take is tried again.
  void send() noexcept {
    const auto left = std::ranges::find_if(kept_, [this](reply& r) { return !taken_now(r); });
    kept_.erase(kept_.begin(), left);
  }
  [[nodiscard]] bool keeps_any() const { return !kept_.empty(); }
  /// Whether the replies of one more message have room, of which most have one or none.
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
