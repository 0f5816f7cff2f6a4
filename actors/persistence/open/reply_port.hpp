#pragma once
#include <atomic>
#include <utility>

#include "actors/persistence/shared/persistence_counters.hpp"
#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "base/error.hpp"

namespace skein::persistence {

/// Sends the replies to requests about sessions, and counts the refusals.
class reply_port {
 public:
  /// The arguments outlive it.
  reply_port(reply_sink& sink, persistence_counters& counters) : sink_(sink), counters_(counters) {}

  void deliver(reply r) { sink_.deliver(std::move(r)); }
  void refuse(const return_address& to, error why) {
    counters_.refusals.fetch_add(1, std::memory_order_relaxed);
    deliver(refused{to, std::move(why)});
  }

 private:
  reply_sink& sink_;
  persistence_counters& counters_;
};

}  // namespace skein::persistence
