#include "actors/request/devices/model_devices.hpp"

#include <algorithm>

#include "actors/request/devices/device_policy.hpp"

namespace skein::request {

device_place::~device_place() {
  if (of_) of_->give_up(id_, sequences_);
}

void model_devices::add(std::unique_ptr<device::device_actor> actor) {
  device::mailbox& inbox = actor->inbox();
  const device::device_counters& counters = actor->counters();
  all_.push_back({static_cast<device_id>(all_.size()), std::move(actor), &inbox, &counters});
  sequences_.push_back(0);
}

void model_devices::add(device::mailbox& inbox, const device::device_counters* counters) {
  all_.push_back({static_cast<device_id>(all_.size()), nullptr, &inbox, counters});
  sequences_.push_back(0);
}

device_place model_devices::place(std::uint32_t sequences, std::optional<device_id> holder) {
  std::vector<device_load> loads(all_.size());
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < all_.size(); ++i)
    loads[i] = {!all_[i].lost(), all_[i].counters ? all_[i].counters->slots.load() : 0, sequences_[i]};
  const device_id id = choose_device(loads, holder, last_.value_or(static_cast<device_id>(all_.size() - 1)));
  last_ = id;
  sequences_[id] += sequences;
  return {*this, id, sequences};
}

void model_devices::give_up(device_id id, std::uint32_t sequences) {
  const std::lock_guard lock(mutex_);
  sequences_[id] -= sequences;
}

bool model_devices::lost() const { return std::ranges::all_of(all_, &model_device::lost); }

bool model_devices::ended() const {
  return std::ranges::all_of(all_, [](const model_device& d) { return d.counters->ended.load(); });
}

steady_time model_devices::last_tick_at() const {
  std::int64_t latest = 0;
  for (const model_device& d : all_) latest = std::max(latest, d.counters->last_tick_at.load());
  return steady_time(duration(latest));
}

memory_plan model_devices::memory() const {
  memory_plan all;
  for (const model_device& d : all_) {
    if (!d.actor || d.counters->ended || d.lost()) continue;
    const memory_plan& one = d.actor->info().memory;
    all.weight_bytes += one.weight_bytes;
    all.activation_bytes += one.activation_bytes;
    all.workspace_bytes += one.workspace_bytes;
    all.slot_bytes = one.slot_bytes;
    all.slots += one.slots;
  }
  return all;
}

void model_devices::shut_down(steady_time deadline) const {
  for (const model_device& d : all_)
    if (!d.inbox->push_urgent(device::shutdown{deadline})) d.inbox->close();
}

void model_devices::stop() const {
  for (const model_device& d : all_) d.inbox->close();
  for (const model_device& d : all_) d.actor->join();
}

}  // namespace skein::request
