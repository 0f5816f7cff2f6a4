#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "actors/persistence/keeper/persistence_options.hpp"
#include "actors/persistence/keeper/prefix_keeper.hpp"
#include "actors/persistence/keeper/session_keeper.hpp"
#include "actors/persistence/reply_outbox.hpp"
#include "actors/persistence/shared/persistence_counters.hpp"
#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "actors/persistence/states/state_worker.hpp"

namespace skein::persistence {

/// The persistence actor: one thread that owns the log, the tiers below device memory and their policy, a second thread
/// that reads and writes states, and a third for work on the whole store. Only this actor uses the database.
/// Every request is answered, even if memory is short: if a handler throws, the client gets `refused`, and a reply for
/// which the sink has no memory is sent again. End: `shutdown` writes dirty data until its deadline and logs what it
/// could not write; then the thread returns. Without `shutdown`, the destructor ends the thread at once, as a crash
/// would: confirmed turns are in the log, and states that were not written are rebuilt from tokens.
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
  /// Thread-safe.
  void change(const config::session_settings& limits) { sessions_.change(limits); }
  /// Waits until the thread has ended; send `shutdown` first.
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
    sessions_.handle(std::forward<Message>(m));
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
