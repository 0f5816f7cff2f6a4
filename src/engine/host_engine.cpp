#include "engine/host_engine.hpp"

#include <sys/prctl.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "base/threads/start_thread.hpp"
#include "engine/check_plan.hpp"

namespace skein::engine {
namespace {

constexpr std::uint32_t in_flight_max = 2;
// A device actor queues a few commands per slot and tick; a longer queue means that it does not collect.
constexpr std::uint64_t queued_commands_max = 4096;
constexpr std::size_t queued_commands_usual = 64;  // reserved at start, so that a tick does not allocate when the
                                                   // worker lags
// While a tick runs and another can be submitted, the worker polls the device and the queue in turn.
constexpr std::chrono::microseconds look_again{20};

struct start_command {
  slot_id slot;
  sampling::sampling_params params;
};
struct restart_command {
  slot_id slot;
  sampling::sampling_params params;
};
struct copy_command {
  slot_id from, to;
};
struct clear_command {
  slot_id slot;
};
struct park_command {
  slot_id slot;
  parked_sequence* out;
};
struct unpark_command {
  slot_id slot;
  sampling::sampling_params params;
  const parked_sequence* in;
};
struct write_command {
  slot_id slot;
  model::state_view state;
};
struct read_command {
  slot_id slot;
  model::state_value* out;
};
struct tick_command {
  std::uint64_t tick;
};
struct sample_command {
  slot_id slot;
  std::span<const std::uint32_t> allowed;
  row_result* out;
};
struct settle_command {};

using command = std::variant<start_command, restart_command, copy_command, clear_command, park_command, unpark_command,
                             write_command, read_command, tick_command, sample_command, settle_command>;

class host_engine final : public engine {
 public:
  host_engine(engine_info info, std::unique_ptr<backend> work) : info_(std::move(info)), backend_(std::move(work)) {
    queue_.reserve(queued_commands_usual);
    worker_ = start_thread("the thread of the engine", [this] { run_commands(); });
  }

  host_engine(const host_engine&) = delete;  // owns the worker thread
  host_engine& operator=(const host_engine&) = delete;

  ~host_engine() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    work_arrived_.notify_one();
    worker_.join();
  }

  [[nodiscard]] const engine_info& info() const override { return info_; }

  void start(slot_id slot, const sampling::sampling_params& params) override {
    check_slot(slot);
    post(start_command{slot, params});
  }
  void restart_sampler(slot_id slot, const sampling::sampling_params& params) override {
    check_slot(slot);
    post(restart_command{slot, params});
  }
  void copy_state(slot_id from, slot_id to) override {
    check_slot(from);
    check_slot(to);
    check(from != to, "a slot copied to itself");
    post(copy_command{from, to});
  }
  void clear(slot_id slot) override {
    check_slot(slot);
    post(clear_command{slot});
  }
  void park(slot_id slot, parked_sequence& out) override {
    check_slot(slot);
    post(park_command{slot, &out});
  }
  void unpark(slot_id slot, const sampling::sampling_params& params, const parked_sequence& in) override {
    check_slot(slot);
    post(unpark_command{slot, params, &in});
  }
  void write_state(slot_id slot, const model::state_view& state) override {
    check_slot(slot);
    check(state.format.layout == info_.state.layout, "a state of another layout");
    check(state.bytes.size() == state.format.bytes(), "a state of the wrong size");
    post(write_command{slot, state});
  }
  void read_state(slot_id slot, model::state_value& out) override {
    check_slot(slot);
    post(read_command{slot, &out});
  }

  [[nodiscard]] result<moved_states> moved() override {
    if (reported_loss_) return *reported_loss_;
    const std::lock_guard lock(mutex_);
    if (loss_ && ticks_in_flight() == 0) return report(*loss_);
    return moved_;
  }

  [[nodiscard]] result<std::uint64_t> submit(const tick_plan& plan) override {
    check(ticks_in_flight() < in_flight_max, "too many uncollected ticks");
    check_plan(info_, plan, slot_seen_);
    if (reported_loss_) return *reported_loss_;
    const std::uint64_t tick = ++submitted_;
    tick_plan& copy = buffer_of(tick).plan;
    copy.rows.assign(plan.rows.begin(), plan.rows.end());
    copy.tokens.assign(plan.tokens.begin(), plan.tokens.end());
    post(tick_command{tick});
    return tick;
  }

  [[nodiscard]] result<const tick_result*> collect() override {
    if (reported_loss_) return *reported_loss_;
    check(ticks_in_flight() > 0, "nothing to collect");
    const std::uint64_t tick = collected_ + 1;
    {
      std::unique_lock lock(mutex_);
      work_done_.wait(lock, [&] { return ticks_done_ >= tick; });
      if (tick >= first_lost_tick_) return report(*loss_);
    }
    collected_ = tick;
    return &buffer_of(tick).result;
  }

  [[nodiscard]] bool ready() const override {
    if (reported_loss_) return true;
    const std::lock_guard lock(mutex_);
    return ticks_done_ > collected_;
  }

  [[nodiscard]] std::uint32_t ticks_in_flight() const override {
    return static_cast<std::uint32_t>(submitted_ - collected_);
  }

  [[nodiscard]] result<row_result> sample(slot_id slot, std::span<const std::uint32_t> allowed) override {
    check_slot(slot);
    check(allowed.empty() || allowed.size() == (info_.vocab + 31) / 32, "a mask of the wrong size");
    row_result sampled;
    post(sample_command{slot, allowed, &sampled});
    if (auto r = finish(); !r) return r.error();
    return sampled;
  }

  result<void> finish() override {
    post(settle_command{});
    if (reported_loss_) return *reported_loss_;
    std::unique_lock lock(mutex_);
    work_done_.wait(lock, [&] { return commands_done_ == commands_posted_; });
    if (loss_) return report(*loss_);
    return {};
  }

 private:
  struct tick_buffer {
    tick_plan plan;
    tick_result result;
  };

  void check_slot(slot_id slot) const { check(slot < info_.slots, "no such slot"); }

  // One more buffer than ticks in flight: the last collected result stays valid while the next ticks fill theirs.
  [[nodiscard]] tick_buffer& buffer_of(std::uint64_t tick) { return ring_[tick % ring_.size()]; }

  [[nodiscard]] const error& report(const error& loss) { return reported_loss_.emplace(loss); }

  void post(command&& c) {
    if (reported_loss_) return;
    {
      std::unique_lock lock(mutex_);
      work_done_.wait(lock, [&] { return commands_posted_ - commands_done_ < queued_commands_max; });
      queue_.push_back(std::move(c));
      ++commands_posted_;
    }
    work_arrived_.notify_one();
  }

  // ---- below: the worker thread ----

  void run_commands() {
    prctl(PR_SET_TIMERSLACK, 1000ul, 0, 0, 0);  // nanoseconds; the default of 50,000 exceeds look_again
    std::vector<command> taken;
    taken.reserve(queued_commands_usual);
    while (true) {
      {
        std::unique_lock lock(mutex_);
        const auto has_work = [&] { return stopping_ || !queue_.empty(); };
        if (launched_ == completed_ && !states_move_)
          work_arrived_.wait(lock, has_work);
        else if (launched_ - completed_ < in_flight_max || states_move_)
          work_arrived_.wait_for(lock, look_again, has_work);
        if (stopping_) return;
        taken.swap(queue_);
      }
      for (const command& c : taken)
        if (!run_command(c)) return;
      taken.clear();
      move_states();
      // With all ticks in flight no other tick can be submitted, so blocking on the oldest one delays nothing.
      const bool nothing_else = launched_ - completed_ == in_flight_max && !states_move_;
      if (nothing_else || (launched_ != completed_ && backend_->ready())) complete_oldest();
    }
  }

  // Returns false if the engine is being destroyed.
  [[nodiscard]] bool run_command(const command& c) {
    const bool is_tick = std::holds_alternative<tick_command>(c);
    if (std::holds_alternative<sample_command>(c) || std::holds_alternative<settle_command>(c)) complete_all();
    const result<void> outcome =
        loss_ ? result<void>() : attempt([&] { return std::visit([this](const auto& one) { return run(one); }, c); });
    if (!outcome) complete_all();  // ticks launched before the loss may have completed
    if (outcome && asks_for_state(c)) move_states();
    launched_ += is_tick;
    if (is_tick && !loss_ && outcome) {  // ends in complete_oldest()
      if (backend_->ready()) complete_oldest();
      return !stopping();
    }
    completed_ += is_tick;
    return end_command(outcome, is_tick);
  }

  [[nodiscard]] bool asks_for_state(const command& c) {
    const bool leaves = std::holds_alternative<park_command>(c) || std::holds_alternative<read_command>(c);
    const bool comes = std::holds_alternative<unpark_command>(c) || std::holds_alternative<write_command>(c);
    asked_.departed += leaves;
    asked_.arrived += comes;
    states_move_ |= leaves || comes;
    return leaves || comes;
  }

  void move_states() {
    if (!states_move_ || loss_) return;
    states_on_way on_way;
    const result<void> outcome = attempt([&]() -> result<void> {
      const auto still = backend_->move_states();
      if (!still) return still.error();
      on_way = *still;
      return {};
    });
    if (!outcome) complete_all();  // as in run_command
    const std::lock_guard lock(mutex_);
    if (!outcome) return note_loss(outcome.error());
    moved_ = {asked_.departed - on_way.leaving, asked_.arrived - on_way.coming};
    states_move_ = on_way.leaving + on_way.coming > 0;
  }

  void complete_all() {
    while (completed_ != launched_) complete_oldest();
  }

  void complete_oldest() {
    tick_buffer& buffer = buffer_of(++completed_);
    const result<void> outcome =
        loss_ ? result<void>() : attempt([&] { return backend_->complete(buffer.plan, buffer.result); });
    static_cast<void>(end_command(outcome, true));
    if (loss_) complete_all();
  }

  [[nodiscard]] bool stopping() const {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  [[nodiscard]] bool end_command(const result<void>& outcome, bool is_tick) {
    const std::lock_guard lock(mutex_);
    if (!outcome) note_loss(outcome.error());
    ticks_done_ += is_tick;
    ++commands_done_;
    work_done_.notify_all();
    return !stopping_;
  }

  // Under mutex_.
  void note_loss(const error& why) {
    if (loss_) return;
    loss_ = why;
    first_lost_tick_ = ticks_done_ + 1;
    states_move_ = false;
  }

  // An exception may leave states half written, so it counts as a lost device.
  template <typename Work>
  [[nodiscard]] static result<void> attempt(const Work& work) {
    try {
      return work();
    } catch (const std::exception& trouble) {
      return error{error_kind::internal, std::string("the engine failed: ") + trouble.what(), {}};
    }
  }

  result<void> run(const start_command& c) { return backend_->start(c.slot, c.params), result<void>(); }
  result<void> run(const restart_command& c) { return backend_->restart_sampler(c.slot, c.params), result<void>(); }
  result<void> run(const copy_command& c) { return backend_->copy_state(c.from, c.to), result<void>(); }
  result<void> run(const clear_command& c) { return backend_->clear(c.slot), result<void>(); }
  result<void> run(const park_command& c) { return backend_->park(c.slot, *c.out); }
  result<void> run(const unpark_command& c) { return backend_->unpark(c.slot, c.params, *c.in); }
  result<void> run(const write_command& c) { return backend_->write_state(c.slot, c.state); }
  result<void> run(const read_command& c) { return backend_->read_state(c.slot, *c.out); }
  result<void> run(const tick_command& c) {
    tick_buffer& buffer = buffer_of(c.tick);
    buffer.result.tick = c.tick;
    return backend_->launch(buffer.plan, buffer.result);
  }
  result<void> run(const sample_command& c) {
    auto sampled = backend_->sample(c.slot, c.allowed);
    if (!sampled) return sampled.error();
    *c.out = std::move(*sampled);
    return {};
  }
  result<void> run(const settle_command&) {
    auto settled = backend_->settle();
    if (settled) move_states();
    return settled;
  }

  const engine_info info_;
  const std::unique_ptr<backend> backend_;

  // Used by the caller's thread only. A loss takes effect with the first call that returns it: results computed before
  // it can still be collected, and the point at which the caller sees it does not depend on timing.
  std::uint64_t submitted_ = 0;
  std::uint64_t collected_ = 0;
  std::optional<error> reported_loss_;
  std::vector<std::uint8_t> slot_seen_;

  // Used by the worker only: ticks passed to the back end; ticks completed by it or abandoned.
  std::uint64_t launched_ = 0;
  std::uint64_t completed_ = 0;
  moved_states asked_;        // the value of moved_ once all state copies are complete
  bool states_move_ = false;  // some state copies are not complete

  std::array<tick_buffer, in_flight_max + 1> ring_;  // handed over under mutex_, by the counters

  mutable std::mutex mutex_;
  std::condition_variable work_arrived_;
  std::condition_variable work_done_;
  std::vector<command> queue_;
  std::uint64_t commands_posted_ = 0;
  std::uint64_t commands_done_ = 0;
  std::uint64_t ticks_done_ = 0;
  moved_states moved_;
  std::uint64_t first_lost_tick_ = std::numeric_limits<std::uint64_t>::max();
  std::optional<error> loss_;  // written by the worker under mutex_
  bool stopping_ = false;

  std::thread worker_;  // last: everything it uses lives longer
};

}  // namespace

std::unique_ptr<engine> make_host_engine(engine_info info, std::unique_ptr<backend> work) {
  info.ticks_in_flight_max = in_flight_max;
  return std::make_unique<host_engine>(std::move(info), std::move(work));
}

}  // namespace skein::engine
