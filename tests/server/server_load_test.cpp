// The running server under load, with real sockets and the fake engine, whose every text is known beforehand: streams
// by the thousand, clients that hang up at any moment, one that does not read, memory by the connection, the end by
// signal. The argument "full" (`server_load_test -- full`) makes it several times as much.
#include <sys/resource.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "base/sanitizer.hpp"
#include "tests/server/hang_ups.hpp"
#include "tests/server/open_streams.hpp"
#include "tests/server/server_process.hpp"

using namespace skein::test;
namespace utf = boost::unit_test;

namespace {

constexpr std::uint32_t endless = 1'000'000;

bool full() {
  const auto& suite = utf::framework::master_test_suite();
  return suite.argc > 1 && std::string_view(suite.argv[1]) == "full";
}

/// A server with the fake engine and these settings, written KEY=VALUE; no balancer has to hear of its end.
std::vector<std::string> fake(const std::vector<std::string>& settings) {
  std::vector<std::string> arguments{"--device", "fake", "--set", "drain.grace_ms=0"};
  for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
  return arguments;
}

// Under a sanitizer it takes longer to open a thousand connections, and none of their answers may end before.
#if defined(SKEIN_ADDRESS_SANITIZER) || defined(SKEIN_THREAD_SANITIZER)
constexpr std::uint32_t a_while = 600;
#else
constexpr std::uint32_t a_while = 60;
#endif

/// Sanitizers keep freed memory and shadows of it: only a plain build's resident size says something.
boost::test_tools::assertion_result plain_build(utf::test_unit_id) {
#if defined(SKEIN_ADDRESS_SANITIZER) || defined(SKEIN_THREAD_SANITIZER)
  return false;
#else
  return true;
#endif
}

void stop(server_process& server) {
  server.signal(SIGTERM);
  BOOST_TEST(server.wait_for_exit() == 0);
}

/// Lowers this process's soft limit on descriptors, which a child inherits, while it lives.
class scoped_descriptor_limit {
 public:
  explicit scoped_descriptor_limit(rlim_t descriptors) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit lower{descriptors, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &lower);
  }
  ~scoped_descriptor_limit() { setrlimit(RLIMIT_NOFILE, &before_); }
  scoped_descriptor_limit(const scoped_descriptor_limit&) = delete;  // one restores the limit

 private:
  rlimit before_{};
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_thousand_streams_at_once_get_their_own_texts) {
  server_process server(SKEIN_PROGRAM, fake({"engine.fake_tick_us=50000", "engine.slots=1000",
                                             "engine.max_tick_tokens=16000", "engine.prefill_chunk_tokens=16000"}));
  open_streams streams(server.port());
  streams.add(1000, full() ? 300 : a_while);
  streams.run_until_events(1);
  BOOST_TEST(server.counters().running == 1000u);
  streams.run();
  BOOST_TEST(streams.whole() == 1000u);
  BOOST_TEST(streams.wrong_texts() == 0u);
  server.wait_for([](const server_counters& c) { return c.idle(); });
  stop(server);
}

BOOST_AUTO_TEST_CASE(more_streams_than_slots_take_turns_and_lose_nothing) {
  // An answer takes 0.8 s at least, so that on any machine more than 64 of them live at a time.
  server_process server(SKEIN_PROGRAM, fake({"engine.slots=64", "queue.waiting_per_client_max=1024",
                                             "engine.fake_tick_us=2000", "queue.turn_tokens=32"}));
  open_streams streams(server.port());
  streams.add(500, full() ? 2000 : 400);
  streams.run();
  BOOST_TEST(streams.whole() == 500u);
  BOOST_TEST(streams.wrong_texts() == 0u);
  BOOST_TEST(server.counters().preempted > 0u);
  stop(server);
}

BOOST_AUTO_TEST_CASE(an_open_stream_costs_at_most_64_kib, *utf::precondition(plain_build)) {
  server_process server(SKEIN_PROGRAM, fake({"engine.fake_tick_us=100000", "engine.slots=1000", "drain.timeout_ms=0"}));
  open_streams streams(server.port());
  streams.add(200, endless);
  streams.run_until_events(5);
  const std::size_t few = server.resident_bytes();
  streams.add(800, endless);
  streams.run_until_events(10);
  const std::size_t many = server.resident_bytes();
  BOOST_TEST(server.counters().running == 1000u);
  BOOST_TEST(many < few + 800 * 64 * 1024, "a stream costs " << (many - few) / 800 << " bytes");
  BOOST_TEST(streams.wrong_texts() == 0u);
  stop(server);
}

BOOST_AUTO_TEST_CASE(clients_that_hang_up_leave_nothing_behind) {
  server_process server(SKEIN_PROGRAM, fake({"engine.slots=16", "engine.fake_tick_us=500",
                                             "prefix_cache.ram_bytes_max=1048576"}));  // full after the first round
  const std::size_t round = full() ? 1000 : 500;
  const auto settle = [&] { return server.wait_for([](const server_counters& c) { return c.idle(); }); };
  const std::size_t descriptors = server.descriptors();
  BOOST_TEST(hang_up(server.port(), round, 1).wrong_texts == 0u);
  settle();
  [[maybe_unused]] const std::size_t memory = server.resident_bytes();

  std::size_t with_text = 0;
  for (std::uint64_t seed = 2; seed < (full() ? 7u : 3u); ++seed) {
    const hang_up_report report = hang_up(server.port(), round, seed);
    BOOST_TEST(report.wrong_texts == 0u);
    with_text += report.with_text;
  }
  const server_counters after = settle();
  BOOST_TEST(with_text > 0u);
  BOOST_TEST(after.cancelled > 0u);
  BOOST_TEST(server.wait_for_descriptors(descriptors), server.descriptors() << " descriptors after " << descriptors);
#if !defined(SKEIN_ADDRESS_SANITIZER) && !defined(SKEIN_THREAD_SANITIZER)
  // 4 MiB is what the allocator's high-water mark moves by; 100 leaked calls are more.
  BOOST_TEST(server.resident_bytes() < memory + (4u << 20), server.resident_bytes() << " bytes after " << memory);
#endif
  stop(server);
}

BOOST_AUTO_TEST_CASE(a_reader_that_pauses_gets_its_text_later_and_delays_no_other) {
  // Some 1.4 MiB, ten times what kernel and server hold for it. The ticks leave a slow io thread half a second to ask
  // for the pause, before the answer has run so far ahead that its reader is cut off.
  constexpr std::uint32_t long_answer = 6000;
  server_process server(SKEIN_PROGRAM, fake({"engine.slots=2", "engine.fake_tick_us=200",
                                             "limits.outbound_bytes_max=65536", "limits.unsent_bytes_max=16384"}));
  stream_client slow(server.port());
  const fake_wish wish = make_wish(1, 16, long_answer);
  slow.start({.request = wish.request(), .slow = true});
  slow.run_until([&] { return server.counters().generated > 0; });

  open_streams fast(server.port());
  fast.add(100, 200);
  fast.run();
  BOOST_TEST(fast.whole() == 100u);
  BOOST_TEST(fast.wrong_texts() == 0u);
  // The kernel has taken all that it takes: until then a pause ends soon.
  std::uint64_t generated = 0;
  std::uint32_t unchanged = 0;
  server.wait_for([&](const server_counters& c) {
    unchanged = c.paused == 1 && c.generated == generated ? unchanged + 1 : 0;
    generated = c.generated;
    return unchanged == 50;
  });

  // Some who want both slots, and for long: the paused one's state must be out of the way.
  fast.add(6, 3000);
  fast.run();
  BOOST_TEST(fast.whole() == 106u);
  const server_counters paused =
      server.wait_for([](const server_counters& c) { return c.parked == 1 && c.slots_used == 0; });
  BOOST_TEST(paused.running == 1u);
  BOOST_TEST(paused.generated < 100 * 200 + 6 * 3000 + long_answer);
  BOOST_TEST(server.counters().generated == paused.generated);

  slow.read_on(0);
  slow.run();
  BOOST_TEST(slow.answer(0).done());
  BOOST_TEST(slow.answer(0).text() == wish.text());
  server.wait_for([](const server_counters& c) { return c.idle(); });
  stop(server);
}

BOOST_AUTO_TEST_CASE(a_reader_that_never_reads_is_cut_off) {
  server_process server(SKEIN_PROGRAM, fake({"limits.outbound_bytes_max=16384", "limits.write_timeout_ms=300"}));
  stream_client slow(server.port());
  slow.start({.request = make_wish(1, 16, endless).request(), .slow = true});
  slow.run();
  BOOST_TEST(!slow.answer(0).done());
  server.wait_for([](const server_counters& c) { return c.idle(); });
  stop(server);
  BOOST_TEST(server.log().find("slow_consumer") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_signal_ends_every_stream_with_its_last_events) {
  server_process server(SKEIN_PROGRAM, fake({"engine.fake_tick_us=10000", "drain.timeout_ms=200"}));
  open_streams streams(server.port());
  streams.add(500, endless);
  streams.run_until_events(3);
  server.signal(SIGTERM);
  streams.run();
  BOOST_TEST(server.wait_for_exit() == 0);
  std::size_t orderly = 0;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const streamed_answer& a = streams.answer(i);
    if (a.complete() && a.done() && a.finish_reason() == "length" && a.stop_reason() == "drain") ++orderly;
  }
  BOOST_TEST(orderly == 500u);
  BOOST_TEST(streams.wrong_texts() == 0u);
}

BOOST_AUTO_TEST_CASE(a_second_signal_does_not_wait) {
  server_process server(SKEIN_PROGRAM, fake({"engine.fake_tick_us=10000", "drain.timeout_ms=600000"}));
  open_streams streams(server.port());
  streams.add(50, endless);
  streams.run_until_events(3);
  server.signal(SIGTERM);
  const std::size_t events = streams.answer(0).events();
  streams.run_until_events(events + 3);  // the first signal let them go on
  server.signal(SIGTERM);
  streams.run();
  BOOST_TEST(server.wait_for_exit() == 0);  // within its minute, not the ten of the drain
  for (std::size_t i = 0; i < streams.size(); ++i) {
    BOOST_TEST(streams.answer(i).done());
    BOOST_TEST(streams.answer(i).stop_reason() == "drain");
  }
}

BOOST_AUTO_TEST_CASE(a_low_soft_limit_on_descriptors_is_lifted) {
  std::optional<server_process> server;
  {
    const scoped_descriptor_limit low(128);
    server.emplace(SKEIN_PROGRAM, fake({"engine.fake_tick_us=10000"}));
  }
  open_streams streams(server->port());
  streams.add(300, 100);
  streams.run();
  BOOST_TEST(streams.whole() == 300u);
  BOOST_TEST(server->log().find("cannot accept") == std::string::npos);
  stop(*server);
}
