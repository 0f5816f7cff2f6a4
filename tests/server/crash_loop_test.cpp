// Sessions and kill -9: many writers, each in a session of his own or in a branch of one that he shares, on the fake
// engine, whose every answer is known beforehand; the server is killed at a random moment and started again on the same
// directory, time after time. What was acknowledged as durable must be there, whole and in order; what was not may be
// there, whole, or not at all. The argument "full" (`crash_loop_test -- full`) kills fifty times as often.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <csignal>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/server_process.hpp"
#include "tests/server/session_writer.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/random_cases.hpp"

using namespace skein::test;
namespace utf = boost::unit_test;

namespace {

constexpr std::size_t writers = 32;
constexpr std::size_t in_branches = 8;  // of these, four to a session

bool full() {
  const auto& suite = utf::framework::master_test_suite();
  return suite.argc > 1 && std::string_view(suite.argv[1]) == "full";
}

/// Then its writers begin new ones: a long session has to be fed again after each kill, and no life would be long
/// enough for a turn of it.
constexpr std::size_t lives_of_a_session = 200;

/// What came of the turns of one life of the server.
struct outcomes {
  std::size_t acknowledged = 0, failed = 0, unknown = 0;
};

/// Writes turns into one session until the server is gone.
class writing {
 public:
  writing(session_writer& writer, std::uint16_t port) : thread_([this, &writer, port] { run(writer, port); }) {}
  ~writing() {
    if (thread_.joinable()) thread_.join();
  }
  writing(const writing&) = delete;  // the thread knows its address

  /// Waits for its end. Throws what ended it, if not the server did.
  const outcomes& result() {
    thread_.join();
    if (trouble_) std::rethrow_exception(trouble_);
    return outcomes_;
  }

 private:
  void run(session_writer& writer, std::uint16_t port) {
    try {
      for (;;) switch (writer.write(port)) {
          case turn_outcome::acknowledged: ++outcomes_.acknowledged; break;
          case turn_outcome::failed: ++outcomes_.failed; return;
          case turn_outcome::unknown: ++outcomes_.unknown; return;
        }
    } catch (...) {
      trouble_ = std::current_exception();
    }
  }

  outcomes outcomes_;
  std::exception_ptr trouble_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace

BOOST_AUTO_TEST_CASE(no_turn_that_was_reported_durable_is_lost_torn_reordered_or_mixed) {
  const std::size_t lives = full() ? 10'000 : 200;
  random_cases random;
  const temporary_folder directory;
  std::vector<session_writer> sessions;
  std::size_t found_before = 0;
  outcomes all;
  std::chrono::duration<double> slowest{};

  const auto found = [&] {
    std::size_t all_found = found_before;
    for (const session_writer& s : sessions) all_found += s.found();
    return all_found;
  };
  const auto report = [&](std::size_t life) {
    BOOST_TEST_MESSAGE(life << " lives: " << all.acknowledged << " turns acknowledged, " << all.unknown
                            << " unknown, of which " << found() << " were there, " << all.failed << " failed; the "
                            << "slowest session opened in " << slowest.count() << " s");
  };

  for (std::size_t life = 0; life < lives; ++life) {
    if (life > 0 && life % 500 == 0) report(life);
    if (life % lives_of_a_session == 0) {
      found_before = found();
      sessions.clear();
      for (std::size_t i = 0; i < writers; ++i) {
        const std::string of = "writer-" + std::to_string(life) + "-";
        if (i < in_branches)
          sessions.emplace_back(of + "branches-" + std::to_string(i / 4), "-" + std::to_string(i));
        else
          sessions.emplace_back(of + std::to_string(i));
      }
    }
    server_process server(SKEIN_PROGRAM, {"--device", "fake", "--state-dir", directory.path().string(), "--set",
                                          "engine.slots=16", "--set", "engine.fake_tick_us=100"});
    for (session_writer& s : sessions) {
      const auto begin = std::chrono::steady_clock::now();
      BOOST_REQUIRE_EQUAL(s.compare(server.port()), "");
      slowest = std::max(slowest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin));
    }
    std::vector<std::unique_ptr<writing>> threads;
    for (session_writer& s : sessions) threads.push_back(std::make_unique<writing>(s, server.port()));
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(120'000)));  // a random moment
    server.signal(SIGKILL);
    BOOST_TEST(server.wait_for_exit() == -1);
    for (auto& t : threads) {
      const outcomes& one = t->result();
      all.acknowledged += one.acknowledged, all.failed += one.failed, all.unknown += one.unknown;
    }
  }

  report(lives);
  BOOST_TEST(all.acknowledged > lives);  // it was killed at work
  BOOST_TEST(all.unknown > lives);
  BOOST_TEST(found() > 0u);
  BOOST_TEST(slowest.count() < 5.0);
}
