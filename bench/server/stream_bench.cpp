// Benchmarks the running server with the fake engine, so that the whole cost is the server's: throughput of a thousand
// streams, memory of an open stream, and leaks after clients that hung up. The server is one process, this program is
// all clients; both share the machine. All texts are checked; a wrong text ends the program with exit status 1.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/server/hang_ups.hpp"
#include "tests/server/open_streams.hpp"
#include "tests/server/server_process.hpp"

namespace {

using namespace skein::test;

constexpr std::uint32_t endless = 1'000'000;

double kib(std::size_t bytes) { return static_cast<double>(bytes) / 1024; }

void demand(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "stream_bench: %s\n", what);
  std::exit(1);
}

server_process start(const std::vector<std::string>& settings) {
  std::vector<std::string> arguments{"--device", "fake", "--set", "drain.grace_ms=0", "--set", "drain.timeout_ms=0"};
  for (const auto& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
  return server_process(SKEIN_PROGRAM, arguments);
}

void stop(server_process& server) {
  server.signal(SIGTERM);
  demand(server.wait_for_exit() == 0, "the server did not exit with status 0");
}

void throughput(std::size_t count, std::uint32_t tokens) {
  server_process server = start({"engine.slots=1000"});
  open_streams streams(server.port());
  const double used_before = server.processor_seconds();
  const auto begin = std::chrono::steady_clock::now();
  streams.add(count, tokens);
  streams.run();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  const double used = server.processor_seconds() - used_before;
  demand(streams.whole() == count && streams.wrong_texts() == 0, "a text is wrong");
  const double sampled = static_cast<double>(count) * tokens;
  std::printf("%zu streams x %u tokens: %.2f s, %.0f tokens/s; server: %.2f s of CPU time, %.1f us per token\n", count,
              tokens, taken.count(), sampled / taken.count(), used, used / sampled * 1e6);
  stop(server);
}

void memory(std::size_t few, std::size_t many) {
  server_process server = start({"engine.slots=" + std::to_string(many), "engine.fake_tick_us=100000"});
  const std::size_t empty = server.resident_bytes();
  open_streams streams(server.port());
  streams.add(few, endless);
  streams.run_until_events(20);
  const std::size_t at_few = server.resident_bytes();
  streams.add(many - few, endless);
  streams.run_until_events(40);
  const std::size_t at_many = server.resident_bytes();
  demand(server.counters().running == many, "not all streams are open");
  demand(streams.wrong_texts() == 0, "a text is wrong");
  std::printf("memory: %.0f KiB empty, %.0f at %zu streams, %.0f at %zu: %.0f bytes per stream (%.1f KiB)\n",
              kib(empty), kib(at_few), few, kib(at_many), many,
              static_cast<double>(at_many - at_few) / static_cast<double>(many - few),
              kib(at_many - at_few) / static_cast<double>(many - few));
  stop(server);
}

void hang_ups(std::size_t rounds, std::size_t count) {
  server_process server = start({"engine.slots=16", "engine.fake_tick_us=500"});
  const std::size_t descriptors = server.descriptors();
  for (std::uint64_t round = 0; round <= rounds; ++round) {
    hang_up_report report{};
    if (round > 0) report = hang_up(server.port(), count, round);
    demand(report.wrong_texts == 0, "a text is wrong");
    const auto c = server.wait_for([](const server_counters& now) { return now.idle(); });
    demand(server.wait_for_descriptors(descriptors), "file descriptors are left open");
    std::printf("hang-ups: %5zu: %.0f KiB resident, %zu descriptors, %llu slots used, %llu cancelled, %llu finished",
                static_cast<std::size_t>(round) * count, kib(server.resident_bytes()), descriptors,
                static_cast<unsigned long long>(c.slots_used), static_cast<unsigned long long>(c.cancelled),
                static_cast<unsigned long long>(c.finished));
    for (std::size_t i = 0; i < moment_names.size() && round > 0; ++i)
      std::printf(", %zu %s", report.by_moment[i], std::string(moment_names[i]).c_str());
    std::printf("\n");
  }
  stop(server);
}

}  // namespace

int main() {
  throughput(1000, 200);
  memory(200, 1000);
  hang_ups(20, 1000);
}
