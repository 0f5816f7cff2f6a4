#pragma once
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/device/slots/state_moves.hpp"
#include "actors/persistence/keeper/prefix_keeper.hpp"
#include "actors/persistence/keeper/session_keeper.hpp"
#include "actors/request/shared/request_hub.hpp"
#include "storage/database/database.hpp"
#include "storage/states/model_table.hpp"
#include "storage/states/state_store.hpp"

namespace skein::test {

/// The persistence thread of an engine_bench, stepped by hand: the real keepers over a database in memory.
class engine_sessions final : public persistence::reply_sink {
 public:
  static constexpr const char* identity = "random";  ///< of every model of the bench: they have the same weights

  engine_sessions(persistence::mailbox& inbox, const clock& time, const model::state_format& state, std::uint32_t vocab,
                  std::function<void(persistence::session_uid)> forget_slots)
      : inbox_(inbox), forget_slots_(std::move(forget_slots)) {
    persistence::persistence_options options;
    options.session_states.ram_bytes_max = 8 * state.bytes();  // some states have to be computed again
    options.session_states.disk_bytes_max = 0;
    options.prefix_states = options.session_states;
    options.prefix_states.write_behind = options.prefix_states.thin = false;
    options.prefixes.min_tokens = 2;
    options.prefixes.every_tokens = 8;
    auto opened = storage::database::open({.directory = {}, .environment = nullptr});
    BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().message));
    db_ = std::move(*opened);
    const auto models = std::make_shared<storage::model_table>(identity, storage::known_model{state, vocab});
    states_ = std::make_shared<storage::state_store>(db_, models, dtype::f32);
    const auto wall = [&time] {
      return 1'700'000'000'000 + time.now().time_since_epoch() / std::chrono::milliseconds(1);
    };
    const persistence::keeper_ports ports{
        db_, states_, runner_, *this, time, wall, [this](persistence::session_uid gone) {
          forget_slots_(gone);
          return true;
        }};
    sessions_ = std::make_unique<persistence::session_keeper>(options, ports, counters);
    prefixes_ = std::make_unique<persistence::prefix_keeper>(options, ports, counters);
    sessions_->begin();
    prefixes_->begin();
  }

  /// Handles what has come, and hands out the answers.
  void turn(request::request_hub& hub) {
    std::vector<persistence::message_in> messages;
    inbox_.drain(messages);
    for (auto& m : messages) std::visit([this](auto& one) { take(std::move(one)); }, m);
    do {
      sessions_->tick();
      prefixes_->tick(true);
    } while (runner_.step());
    sessions_->publish();
    prefixes_->publish();
    if (!replies_.empty()) hub.dispatch(std::exchange(replies_, {}));
  }
  void hear(const device::state_news& news, device_id from) {
    switch (news.what) {
      case device::state_news::kind::state: return take(persistence::state_kept{news.key, news.state});
      case device::state_news::kind::slot_kept: return take(persistence::slot_kept{news.key, from});
      case device::state_news::kind::slot_dropped: return take(persistence::slot_dropped{news.key, from});
    }
  }
  void self_check() const {
    auto wrong = sessions_->self_check();
    if (!wrong) wrong = prefixes_->self_check();
    BOOST_REQUIRE_MESSAGE(!wrong, wrong.value_or(""));
  }
  void deliver(persistence::reply&& r) override { replies_.push_back(std::move(r)); }

  persistence::persistence_counters counters;

 private:
  /// Jobs that run after the messages of a turn.
  struct later final : persistence::job_runner {
    void run(persistence::job work) override { jobs.push_back(std::move(work)); }
    bool step() {
      if (jobs.empty()) return false;
      persistence::job next = std::move(jobs.front());
      jobs.pop_front();
      next()();
      return true;
    }
    std::deque<persistence::job> jobs;
  };

  template <typename Message>
  void take([[maybe_unused]] Message m) {
    if constexpr (std::is_same_v<Message, persistence::state_kept>) {
      if (m.key.owner == 0)
        prefixes_->handle(std::move(m));
      else
        sessions_->handle(std::move(m));
    } else if constexpr (requires { sessions_->handle(std::move(m)); }) {
      sessions_->handle(std::move(m));
    } else if constexpr (requires { prefixes_->handle(std::move(m)); }) {
      prefixes_->handle(std::move(m));
    }
  }

  persistence::mailbox& inbox_;
  std::function<void(persistence::session_uid)> forget_slots_;
  later runner_;
  std::vector<persistence::reply> replies_;
  std::shared_ptr<storage::database> db_;
  std::shared_ptr<storage::state_store> states_;
  std::unique_ptr<persistence::session_keeper> sessions_;
  std::unique_ptr<persistence::prefix_keeper> prefixes_;
};

}  // namespace skein::test
