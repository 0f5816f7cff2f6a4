#pragma once
#include <boost/test/unit_test.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actors/persistence/keeper/prefix_keeper.hpp"
#include "actors/persistence/keeper/session_keeper.hpp"
#include "tests/storage/fault_file_system.hpp"
#include "tests/support/oracle.hpp"

namespace skein::test {

using namespace std::chrono_literals;
using namespace persistence;

/// Jobs that wait until the test runs them.
struct hand_runner final : job_runner {
  void run(job work) override { jobs.push_back(std::move(work)); }
  bool step() {
    if (jobs.empty()) return false;
    job next = std::move(jobs.front());
    jobs.pop_front();
    next()();
    return true;
  }
  std::deque<job> jobs;
};

struct recorded_replies final : reply_sink {
  void deliver(reply&& r) override { all.push_back(std::move(r)); }
  std::deque<reply> all;
};

inline constexpr std::size_t bench_floats = 32;
inline constexpr model::state_layout bench_layout{.layers = 1, .embd = bench_floats / 2};

/// The state after these tokens: what an engine would hold, so that a wrong state shows.
inline state_buffer state_after(std::span<const token_id> tokens) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const token_id t : tokens) hash = (hash ^ static_cast<std::uint64_t>(t + 1)) * 0x100000001b3;
  std::vector<float> floats(bench_floats);
  for (std::size_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<float>((hash >> (i % 57)) & 127);
  return std::make_shared<const model::state_value>(model::state_of(bench_layout, floats));
}

/// The two keepers over a real database in a folder, with the test in the place of clock, worker, device and requests.
struct keeper_bench {
  explicit keeper_bench(bool in_memory = false, std::string model_name = "model-a")
      : on_disk(!in_memory), model(std::move(model_name)) {
    options.session_states.ram_bytes_max = 1 << 20;
    options.session_states.disk_bytes_max = in_memory ? 0 : 1 << 20;
    options.prefix_states = options.session_states;
    options.prefix_states.write_behind = false;
    options.prefix_states.thin = false;
    options.prefixes.min_tokens = 2;
    options.prefixes.every_tokens = 8;
  }

  void open() {
    auto opened = storage::database::open({.directory = on_disk ? folder.path() / "db" : std::filesystem::path(),
                                           .environment = on_disk ? environment.get() : nullptr});
    BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().message));
    db = std::move(*opened);
    const storage::known_model known{bench_layout, vocab};
    const auto models = std::make_shared<storage::model_table>();
    models->add(model, former_model, known);
    if (!second_model.empty()) models->add(second_model, known);
    states = std::make_shared<storage::state_store>(db, models, dtype::f32);
    const keeper_ports ports{db,
                             states,
                             runner,
                             replies,
                             time,
                             [this] { return ms; },
                             [this](session_uid gone) {
                               if (device_full) return false;
                               forgotten.push_back(gone);
                               return true;
                             }};
    sessions = std::make_unique<session_keeper>(options, ports, counters);
    prefixes = std::make_unique<prefix_keeper>(options, ports, counters);
    sessions->begin();
    prefixes->begin();
  }
  /// What is not in the files by now is lost.
  void crash() {
    files->freeze();
    close();
    files->heal();
    files->thaw();
  }
  void close() {
    runner.jobs.clear();
    replies.all.clear();
    sessions.reset();
    prefixes.reset();
    states.reset();
    db.reset();
  }
  /// An orderly end.
  void end() {
    for (int i = 0; i < 100; ++i) {
      const bool sessions_done = sessions->flush(), prefixes_done = prefixes->flush(sessions->disk_works());
      if (sessions_done && prefixes_done) break;
      while (runner.step()) {
      }
    }
    close();
  }

  void pass(duration by) {
    time.advance(by);
    ms += std::chrono::duration_cast<std::chrono::milliseconds>(by).count();
    pump();
  }
  /// Until the disk takes writes again, for which RocksDB looks in its own time.
  void recover() {
    files->heal();
    for (int i = 0; i < 10'000 && !sessions->disk_works(); ++i) {
      pass(3s);
      if (!sessions->disk_works()) std::this_thread::sleep_for(1ms);
    }
    BOOST_REQUIRE(sessions->disk_works());
  }
  /// Lets everything happen that can, at this time.
  void pump() {
    do {
      sessions->tick();
      prefixes->tick(sessions->disk_works());
    } while (runner.step());
    auto wrong = sessions->self_check();
    if (!wrong) wrong = prefixes->self_check();
    BOOST_REQUIRE_MESSAGE(!wrong, wrong.value_or(""));
  }

  template <typename Message>
  void tell(Message m) {
    sessions->handle(std::move(m));
    pump();
  }
  /// The next reply of a kind; it must be there.
  template <typename Reply>
  Reply take() {
    BOOST_REQUIRE_MESSAGE(!replies.all.empty(), "there is no reply");
    reply r = std::move(replies.all.front());
    replies.all.pop_front();
    if (const auto* why = std::get_if<refused>(&r))
      BOOST_REQUIRE_MESSAGE((std::is_same_v<Reply, refused>), "refused: " << why->why.message);
    BOOST_REQUIRE(std::holds_alternative<Reply>(r));
    return std::get<Reply>(std::move(r));
  }
  template <typename Reply, typename Message>
  Reply ask(Message m) {
    tell(std::move(m));
    return take<Reply>();
  }
  error refusal() { return take<refused>().why; }
  template <typename Body, typename Message>
  Body answered(Message m) {
    return std::get<Body>(ask<answer>(std::move(m)).body);
  }
  [[nodiscard]] bool silent() const { return replies.all.empty(); }

  // ---- a turn ----

  open_session question(const std::string& id, std::string text = {}, turn_text kind = turn_text::increment) {
    open_session q;
    q.reply = {0, ++tickets};
    q.session.id = id;
    q.model = model;
    q.kind = kind;
    q.history = std::move(text);
    q.deadline = time.now() + 1min;
    return q;
  }
  session_opened opened(const std::string& id) { return ask<session_opened>(question(id)); }

  commit_turn commit_of(const session_opened& o, std::vector<token_id> tokens, std::string text) {
    commit_turn c;
    c.reply = o.reply;
    c.lease = o.lease;
    c.version.tokens = std::move(tokens);
    c.version.text = text;
    c.version.answer = "answer";
    c.version.messages = {{"user", text}};
    c.segment = std::move(text);
    return c;
  }
  /// A whole turn: its state comes after the commit.
  turn_committed turn(const std::string& id, std::vector<token_id> tokens, std::string text,
                      std::span<const token_id> all_tokens = {}) {
    const auto o = opened(id);
    const auto done = ask<turn_committed>(commit_of(o, tokens, std::move(text)));
    tell(state_kept{o.key, state_after(all_tokens.empty() ? std::span<const token_id>(tokens) : all_tokens)});
    return done;
  }
  session_description described(const std::string& id, bool transcript = false) {
    describe_session d;
    d.session.id = id;
    d.transcript = transcript;
    return answered<session_description>(d);
  }

  const bool on_disk;
  std::string model;         ///< that runs, with its vocabulary
  std::string second_model;  ///< that was loaded as well
  std::string former_model;  ///< the identity of `model` in earlier versions; empty: none
  std::uint32_t vocab = 1000;
  temporary_folder folder;
  std::shared_ptr<fault_file_system> files = std::make_shared<fault_file_system>();
  std::unique_ptr<fault_environment> environment = std::make_unique<fault_environment>(files);
  persistence_options options;
  fake_clock time;
  std::int64_t ms = 1'700'000'000'000;
  hand_runner runner;
  recorded_replies replies;
  persistence_counters counters;
  std::vector<session_uid> forgotten;
  bool device_full = false;
  std::shared_ptr<storage::database> db;
  std::shared_ptr<storage::state_store> states;
  std::unique_ptr<session_keeper> sessions;
  std::unique_ptr<prefix_keeper> prefixes;
  ticket tickets = 0;
};

struct opened_bench : keeper_bench {
  opened_bench() { open(); }
};

inline session_key named(const std::string& id) { return {default_tenant, id}; }

}  // namespace skein::test
