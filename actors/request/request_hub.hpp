#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/device/device_mailbox.hpp"
#include "actors/persistence/persistence_mailbox.hpp"
#include "base/clock.hpp"

namespace skein::request {

/// A call as the hub of its io thread sees it. Nothing here throws: a call answers for its own trouble, and events of
/// other calls come after its own.
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

/// Somebody on an io thread who asks the persistence actor. Nothing here throws, as above.
class persistence_client {
 public:
  virtual ~persistence_client() = default;
  virtual void on_reply(persistence::reply& r) = 0;
};

/// The calls of one io thread: gives them their device ids and tickets of the persistence actor, and brings them events
/// and replies. Lives on its io thread only.
class request_hub {
 public:
  /// `persistence`: null where there is none; then nobody may ask.
  explicit request_hub(std::uint32_t io_thread, persistence::mailbox* persistence = nullptr)
      : io_thread_(io_thread), persistence_(persistence) {}

  [[nodiscard]] std::uint32_t io_thread() const { return io_thread_; }

  /// A new id, unique in the process, whose events go to prompt number `prompt` of `client`.
  [[nodiscard]] request_id open(device_client& client, std::uint32_t prompt);
  /// No more events for this id. Late ones are dropped.
  void close(request_id id);

  /// Calls are known by serial numbers, so that work that comes back from another thread finds them only while they
  /// live.
  [[nodiscard]] std::uint64_t enter(device_client& client);
  void leave(std::uint64_t serial);
  [[nodiscard]] device_client* find(std::uint64_t serial) const;

  /// Sends a message that must not be lost (cancel, pause, resume); kept and sent later when the mailbox is full. What
  /// is kept is bounded by the calls that live on this thread. A closed mailbox needs no message. Messages to one
  /// mailbox stay in order; a full one delays no message to others.
  void tell(std::shared_ptr<device::mailbox> to, device::message message);

  /// An address for questions, unique in the process, whose replies go to `client`. One ticket serves a whole
  /// conversation: an open_session, its commit_turn or release.
  [[nodiscard]] persistence::return_address open_ticket(persistence_client& client);
  /// No more replies for this ticket. Late ones are dropped: whoever waits for a session_opened tells `release` first.
  void close_ticket(persistence::ticket number);
  /// Asks; false when the mailbox is full or closed (an answer of its own: overloaded).
  [[nodiscard]] bool ask(persistence::message_in question);
  /// Sends what must not be lost (commit_turn, release), as the other `tell`. Nothing where there is no actor.
  void tell(persistence::message_in message);

  /// Gives the vector back, whose memory may be used again.
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
  std::vector<untold> untold_;  // by device
  std::deque<persistence::message_in> untold_sessions_;
  std::vector<device_client*> touched_;  // by the delivery that runs
};

}  // namespace skein::request
