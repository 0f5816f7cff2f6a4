#pragma once
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/device/device_mailbox.hpp"
#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "base/clock.hpp"

namespace skein::request {

/// A call as the hub of its io thread sees it. These functions must not throw: a call handles its own errors, since
/// events of other calls follow.
class device_client {
 public:
  virtual ~device_client() = default;
  /// One event of prompt number `prompt`.
  virtual void on_event(std::uint32_t prompt, device::event& e) = 0;
  /// After the events of one delivery: time to write.
  virtual void on_events_done() = 0;
  /// About once a second.
  virtual void on_tick(steady_time now) = 0;
};

/// A call that asks the persistence actor. on_reply must not throw, as above.
class persistence_client {
 public:
  virtual ~persistence_client() = default;
  virtual void on_reply(persistence::reply& r) = 0;
};

/// The calls of one io thread: assigns their device ids and persistence tickets, and dispatches events and replies to
/// them. Lives on its io thread only.
class request_hub {
 public:
  /// `persistence`: null if there is none; then ask() fails.
  explicit request_hub(std::uint32_t io_thread, persistence::mailbox* persistence = nullptr)
      : io_thread_(io_thread), persistence_(persistence) {}

  [[nodiscard]] std::uint32_t io_thread() const { return io_thread_; }

  /// A new id, unique in the process, whose events go to prompt number `prompt` of `client`.
  [[nodiscard]] request_id open(device_client& client, std::uint32_t prompt);
  /// No more events for this id. Late ones are dropped.
  void close(request_id id);

  /// Registers a call under a serial number, by which results from other threads find it only while it lives.
  [[nodiscard]] std::uint64_t enter(device_client& client);
  void leave(std::uint64_t serial);
  [[nodiscard]] device_client* find(std::uint64_t serial) const;

  /// Sends a message that must not be lost (cancel, pause, resume). If the mailbox is full, the message is kept and
  /// sent later; the number of kept messages is bounded by the calls on this thread. If the mailbox is closed, the
  /// message is dropped. Messages to one mailbox stay in order; a full one does not delay messages to others.
  void tell(std::shared_ptr<device::mailbox> to, device::message message);

  /// An address for questions, unique in the process, whose replies go to `client`. One ticket serves a whole
  /// conversation: an open_session, its commit_turn or release.
  [[nodiscard]] persistence::return_address open_ticket(persistence_client& client);
  /// No more replies for this ticket. Late ones are dropped: a call that waits for a session_opened sends `release`
  /// first.
  void close_ticket(persistence::ticket number);
  /// Sends a question; false if the mailbox is full or closed (see nobody_listens).
  [[nodiscard]] bool ask(persistence::message_in question);
  /// Sends a message that must not be lost (commit_turn, release), like the other `tell`. Does nothing without an
  /// actor.
  void tell(persistence::message_in message);

  /// Returns the vector so that its memory can be reused.
  std::vector<device::event> dispatch(std::vector<device::event> events);
  void dispatch(std::vector<persistence::reply> replies);
  void tick(steady_time now);

 private:
  struct address {
    device_client* client;
    std::uint32_t prompt;
  };
  /// Messages to one device, in order.
  struct untold {
    std::shared_ptr<device::mailbox> to;
    std::deque<device::message> messages;
  };
  void send_untold();

  const std::uint32_t io_thread_;
  persistence::mailbox* const persistence_;
  std::uint64_t next_ = 0;
  std::unordered_map<request_id, address> by_id_;
  std::unordered_map<std::uint64_t, device_client*> by_serial_;
  std::unordered_map<persistence::ticket, persistence_client*> by_ticket_;
  std::list<untold> untold_;  // by device
  std::deque<persistence::message_in> untold_sessions_;
  std::vector<device_client*> touched_;  // by the current delivery
};

}  // namespace skein::request
