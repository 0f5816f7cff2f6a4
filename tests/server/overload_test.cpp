// What a server promises when more is wanted than there is, over real minutes and with real sockets: who is taken waits
// at most twice as long as at 80 % load, all others hear so at once; two keys who always want more get the same; ten
// thousand open streams cost at most 40 KiB each, and /livez answers all the while. With the fake engine, whose
// capacity is known. Scheduling alone, by a clock turned by hand, is tests/actors/scheduler_share_test.
#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "access/api_key.hpp"
#include "tests/server/fake_wish.hpp"
#include "tests/server/open_streams.hpp"
#include "tests/server/server_process.hpp"
#include "tests/server/stream_client.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;
using namespace skein::test;

namespace {

using clock_type = std::chrono::steady_clock;
using milliseconds = std::chrono::duration<double, std::milli>;

/// 16 slots with a tick of 10 ms: an answer of 64 tokens takes about 660 ms.
constexpr std::uint32_t slots = 16, answer_tokens = 64, tick_us = 10'000;
constexpr double capacity_per_s = slots / ((answer_tokens + 2) * tick_us * 1e-6);
constexpr std::chrono::seconds minute{60};

double share(std::vector<double> values, double part) {
  BOOST_REQUIRE(!values.empty());
  std::ranges::sort(values);
  return values[std::min(values.size() - 1, static_cast<std::size_t>(part * static_cast<double>(values.size())))];
}

/// A server with the fake engine and these settings, which count more than those of this page.
server_process serve(const std::vector<std::string>& settings) {
  std::vector<std::string> arguments{"--device", "fake"}, all{"drain.grace_ms=0"};
  all.push_back("engine.fake_tick_us=" + std::to_string(tick_us));
  all.push_back("engine.slots=" + std::to_string(slots));
  all.insert(all.end(), settings.begin(), settings.end());
  for (const std::string& setting : all) arguments.insert(arguments.end(), {"--set", setting});
  return server_process(SKEIN_PROGRAM, arguments);
}

struct seen {
  std::vector<double> first_token_ms, refused_ms;
  std::size_t other = 0;  ///< neither an answer nor a 429, or a wrong text
};

/// Requests at random times for a minute, `rate` a second on average.
seen under_load(double rate) {
  // A queue whose end is a third of a second away: how long who is taken may wait is the queue's length.
  server_process server = serve({"queue.waiting_max=8"});
  stream_client client(server.port());
  std::mt19937_64 random(7);
  std::exponential_distribution<double> gap(rate);
  std::vector<fake_wish> wishes;
  std::vector<clock_type::time_point> sent;
  std::vector<std::size_t> silent;  // nothing came yet
  seen all;
  const auto begin = clock_type::now();
  auto next = begin;
  client.run_until([&] {
    const auto now = clock_type::now();
    for (; next < now && next < begin + minute;
         next += std::chrono::duration_cast<clock_type::duration>(std::chrono::duration<double>(gap(random)))) {
      wishes.push_back(make_wish(wishes.size(), 16, answer_tokens));
      sent.push_back(now);
      silent.push_back(client.start({.request = wishes.back().request()}));
    }
    std::erase_if(silent, [&](std::size_t i) {
      const streamed_answer& answer = client.answer(i);
      if (answer.status() == 200 && answer.events() == 0 && client.open(i)) return false;
      if (answer.status() == 0 && client.open(i)) return false;
      (answer.status() == 429 ? all.refused_ms : all.first_token_ms).push_back(milliseconds(now - sent[i]).count());
      return true;
    });
    return now >= begin + minute && client.open() == 0;
  });
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    const streamed_answer& answer = client.answer(i);
    const bool whole = answer.status() == 200 && answer.done() && answer.text() == wishes[i].text();
    if (!whole && answer.status() != 429) ++all.other;
  }
  server.signal(SIGTERM);
  BOOST_TEST(server.wait_for_exit() == 0);
  return all;
}

/// Asks /livez every 50 ms from a thread of its own.
class probe {
 public:
  explicit probe(std::uint16_t port) : thread_([this, port] { run(port); }) {}
  ~probe() { stop(); }
  probe(const probe&) = delete;  // owns the thread

  /// How long each answer took.
  std::vector<double> stop() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
    return took_ms_;
  }
  /// After stop().
  [[nodiscard]] std::size_t failures() const { return failures_; }
  [[nodiscard]] const std::string& last_failure() const { return last_failure_; }

 private:
  void fail(const std::string& why) {
    ++failures_;
    last_failure_ = why;
  }
  void run(std::uint16_t port) {
    while (!over_) {
      const auto begin = clock_type::now();
      try {
        http_client client(port);
        client.request("GET", "/livez", "", "Connection: close\r\n");
        const auto response = client.read_response();
        if (!response || response->status != 200) fail(response ? response->body : "no answer");
      } catch (const std::exception& trouble) {
        fail(trouble.what());
      }
      took_ms_.push_back(milliseconds(clock_type::now() - begin).count());
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  std::vector<double> took_ms_;
  std::size_t failures_ = 0;
  std::string last_failure_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

/// A key that keeps `at_once` requests of `tokens` tokens open.
struct tenant {
  std::string name;
  std::uint32_t prompt_tokens, tokens;
  std::size_t at_once;
  std::vector<std::size_t> asked;
};

std::string with_key(std::string request, const std::string& name) {
  return request.insert(request.find("Content-Type"), "Authorization: Bearer secret-of-" + name + "\r\n");
}

}  // namespace

BOOST_AUTO_TEST_CASE(at_ten_times_the_load_who_is_taken_waits_at_most_twice_as_long) {
  const seen calm = under_load(0.8 * capacity_per_s);
  const seen storm = under_load(10 * capacity_per_s);
  const double calm_p99 = share(calm.first_token_ms, 0.99), storm_p99 = share(storm.first_token_ms, 0.99);
  const double refused_p99 = share(storm.refused_ms, 0.99);
  std::printf("80 %%: %zu taken, %zu refused, TTFT p50 %.0f ms, p99 %.0f ms\n", calm.first_token_ms.size(),
              calm.refused_ms.size(), share(calm.first_token_ms, 0.5), calm_p99);
  std::printf("1000 %%: %zu taken, %zu refused, TTFT p50 %.0f ms, p99 %.0f ms; 429 p50 %.1f ms, p99 %.1f ms\n",
              storm.first_token_ms.size(), storm.refused_ms.size(), share(storm.first_token_ms, 0.5), storm_p99,
              share(storm.refused_ms, 0.5), refused_p99);
  BOOST_TEST(calm.other == 0u);
  BOOST_TEST(storm.other == 0u);
  BOOST_TEST(storm_p99 <= 2 * calm_p99);
  BOOST_TEST(refused_p99 <= 50);
  // All slots work: what is refused is what does not fit.
  BOOST_TEST(static_cast<double>(storm.first_token_ms.size()) >= 0.8 * capacity_per_s * 60);
  BOOST_TEST(storm.refused_ms.size() > 5 * storm.first_token_ms.size());
}

BOOST_AUTO_TEST_CASE(two_keys_who_always_want_more_get_the_same_tokens) {
  tenant tenants[] = {{"many", 16, 40, 60, {}}, {"long", 64, 400, 20, {}}};
  const temporary_folder folder;
  const auto file = folder.path() / "keys";
  std::ofstream keys(file);
  for (const tenant& each : tenants) {
    access::api_key key;
    key.name = key.tenant = each.name;
    key.hash = access::hash_of("secret-of-" + each.name);
    keys << access::to_line(key) << '\n';
  }
  keys.close();
  server_process server = serve({"server.keys_file=" + file.string(), "queue.turn_tokens=32"});
  stream_client client(server.port());
  // Tokens of prompts and answers that a key's clients have.
  const auto got = [&](const tenant& one) {
    double tokens = 0;
    for (const std::size_t i : one.asked)
      if (const std::size_t text = client.answer(i).text().size(); text > 0)
        tokens += static_cast<double>(one.prompt_tokens + text);
    return tokens;
  };
  const auto begin = clock_type::now();
  double early[2] = {0, 0};  // while the queues fill
  client.run_until([&] {
    for (tenant& one : tenants) {
      std::size_t open = 0;
      for (const std::size_t i : one.asked) open += client.open(i);
      for (; open < one.at_once; ++open) {
        const auto wish = make_wish(client.started(), one.prompt_tokens, one.tokens);
        one.asked.push_back(client.start({.request = with_key(wish.request(), one.name)}));
      }
    }
    if (clock_type::now() < begin + minute / 6) {
      early[0] = got(tenants[0]);
      early[1] = got(tenants[1]);
    }
    return clock_type::now() > begin + minute;
  });
  const double many = got(tenants[0]) - early[0], few = got(tenants[1]) - early[1];
  std::printf("tokens in 50 s: %.0f for %zu short answers at a time, %.0f for %zu long ones\n", many,
              tenants[0].at_once, few, tenants[1].at_once);
  BOOST_TEST(many > 1000);
  BOOST_TEST(std::abs(many - few) <= 0.1 * std::max(many, few));
}

BOOST_AUTO_TEST_CASE(ten_thousand_open_streams_cost_40_kib_each_and_livez_answers) {
  constexpr std::size_t few = 1000, all = 10'000;
  server_process server = serve({"engine.fake_tick_us=2000000", "engine.slots=10000", "engine.max_tick_tokens=65536",
                                 "engine.prefill_chunk_tokens=65536", "queue.waiting_max=10000",
                                 "queue.waiting_per_client_max=10000", "drain.timeout_ms=0"});
  probe alive(server.port());
  open_streams streams(server.port());
  streams.add(few, 1'000'000);
  streams.run_until_events(5);
  const std::size_t before = server.resident_bytes();
  for (std::size_t count = few; count < all; count += few) {
    streams.add(few, 1'000'000);
    streams.run_until_events(1);
  }
  streams.run_until_events(5);
  const std::size_t after = server.resident_bytes();
  BOOST_TEST(server.counters().running == all);
  BOOST_TEST(streams.wrong_texts() == 0u);
  const double each = static_cast<double>(after - before) / static_cast<double>(all - few);
  const auto took = alive.stop();
  std::printf(
      "resident: %zu KiB at %zu streams, %zu KiB at %zu: %.0f bytes each; /livez of %zu: p50 %.1f ms, p99 %.1f "
      "ms, at most %.1f ms\n",
      before / 1024, few, after / 1024, all, each, took.size(), share(took, 0.5), share(took, 0.99), share(took, 1));
  BOOST_TEST(each <= 40 * 1024);
  BOOST_TEST(alive.failures() == 0u, alive.failures() << " times: " << alive.last_failure());
  server.signal(SIGTERM);
  streams.run();
  BOOST_TEST(server.wait_for_exit() == 0);
  std::size_t orderly = 0;
  for (std::size_t i = 0; i < all; ++i) orderly += streams.answer(i).done();
  BOOST_TEST(orderly == all);
}
