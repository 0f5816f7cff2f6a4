#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/device/device_actor.hpp"
#include "base/clock.hpp"
#include "base/device_id.hpp"
#include "base/memory_plan.hpp"

namespace skein::request {

/// One device of a model in memory. Each has a copy of the weights.
struct model_device {
  device_id id = 0;
  std::unique_ptr<device::device_actor> actor;  ///< null only in tests
  device::mailbox* inbox = nullptr;
  const device::device_counters* counters = nullptr;  ///< null only in tests

  [[nodiscard]] bool lost() const { return counters && counters->lost; }
  /// The engine's name for it, such as "cuda:0 NVIDIA H200".
  [[nodiscard]] std::string name() const { return actor ? actor->info().device : std::string(); }
};

class model_devices;

/// Sequences of a request that count on a device until this is destroyed. The devices outlive it.
class device_place {
 public:
  device_place() = default;
  device_place(model_devices& of, device_id id, std::uint32_t sequences) : of_(&of), id_(id), sequences_(sequences) {}
  ~device_place();
  device_place(device_place&& other) noexcept
      : of_(std::exchange(other.of_, nullptr)), id_(other.id_), sequences_(other.sequences_) {}
  device_place& operator=(device_place&& other) noexcept {
    std::swap(of_, other.of_);
    std::swap(id_, other.id_);
    std::swap(sequences_, other.sequences_);
    return *this;
  }

  [[nodiscard]] device_id id() const { return id_; }

 private:
  model_devices* of_ = nullptr;  // null: it counts nothing
  device_id id_ = 0;
  std::uint32_t sequences_ = 0;
};

/// The devices of a model in memory, by id. Thread safe once all are added.
class model_devices {
 public:
  void add(std::unique_ptr<device::device_actor> actor);
  /// For tests, without an actor.
  void add(device::mailbox& inbox, const device::device_counters* counters);

  [[nodiscard]] auto begin() const { return all_.begin(); }
  [[nodiscard]] auto end() const { return all_.end(); }
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] const model_device& operator[](device_id id) const { return all_.at(id); }

  /// Chooses a device as device_policy.hpp says, and counts the sequences there.
  [[nodiscard]] device_place place(std::uint32_t sequences, std::optional<device_id> holder);

  /// The sum of a counter over all devices.
  template <typename Value>
  [[nodiscard]] Value sum(std::atomic<Value> device::device_counters::*counter) const {
    Value all = 0;
    for (const model_device& d : all_) all += (d.counters->*counter).load();
    return all;
  }
  /// No device works.
  [[nodiscard]] bool lost() const;
  /// All threads have left their loops.
  [[nodiscard]] bool ended() const;
  /// When a device last did something, as device_counters::last_tick_at.
  [[nodiscard]] steady_time last_tick_at() const;
  /// The memory of all engines that exist: the sums, with the slots of all.
  [[nodiscard]] memory_plan memory() const;

  /// Sends `message` to all. False: a device with a full mailbox did not get it.
  template <typename Message>
  [[nodiscard]] bool tell(const Message& message) const {
    bool all = true;
    for (const model_device& d : all_) all = (d.inbox->push_urgent(Message(message)) || d.inbox->closed()) && all;
    return all;
  }
  /// Tells all to end by the deadline. May be repeated.
  void shut_down(steady_time deadline) const;
  /// Ends all now and waits for their threads.
  void stop() const;

 private:
  friend class device_place;
  void give_up(device_id id, std::uint32_t sequences);

  std::vector<model_device> all_;
  std::mutex mutex_;                      // guards the following
  std::vector<std::uint32_t> sequences_;  // by device
  std::optional<device_id> last_;         // the device that was chosen last
};

}  // namespace skein::request
