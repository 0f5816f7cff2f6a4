#include "actors/persistence/states/write_queue.hpp"

#include "base/check.hpp"

namespace skein::persistence {

using storage::state_key;

void write_queue::add(const state_key& key, write_job& job, std::size_t bytes, bool writable, steady_time now) {
  job.since = now;
  job.phase.enter(writable ? write_phase::waiting : write_phase::held);
  if (writable) waiting_.insert({now, key});
  dirty_bytes_ += bytes;
}

void write_queue::release(const state_key& key, write_job& job) {
  if (!job.phase.is(write_phase::held)) return;
  job.phase.enter(write_phase::waiting);
  waiting_.insert({job.since, key});
}

void write_queue::begin(const state_key& key, write_job& job, std::size_t bytes) {
  job.phase.enter(write_phase::writing);
  waiting_.erase({job.since, key});
  ++writing_;
  writing_bytes_ += bytes;
}

void write_queue::on_end() {
  check(writing_ > 0, "a write ends once");
  --writing_;
}

void write_queue::settle(const state_key& key, write_job& job, std::size_t bytes, bool well, steady_time now) {
  if (well) return drop(key, job, bytes);
  job.phase.enter(write_phase::waiting);
  writing_bytes_ -= bytes;
  job.since = now;
  waiting_.insert({now, key});
}

void write_queue::drop(const state_key& key, write_job& job, std::size_t bytes) {
  if (!job.is_dirty()) return;
  if (job.is_writing()) writing_bytes_ -= bytes;
  waiting_.erase({job.since, key});
  dirty_bytes_ -= bytes;
  job.phase.enter(write_phase::clean);
}

std::optional<steady_time> write_queue::oldest() const {
  return waiting_.empty() ? std::nullopt : std::optional(waiting_.begin()->first);
}

}  // namespace skein::persistence
