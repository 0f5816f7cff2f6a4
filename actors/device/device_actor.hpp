#pragma once
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "actors/device/device_mailbox.hpp"
#include "actors/device/scheduler.hpp"
#include "base/clock.hpp"
#include "base/metrics/metrics.hpp"
#include "engine/engine.hpp"

namespace skein::device {

struct device_actor_options {
  device_id id = 0;
  std::uint32_t mailbox_max = 4096;
  scheduler_settings scheduling;
};

/// Counters that other threads may read at any time, for health, metrics and tests.
struct device_counters {
  std::atomic<std::uint32_t> slots{0};  ///< 0 too once the device is lost
  std::atomic<std::uint32_t> slots_used{0}, slots_kept{0}, waiting{0}, parked{0}, paused{0}, requests{0};
  std::atomic<std::uint64_t> parked_bytes{0}, undo_bytes{0};
  std::atomic<std::uint64_t> ticks{0}, prompt_tokens{0}, generated_tokens{0}, finished{0}, rejected{0}, cancelled{0},
      preemptions{0};
  std::atomic<std::uint64_t> kept_hits{0}, copies_taken{0}, copies_refused{0}, settles{0}, settles_back{0},
      states_written{0};
  /// Of finished ticks: rows per tick, and seconds by the kind of rows.
  metrics::histogram batch_rows{metrics::row_bounds};
  metrics::histogram decode_seconds{metrics::token_bounds}, prefill_seconds{metrics::token_bounds},
      mixed_seconds{metrics::token_bounds};
  /// Time of the last finished tick, or of the end of the last idle period if that was later, as ticks of steady_time
  /// since its epoch; busy: there is work.
  std::atomic<std::int64_t> last_tick_at{0};
  std::atomic<bool> busy{false};
  /// Time since which the queue is full, in the same unit; 0: it is not. A queue that is filled again after little room
  /// became free counts as full all along.
  std::atomic<std::int64_t> queue_full_since{0};
  std::atomic<bool> lost{false};
  std::atomic<bool> ended{false};  ///< the thread has left its loop
};

/// The device actor: one thread, one engine. Only this thread calls the engine. A tick is: drain the mailbox, expire,
/// plan, run the slot commands, submit, collect the previous tick, hand its events out. The thread blocks only in its
/// mailbox, if there is nothing to run, and in collect().
/// An engine error or an exception on this thread loses the device: every request ends with an error, later ones are
/// rejected, and the supervisor is notified. If there is no memory for that, the thread retries until there is. End:
/// `shutdown` lets running requests finish until its deadline, ends the rest, then the thread returns; queued requests
/// are rejected at once. The destructor closes the mailbox, which acts as a shutdown with deadline now, and joins.
class device_actor {
 public:
  /// `sink` and `time` outlive the actor. `on_lost` is called on the device thread when the device is lost, once, or
  /// again if it throws. `states` lives as long as `sink`; null: no state is kept, and no key is answered.
  device_actor(std::unique_ptr<engine::engine> engine, const device_actor_options& options, event_sink& sink,
               const clock& time, std::function<void(const error&)> on_lost = {}, state_sink* states = nullptr);
  ~device_actor();
  device_actor(const device_actor&) = delete;  // owns a thread
  device_actor& operator=(const device_actor&) = delete;

  [[nodiscard]] mailbox& inbox() { return inbox_; }
  [[nodiscard]] const device_counters& counters() const { return counters_; }
  [[nodiscard]] const engine::engine_info& info() const { return info_; }
  [[nodiscard]] device_id id() const { return id_; }
  /// Waits until the thread has ended; send `shutdown` first.
  void join();

 private:
  void run();
  template <typename Work>
  void attempt(Work work);
  void turn();
  void receive();
  void step();
  void collect();
  void hand_out();
  void fail(error why) noexcept;
  void end_lost();
  void publish();
  void note_submitted(const engine::tick_plan& plan);
  void note_finished(steady_time now);

  /// A tick in flight.
  struct submitted_tick {
    steady_time at{};
    std::uint32_t rows = 0;
    metrics::histogram* seconds = nullptr;  // of the counters
  };

  std::unique_ptr<engine::engine> engine_;
  const engine::engine_info info_;
  const device_id id_;
  event_sink& sink_;
  const clock& time_;
  std::function<void(const error&)> on_lost_;
  state_sink* const states_;
  mailbox inbox_;
  scheduler scheduler_;
  device_counters counters_;
  std::array<submitted_tick, 4> ticks_;  // a ring buffer; the engine has fewer ticks in flight
  std::uint32_t next_submitted_ = 0, next_finished_ = 0;
  std::vector<message> received_;
  std::size_t handled_ = 0;  // messages of received_ that the scheduler has taken
  std::vector<std::uint8_t> congested_;
  bool idle_ = true;
  bool told_ = false;   // the supervisor knows that the device is lost
  std::thread thread_;  // last: starts when everything above exists
};

}  // namespace skein::device
