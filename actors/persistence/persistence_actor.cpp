#include "actors/persistence/persistence_actor.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "base/log/log.hpp"
#include "base/threads/start_thread.hpp"

namespace skein::persistence {
namespace {

using namespace std::chrono_literals;

// The idle thread wakes up this often; nothing depends on it.
constexpr auto idle_wait_max = 10s;
constexpr auto self_check_pause = 10s;
// Pause before the thread retries replies that failed for lack of memory.
constexpr auto reply_retry_pause = 10ms;
constexpr std::uint32_t care_waits_max = 4;  // jobs of the caretaker, including the running one

/// Logging allocates, so it may fail too if the process is out of memory.
void say(const char* what, const std::exception& trouble) noexcept {
  try {
    log::error(what, {{"why", trouble.what()}});
  } catch (const std::exception&) {
    // The client still gets its answer.
  }
}

error as_error(const std::exception& trouble) noexcept {
  try {
    return {error_kind::internal, trouble.what(), ""};
  } catch (const std::exception&) {
    return {error_kind::internal, "out of memory", ""};  // short enough to need none
  }
}

}  // namespace

persistence_actor::persistence_actor(const persistence_options& options, std::shared_ptr<storage::database> db,
                                     std::shared_ptr<storage::state_store> states, reply_sink& replies,
                                     const clock& time, wall_clock wall, std::function<bool(session_uid)> forget_slots)
    : replies_(replies),
      time_(time),
      inbox_(options.mailbox_max, options.mailbox_max),
      database_(db),
      worker_("states", [this] { (void)inbox_.push_urgent(work_done{}); }),  // if the inbox is full, the actor is awake
      caretaker_("caretaker", [this] { (void)inbox_.push_urgent(work_done{}); }),
      sessions_(options, {db, states, worker_, replies_, time, wall, std::move(forget_slots)}, counters_),
      prefixes_(options, {db, states, worker_, replies_, time, wall, {}}, counters_) {
  thread_ = start_thread("the persistence thread", [this] { run(); });
  pthread_setname_np(thread_.native_handle(), "persistence");
}

persistence_actor::~persistence_actor() {
  inbox_.close();
  join();
  care_over_.request_stop();
  caretaker_.stop();
  worker_.stop();  // its jobs use members of the keepers
}

void persistence_actor::join() {
  if (thread_.joinable()) thread_.join();
}

void persistence_actor::run() {
  try {
    sessions_.begin();
    prefixes_.begin();
  } catch (const std::exception& trouble) {
    say("stored states cannot be listed", trouble);
  }
  while (!finished_) {
    try {
      turn();
    } catch (const std::exception& trouble) {  // out of memory; take() has answered the request
      say("the persistence thread failed", trouble);
    }
  }
  inbox_.close();
  counters_.ended = true;
}

void persistence_actor::turn() {
  replies_.send();
  receive();
  while (handled_ < received_.size() && replies_.has_room())
    std::visit([this](auto&& one) { take(std::forward<decltype(one)>(one)); }, std::move(received_[handled_++]));
  if (handled_ == received_.size()) received_.clear();
  for (const auto& after : worker_.take()) attempt("completing a job failed", after);
  for (const auto& after : caretaker_.take()) attempt("completing a job failed", after);
  sessions_.tick();
  prefixes_.tick(sessions_.disk_works());
  sessions_.publish();
  prefixes_.publish();
  check_self();
  end_if_done();
}

/// Waits for messages once all earlier ones are handled.
void persistence_actor::receive() {
  const steady_time now = time_.now();
  if (!received_.empty()) return std::this_thread::sleep_for(reply_retry_pause);  // wait for memory for their replies
  steady_time wake = end_by_ ? now + 10ms : std::min(sessions_.next_wake(), now + idle_wait_max);
  if (replies_.keeps_any()) wake = std::min(wake, now + reply_retry_pause);
  handled_ = 0;
  inbox_.wait_and_drain(received_, wake);
  if (received_.empty() && inbox_.closed()) finished_ = true;
}

/// Contains an exception (out of memory) so that only this work fails.
template <typename Work>
void persistence_actor::attempt(const char* what, Work work) noexcept {
  try {
    work();
  } catch (const std::exception& trouble) {
    say(what, trouble);
  }
}

/// If opening or committing a turn throws, the turn ends, because its client gets `refused` and will not end it.
template <typename Message>
void persistence_actor::take(Message&& m) {
  using message_type = std::remove_cvref_t<Message>;
  constexpr bool is_turn = std::is_same_v<message_type, open_session> || std::is_same_v<message_type, commit_turn>;
  return_address reply;
  if constexpr (requires { m.reply; }) reply = m.reply;
  lease_id lease = 0;
  if constexpr (requires { m.lease; }) lease = m.lease;
  try {
    dispatch(std::forward<Message>(m));
  } catch (const std::exception& trouble) {
    say("a message to the persistence thread failed", trouble);
    if constexpr (is_turn) attempt("a turn could not be ended", [&] { sessions_.handle(release{reply, lease}); });
    if constexpr (requires { m.reply; }) replies_.deliver(refused{reply, as_error(trouble)});
  }
}

void persistence_actor::dispatch(state_kept&& m) {
  if (m.key.owner == 0)
    prefixes_.handle(std::move(m));
  else
    sessions_.handle(std::move(m));
}

void persistence_actor::dispatch(tend_store&& m) {
  if (care_waits_ >= care_waits_max)
    return replies_.deliver(
        refused{m.reply, {error_kind::overloaded, "too many maintenance requests are pending", ""}});
  ++care_waits_;
  caretaker_.run([this, m = std::move(m), stop = care_over_.get_token()]() -> aftermath {
    auto outcome = std::make_shared<tended>();
    try {
      *outcome = m.work(*database_, stop);
    } catch (const std::exception& trouble) {
      outcome->trouble = error{error_kind::internal, trouble.what(), ""};
    }
    return [this, outcome, reply = m.reply] {
      --care_waits_;
      replies_.deliver(answer{reply, std::move(*outcome)});
    };
  });
}

void persistence_actor::dispatch(shutdown&& m) {
  care_over_.request_stop();
  end_by_ = std::min(end_by_.value_or(m.deadline), m.deadline);
}

void persistence_actor::end_if_done() {
  if (!end_by_) return;
  const bool sessions_done = sessions_.flush();
  const bool prefixes_done = prefixes_.flush(sessions_.disk_works());
  const bool late = time_.now() >= *end_by_;
  const bool all_told = received_.empty() && !replies_.keeps_any();  // replies are kept if the sink is out of memory
  if (!late && !(sessions_done && prefixes_done && all_told)) return;
  finished_ = true;
  const std::uint64_t turns = counters_.unsaved_sessions, states = counters_.sessions.dirty + counters_.prefixes.dirty;
  if (turns > 0) log::error("unsaved turns are lost: the disk rejects writes", {{"sessions", turns}});
  if (late && states > 0)
    log::warning("states were not written before the deadline; they will be rebuilt from tokens", {{"states", states}});
}

/// Checks invariants while the actor is idle.
void persistence_actor::check_self() {
  if (time_.now() < next_self_check_ || inbox_.size() > 0) return;
  next_self_check_ = time_.now() + self_check_pause;
  auto wrong = sessions_.self_check();
  if (!wrong) wrong = prefixes_.self_check();
  if (!wrong) return;
  ++counters_.invariant_violations;
  log::error("self check of sessions and states failed", {{"what", *wrong}});
#ifndef NDEBUG
  check(false, "the self check of sessions and states passes");
#endif
}

}  // namespace skein::persistence
