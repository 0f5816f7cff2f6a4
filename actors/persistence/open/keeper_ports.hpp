#pragma once
#include <functional>
#include <memory>

#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "actors/persistence/states/state_worker.hpp"
#include "actors/persistence/states/tier_mover.hpp"
#include "base/clock.hpp"
#include "storage/database/database.hpp"
#include "storage/states/state_store.hpp"

namespace skein::persistence {

/// Services that a keeper uses; all of them outlive it.
struct keeper_ports {
  std::shared_ptr<storage::database> db;
  std::shared_ptr<storage::state_store> states;
  job_runner& runner;
  reply_sink& replies;
  const clock& time;
  wall_clock wall;
  /// Tells the device to drop the slots it keeps for a session; false: its mailbox is full.
  std::function<bool(session_uid)> forget_slots;
};

}  // namespace skein::persistence
