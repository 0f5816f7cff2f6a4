// Shows the persistence actor with its threads: many askers at once, an orderly end that writes all states, an end
// without one, which is a crash, and that everything acknowledged is there after it.
#include "actors/persistence/persistence_actor.hpp"

#include <boost/test/unit_test.hpp>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "base/log/log.hpp"
#include "tests/actors/persistence/keeper_bench.hpp"
#include "tests/support/failing_new.hpp"

using namespace skein;
using namespace skein::test;

namespace {

using tokens_t = std::vector<token_id>;

/// Replies by ticket, for threads that wait for theirs.
class mailed_replies final : public reply_sink {
 public:
  std::function<bool(const reply&)> fails;  ///< for want of memory

  void deliver(reply&& r) override {
    if (fails && fails(r)) throw std::bad_alloc();
    const std::lock_guard lock(mutex_);
    const ticket number = std::visit([](const auto& one) { return one.reply.number; }, r);
    by_ticket_.emplace(number, std::move(r));
    arrived_.notify_all();
  }
  bool has(ticket number) {
    const std::lock_guard lock(mutex_);
    return by_ticket_.contains(number);
  }
  /// Null after a minute without one.
  std::optional<reply> wait_for(ticket number) {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_for(lock, 1min, [&] { return by_ticket_.contains(number); })) return std::nullopt;
    auto found = by_ticket_.extract(by_ticket_.find(number));
    return std::move(found.mapped());
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::multimap<ticket, reply> by_ticket_;
};

struct actor_bench {
  actor_bench() {
    options.session_states.disk_bytes_max = 1 << 20;
    options.session_states.write_delay = 1h;  // only the end writes
    options.prefix_states.disk_bytes_max = 1 << 20;
    options.prefix_states.write_behind = options.prefix_states.thin = false;
    options.prefixes.min_tokens = 2;
    start();
  }
  void start() {
    auto db = storage::database::open({.directory = folder.path() / "db"});
    BOOST_REQUIRE_MESSAGE(db, (db ? "" : db.error().message));
    const storage::known_model known{bench_layout, 1000};
    auto states = std::make_shared<storage::state_store>(*db, std::make_shared<storage::model_table>("model-a", known),
                                                         dtype::f32);
    actor = std::make_unique<persistence_actor>(options, *db, states, replies, real_clock(), [] {
      return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
    });
  }
  void end() {
    BOOST_REQUIRE(actor->inbox().push_urgent(persistence::shutdown{real_clock().now() + 1min}));
    actor->join();
    BOOST_TEST(actor->counters().ended);
    actor.reset();
  }
  template <typename Message>
  void tell(Message m) {
    while (!actor->inbox().push_urgent(std::move(m))) std::this_thread::yield();
  }
  /// A turn on any thread; the version that was committed, 0 on trouble.
  version_id turn(ticket number, const std::string& id, const tokens_t& fed, tokens_t& all) {
    open_session q;
    q.reply = {0, number};
    q.session.id = id;
    q.model = "model-a";
    q.deadline = real_clock().now() + 1min;
    tell(std::move(q));
    const auto opened = replies.wait_for(number);
    const auto* o = opened ? std::get_if<session_opened>(&*opened) : nullptr;
    if (!o) return 0;
    const std::size_t cached = o->resume.cached_tokens;
    if (cached + o->resume.feed.size() != all.size()) return 0;
    if (o->resume.state && *o->resume.state != *state_after(std::span<const token_id>(all).first(cached))) return 0;
    all.insert(all.end(), fed.begin(), fed.end());
    commit_turn c;
    c.reply = q.reply;
    c.lease = o->lease;
    c.version.tokens = fed;
    c.segment = "x";
    const state_key key = o->key;
    tell(std::move(c));
    tell(state_kept{key, state_after(all)});
    const auto done = replies.wait_for(number);
    const auto* committed = done ? std::get_if<turn_committed>(&*done) : nullptr;
    return committed && committed->durable == durability::process ? committed->version : 0;
  }

  temporary_folder folder;
  persistence_options options;
  mailed_replies replies;
  std::unique_ptr<persistence_actor> actor;
};

}  // namespace

BOOST_AUTO_TEST_CASE(everything_acknowledged_is_there_after_a_crash) {
  actor_bench b;
  constexpr int writers = 8, turns = 12, crashes = 4;
  std::vector<tokens_t> all(writers);
  for (int life = 0; life < crashes; ++life) {
    std::vector<int> wrong(writers, 0);
    std::vector<std::thread> threads;
    for (int w = 0; w < writers; ++w)
      threads.emplace_back([&, w] {
        for (int t = 1; t <= turns; ++t)
          if (b.turn(static_cast<ticket>(1 + w), "s" + std::to_string(w), {w, t}, all[w]) !=
              static_cast<version_id>(life * turns + t))
            ++wrong[w];
      });
    for (auto& t : threads) t.join();
    for (int w = 0; w < writers; ++w) BOOST_TEST(wrong[w] == 0);
    b.actor.reset();  // as a kill: nothing is written any more
    b.start();
  }
}

BOOST_AUTO_TEST_CASE(a_turn_that_fails_delays_no_other) {
  actor_bench b;
  tokens_t all;
  BOOST_TEST(b.turn(1, "s", {1}, all) == 1u);
  for (const bool at_its_end : {false, true}) {
    bool once = true;
    b.replies.fails = [&, at_its_end](const reply& r) {
      const bool meant =
          at_its_end ? std::holds_alternative<turn_committed>(r) : std::holds_alternative<session_opened>(r);
      if (meant && std::exchange(once, false)) throw std::runtime_error("the sink is broken");
      return false;
    };
    tokens_t lost = all;
    BOOST_TEST(b.turn(2, "s", {9}, lost) == 0u);
    if (at_its_end) all = lost;                 // it was written without an answer, and then it exists
    BOOST_TEST(b.turn(3, "s", {2}, all) > 1u);  // does not wait for another turn
  }
  // What is counted is told a little later than what is answered.
  for (int i = 0; i < 6000 && b.actor->counters().leases > 0; ++i) std::this_thread::sleep_for(10ms);
  BOOST_TEST(b.actor->counters().leases == 0u);
  b.end();
}

BOOST_AUTO_TEST_CASE(every_question_is_answered_when_replies_run_out_of_memory) {
  actor_bench b;
  tokens_t all;
  int failures = 0;
  b.replies.fails = [&](const reply&) { return failures-- > 0; };
  for (const int count : {1, 2, 3, 50}) {
    failures = count;
    for (ticket number = 1; number <= 5; ++number) b.tell(list_sessions{{0, number}, default_tenant, "", 20});
    for (ticket number = 1; number <= 5; ++number) {
      const auto r = b.replies.wait_for(number);
      BOOST_REQUIRE_MESSAGE(r, "question " << number << " has no answer after " << count << " failures");
      BOOST_TEST(std::holds_alternative<answer>(*r));
    }
  }
  failures = 7;
  BOOST_TEST(b.turn(1, "s", {1}, all) == 1u);  // a turn as well
  b.end();
}

BOOST_AUTO_TEST_CASE(an_end_sends_pending_replies_without_memory_first) {
  actor_bench b;
  int failures = 8;
  b.replies.fails = [&](const reply&) { return failures-- > 0; };
  for (ticket number = 1; number <= 3; ++number) b.tell(list_sessions{{0, number}, default_tenant, "", 20});
  b.end();
  for (ticket number = 1; number <= 3; ++number) BOOST_TEST(b.replies.has(number), "no answer to " << number);
}

/// A sink may fail for other reasons than memory, too: a reply is sent once, and in its turn, all the same.
BOOST_AUTO_TEST_CASE(kept_replies_are_sent_once_whatever_the_sink_throws) {
  struct failing_sink final : reply_sink {
    std::vector<ticket> got;
    int out_of_memory = 1, broken = 0;
    void deliver(reply&& r) override {
      if (out_of_memory-- > 0) throw std::bad_alloc();
      const ticket number = std::get<refused>(r).reply.number;
      if (number == 3 && broken-- > 0) throw std::runtime_error("the sink is broken");
      got.push_back(number);
      const reply taken = std::move(r);
    }
  } sink;
  reply_outbox outbox(sink);
  sink.broken = 2;
  for (ticket number = 1; number <= 4; ++number) outbox.deliver(refused{{0, number}, {}});
  for (int tries = 0; tries < 4; ++tries) BOOST_CHECK_NO_THROW(outbox.send());
  BOOST_TEST(!outbox.keeps_any());
  BOOST_TEST(sink.got == (std::vector<ticket>{1, 2, 3, 4}), boost::test_tools::per_element());
  sink.broken = 1;
  BOOST_CHECK_THROW(outbox.deliver(refused{{0, 3}, {}}), std::runtime_error);  // its asker is told otherwise
  BOOST_TEST(!outbox.keeps_any());
}

BOOST_AUTO_TEST_CASE(the_worker_needs_no_memory_to_end_a_job) {
  std::promise<void> woken;
  int failures = 3;
  state_worker worker("test", [&] {
    if (failures-- > 0) throw std::bad_alloc();
    if (failures == -1) woken.set_value();
  });
  worker.run([]() -> aftermath {
    static thread_local std::optional<failing_new> no_memory;  // from now on, on this thread
    no_memory.emplace(1);
    return [] {};
  });
  auto heard = woken.get_future();
  BOOST_REQUIRE((heard.wait_for(1min) == std::future_status::ready));
  BOOST_TEST(worker.take().size() == 1u);
  worker.stop();
}

BOOST_AUTO_TEST_CASE(an_orderly_end_writes_all_states) {
  actor_bench b;
  std::vector<tokens_t> all(20);
  for (std::size_t i = 0; i < all.size(); ++i)
    BOOST_TEST(b.turn(1, "s" + std::to_string(i), {static_cast<token_id>(i)}, all[i]) == 1u);
  b.tell(find_prefix{{0, 5}, default_tenant, "model-a", {}, std::make_shared<const tokens_t>(tokens_t{1, 2, 3}), 0, 0});
  const auto found = std::get<prefix_found>(*b.replies.wait_for(5));
  BOOST_REQUIRE(found.keep.size() == 1u);
  b.tell(state_kept{found.keep[0].key, state_after(tokens_t{1, 2, 3})});
  b.end();
  b.start();
  for (std::size_t i = 0; i < all.size(); ++i) BOOST_TEST(b.turn(1, "s" + std::to_string(i), {5}, all[i]) == 2u);
  b.tell(
      find_prefix{{0, 5}, default_tenant, "model-a", {}, std::make_shared<const tokens_t>(tokens_t{1, 2, 3, 4}), 0, 0});
  BOOST_TEST(std::get<prefix_found>(*b.replies.wait_for(5)).position == 3u);
  b.end();
  // Every turn went on from a state that was read: none had to be made again.
  b.start();
  BOOST_TEST(b.actor->counters().rebuilds == 0u);
}

BOOST_AUTO_TEST_CASE(an_end_that_is_due_does_not_wait) {
  actor_bench b;
  tokens_t all;
  BOOST_TEST(b.turn(1, "s", {1}, all) == 1u);
  BOOST_REQUIRE(b.actor->inbox().push_urgent(persistence::shutdown{real_clock().now() - 1s}));
  b.actor->join();
  BOOST_TEST(!b.actor->inbox().push_urgent(persistence::shutdown{}));  // closed
  b.actor.reset();
  b.start();
  BOOST_TEST(b.turn(1, "s", {2}, all) == 2u);  // the log had it, whatever became of the state
}

BOOST_AUTO_TEST_CASE(an_actor_destroyed_at_once_does_not_block_on_its_threads) {
  for (int i = 0; i < 5; ++i) {
    actor_bench b;
    open_session q;
    q.reply = {0, 1};
    q.session.id = "s";
    b.tell(std::move(q));
    b.tell(export_session{{0, 2}, {default_tenant, "s"}, true});
    b.tell(import_session{{0, 3}, {default_tenant, "t"}, std::string(100'000, 'x'), false});
  }
}
