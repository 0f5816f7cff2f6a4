#include "actors/device/device_actor.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "base/log/log.hpp"
#include "base/threads/start_thread.hpp"

namespace skein::device {
namespace {

// Poll interval of an otherwise idle device thread while io threads are behind with their events.
constexpr auto congestion_pause = std::chrono::milliseconds(2);
// Pause before a lost device without memory for its last answers retries.
constexpr auto lost_pause = std::chrono::milliseconds(50);
// Poll interval of an otherwise idle device thread while states are in transfer.
constexpr auto state_pause = std::chrono::microseconds(200);
// An idle device thread wakes up this often; nothing depends on it.
constexpr auto idle_wait_max = std::chrono::seconds(10);

scheduler_options scheduling(const engine::engine_info& info, const scheduler_settings& settings, bool keeps_states) {
  scheduler_options s{settings};
  s.slots = info.slots;
  s.max_tick_tokens = info.max_tick_tokens;
  s.max_tick_rows = info.max_tick_rows;
  s.limits = limits_of(info);
  s.chunk_tokens = info.chunk_tokens;
  s.state = info.state;
  s.leaving_max = info.leaving_max;
  s.coming_max = info.coming_max;
  s.keeps_states = keeps_states;
  return s;
}

/// Also works if the process is out of memory.
error as_error(const std::exception& trouble) noexcept {
  try {
    return {error_kind::internal, std::string("the device thread failed: ") + trouble.what(), ""};
  } catch (const std::exception&) {
    return {error_kind::internal, "out of memory", ""};  // short enough to need none
  }
}

struct run_command {
  engine::engine& engine;
  void operator()(const start_slot& c) const { engine.start(c.slot, *c.params); }
  void operator()(const restart_slot& c) const { engine.restart_sampler(c.slot, *c.params); }
  void operator()(const write_slot& c) const { engine.write_state(c.slot, c.state->view()); }
  void operator()(const clear_slot& c) const { engine.clear(c.slot); }
  void operator()(const copy_slot& c) const { engine.copy_state(c.from, c.to); }
  void operator()(const park_slot& c) const { engine.park(c.slot, *c.to); }
  void operator()(const unpark_slot& c) const { engine.unpark(c.slot, *c.params, *c.from); }
};

}  // namespace

device_actor::device_actor(std::unique_ptr<engine::engine> engine, const device_actor_options& options,
                           event_sink& sink, const clock& time, std::function<void(const error&)> on_lost,
                           state_sink* states)
    : engine_(std::move(engine)),
      info_(engine_->info()),
      id_(options.id),
      sink_(sink),
      time_(time),
      on_lost_(std::move(on_lost)),
      states_(states),
      inbox_(options.mailbox_max, options.mailbox_max),
      scheduler_(scheduling(info_, options.scheduling, states != nullptr)) {
  counters_.slots = info_.slots;
  thread_ = start_thread("the device thread", [this] { run(); });
  pthread_setname_np(thread_.native_handle(), "device");
}

device_actor::~device_actor() {
  inbox_.close();  // acts as a shutdown with deadline now
  join();
}

void device_actor::join() {
  if (thread_.joinable()) thread_.join();
}

void device_actor::run() {
  while (!scheduler_.finished() || (!scheduler_.lost() && engine_->ticks_in_flight() > 0)) attempt([this] { turn(); });
  inbox_.close();
  attempt([this] {
    end_lost();
    receive();  // rejects messages that arrived after the last turn
    scheduler_.drop_kept();
    hand_out();
  });
  engine_.reset();  // its queued commands may still use the scheduler's buffers
  counters_.ended = true;
}

/// An exception may leave scheduler and engine in the middle of a tick. They cannot recover, so the device is lost.
template <typename Work>
void device_actor::attempt(Work work) {
  try {
    work();
  } catch (const std::exception& trouble) {
    if (scheduler_.lost()) std::this_thread::sleep_for(lost_pause);
    fail(as_error(trouble));
  }
}

void device_actor::turn() {
  end_lost();
  receive();
  scheduler_.expire(time_.now());
  step();
  collect();
  hand_out();
  publish();
}

void device_actor::receive() {
  if (handled_ < received_.size()) {
    // The device was lost while handling these: answer the rest first, including the message that was not taken.
  } else if (!idle_) {
    handled_ = 0;
    inbox_.drain(received_);
  } else {
    handled_ = 0;
    const auto now = time_.now();
    const bool behind = std::ranges::any_of(congested_, [](std::uint8_t c) { return c != 0; });
    const duration pause = scheduler_.waits_for_states() ? duration(state_pause)
                           : behind                      ? duration(congestion_pause)
                                                         : duration(idle_wait_max);
    inbox_.wait_and_drain(received_, std::min(scheduler_.next_deadline(), now + pause));
  }
  for (; handled_ < received_.size(); ++handled_) {
    if (const auto* one = std::get_if<submit>(&received_[handled_]))
      check(one->device == id_, "a submit is for this device");
    std::visit([this](auto&& one) { scheduler_.handle(std::forward<decltype(one)>(one), time_.now()); },
               std::move(received_[handled_]));
  }
  if (inbox_.closed()) scheduler_.handle(shutdown{steady_time::min()}, time_.now());  // nothing can be settled any more
}

/// Plans the next tick and hands it to the engine, one tick ahead of the results.
void device_actor::step() {
  idle_ = true;
  if (scheduler_.lost()) return;
  const auto moved = engine_->moved();
  if (!moved) return fail(moved.error());
  scheduler_.absorb(*moved);
  sink_.congestion(congested_);
  const tick_work& work = scheduler_.plan(time_.now(), congested_);
  for (const auto& command : work.commands) std::visit(run_command{*engine_}, command);
  if (work.plan.rows.empty()) return;
  idle_ = false;
  if (auto tick = engine_->submit(work.plan); !tick) return fail(tick.error());
  note_submitted(work.plan);
}

void device_actor::note_submitted(const engine::tick_plan& plan) {
  const auto decodes = [](const engine::row& r) { return r.kind == engine::row_kind::decode; };
  submitted_tick& tick = ticks_[next_submitted_++ % ticks_.size()];
  tick.at = time_.now();
  tick.rows = static_cast<std::uint32_t>(plan.rows.size());
  tick.seconds = std::ranges::all_of(plan.rows, decodes)    ? &counters_.decode_seconds
                 : std::ranges::none_of(plan.rows, decodes) ? &counters_.prefill_seconds
                                                            : &counters_.mixed_seconds;
}

/// A tick starts when it is submitted, or when the previous one ends.
void device_actor::note_finished(steady_time now) {
  const submitted_tick& tick = ticks_[next_finished_++ % ticks_.size()];
  const steady_time before(duration(counters_.last_tick_at.load(std::memory_order_relaxed)));
  tick.seconds->observe(std::chrono::duration<double>(now - std::max(tick.at, before)).count());
  counters_.batch_rows.observe(tick.rows);
  counters_.last_tick_at.store(now.time_since_epoch().count(), std::memory_order_relaxed);
}

/// Collects the tick before the one just submitted; if none was submitted, the last one.
void device_actor::collect() {
  const std::uint32_t ahead = idle_ ? 0 : 1;
  while (!scheduler_.lost() && engine_->ticks_in_flight() > ahead) {
    auto done = engine_->collect();
    if (!done) return fail(done.error());
    const steady_time now = time_.now();
    scheduler_.absorb(**done, now);
    counters_.ticks.fetch_add(1, std::memory_order_relaxed);
    note_finished(now);
    idle_ = false;  // the result may have freed slots
  }
}

void device_actor::hand_out() {
  scheduler_.take_events([this](std::uint32_t to, events&& batch) { sink_.deliver(to, std::move(batch)); });
  scheduler_.take_news([this](const state_news& news) {
    switch (news.what) {
      case state_news::kind::state: return states_->state_kept(news.key, news.state);
      case state_news::kind::slot_kept: return states_->slot_kept(news.key, id_);
      case state_news::kind::slot_dropped: return states_->slot_dropped(news.key, id_);
    }
  });
}

/// Marks the device as lost; the next turn ends all requests.
void device_actor::fail(error why) noexcept {
  idle_ = false;
  if (scheduler_.lost()) return;
  engine_.reset();  // from here on nothing runs that uses the scheduler's buffers
  scheduler_.lose_device(std::move(why));
  counters_.slots = 0;
  counters_.lost = true;
  try {
    log::error("the device is lost",
               {{"device", info_.device}, {"device_id", id_}, {"why", scheduler_.lost_why().message}});
  } catch (const std::exception&) {
    // Out of memory; the supervisor logs it when it ends.
  }
}

/// Ends all requests of a lost device. Must come before messages, which may name requests in an inconsistent state.
void device_actor::end_lost() {
  if (!scheduler_.lost()) return;
  if (!told_ && on_lost_) on_lost_(scheduler_.lost_why());
  told_ = true;
  scheduler_.end_lost();
}

void device_actor::publish() {
  const scheduler_counts c = scheduler_.counts();
  counters_.slots_used = c.slots_used;
  counters_.waiting = c.waiting;
  counters_.slots_kept = c.slots_kept;
  counters_.parked = c.parked;
  counters_.paused = c.paused;
  counters_.parked_bytes = c.parked_bytes;
  counters_.undo_bytes = c.undo_bytes;
  counters_.requests = c.requests;
  counters_.prompt_tokens = c.prompt_tokens;
  counters_.generated_tokens = c.generated_tokens;
  counters_.finished = c.finished;
  counters_.rejected = c.rejected;
  counters_.cancelled = c.cancelled;
  counters_.preemptions = c.preemptions;
  counters_.kept_hits = c.kept_hits;
  counters_.copies_taken = c.copies_taken;
  counters_.copies_refused = c.copies_refused;
  counters_.settles = c.settles;
  counters_.settles_back = c.settles_back;
  counters_.states_written = c.states_written;
  constexpr std::uint32_t some_room = 16;  // 1/16 of the queue must be free again to count as not full
  const std::int64_t now = time_.now().time_since_epoch().count();
  if (c.waiting < c.waiting_max - c.waiting_max / some_room || c.waiting_max == 0)
    counters_.queue_full_since = 0;
  else if (c.waiting >= c.waiting_max && counters_.queue_full_since == 0)
    counters_.queue_full_since = now;
  const bool busy = c.requests > 0;
  // An idle device need not progress: count from when it got work.
  if (busy && !counters_.busy) counters_.last_tick_at = now;
  counters_.busy = busy;
}

}  // namespace skein::device
