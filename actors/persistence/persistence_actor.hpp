#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "actors/persistence/persistence_counters.hpp"
#include "actors/persistence/persistence_mailbox.hpp"
#include "actors/persistence/persistence_options.hpp"
#include "actors/persistence/prefix_keeper.hpp"
#include "actors/persistence/reply_outbox.hpp"
#include "actors/persistence/session_keeper.hpp"
#include "actors/persistence/state_worker.hpp"

namespace skein::persistence {

/// The persistence actor: one thread that owns the log, the tiers below the device's memory and their policy, one more
/// that reads and writes states for it, and one for work on the store as a whole. It alone uses the database.
/// Every question is answered, also where memory is short: a handler that throws is answered with `refused`, and a
/// reply that the sink has no memory for is sent again. End: `shutdown` writes what is dirty until its deadline and
/// says in the log what could not be written; then the thread returns. The destructor without it ends at once, as a
/// crash would: what was answered is in the log, states that were not written are made again from tokens.
class persistence_actor {
 public:
  /// `replies` and `time` outlive the actor. `forget_slots` is called on the persistence thread.
  persistence_actor(const persistence_options& options, std::shared_ptr<storage::database> db,
                    std::shared_ptr<storage::state_store> states, reply_sink& replies, const clock& time,
                    wall_clock wall, std::function<bool(session_uid)> forget_slots = {});
  ~persistence_actor();
  persistence_actor(const persistence_actor&) = delete;  // owns a thread
  persistence_actor& operator=(const persistence_actor&) = delete;

  [[nodiscard]] mailbox& inbox() { return inbox_; }
  [[nodiscard]] const persistence_counters& counters() const { return counters_; }
  /// On any thread.
  void change(const tenant_limits& limits) { sessions_.change(limits); }
  /// Waits for the thread's end; send `shutdown` first.
  void join();

 private:
  void run();
  void turn();
  void receive();
  template <typename Message>
  void take(Message&& m);
  template <typename Work>
  void attempt(const char* what, Work work) noexcept;
  void dispatch(state_kept&& m);
  void dispatch(find_prefix&& m) { prefixes_.handle(std::move(m)); }
  void dispatch(tend_store&& m);
  void dispatch(shutdown&& m);
  void dispatch(work_done&&) {}
  template <typename Message>
  void dispatch(Message&& m) {
    sessions_.handle(std::move(m));
  }
  void end_if_done();
  void check_self();

  reply_outbox replies_;
  const clock& time_;
  mailbox inbox_;
  persistence_counters counters_;
  const std::shared_ptr<storage::database> database_;
  state_worker worker_;
  state_worker caretaker_;  // of tend_store
  std::stop_source care_over_;
  std::uint32_t care_waits_ = 0;
  session_keeper sessions_;
  prefix_keeper prefixes_;
  std::vector<message_in> received_;
  std::size_t handled_ = 0;  // of received_
  std::optional<steady_time> end_by_;
  steady_time next_self_check_{};
  bool finished_ = false;
  std::thread thread_;  // last: starts when everything above exists
};

}  // namespace skein::persistence
