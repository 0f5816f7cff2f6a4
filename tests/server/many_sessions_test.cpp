// Thousands of sessions on disk, with the demo model on the CPU: they are listed page by page, and any of them goes on
// after a restart, within the memory that the settings allow. 2,000 sessions; with the argument "full", 20,000.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/sanitizer.hpp"
#include "tests/server/server_process.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/random_cases.hpp"

using namespace skein::test;
namespace utf = boost::unit_test;

namespace {

constexpr std::size_t mib = 1u << 20;
constexpr std::size_t clients = 4;
// What the settings below let the server hold of sessions, beside the model.
constexpr std::size_t ram_states = 48 * mib, dirty_states = 64 * mib, ram_prefixes = 16 * mib, trees = 8 * mib;

std::size_t session_count() {
  const auto& suite = utf::framework::master_test_suite();
  return suite.argc > 1 && std::string_view(suite.argv[1]) == "full" ? 20'000 : 2'000;
}

std::string name_of(std::size_t i) {
  std::string digits = std::to_string(i);
  return "session-" + std::string(5 - digits.size(), '0') + digits;
}

std::vector<std::string> settings(const std::string& directory) {
  std::vector<std::string> all{"--device", "cpu", "--state-dir", directory};
  for (const char* const one :
       {"engine.slots=8", "drain.grace_ms=0", "engine.vram_states_max=4", "sessions.disk_bytes_max=68719476736"})
    all.insert(all.end(), {"--set", one});
  all.insert(all.end(), {"--set", "sessions.ram_bytes_max=" + std::to_string(ram_states)});
  all.insert(all.end(), {"--set", "sessions.dirty_bytes_max=" + std::to_string(dirty_states)});
  all.insert(all.end(), {"--set", "prefix_cache.ram_bytes_max=" + std::to_string(ram_prefixes)});
  all.insert(all.end(), {"--set", "sessions.tree_bytes_max=" + std::to_string(trees)});
  return all;
}

/// One short turn in a session; the whole answer.
http_response turn(std::uint16_t port, const std::string& session, const std::string& says) {
  http_client client(port);
  client.request("POST", "/state/chat/completions",
                 R"({"session_id":")" + session + R"(","contents":["User: )" + says +
                     R"(\n\nAssistant:"],"max_tokens":2,"temperature":0,"stop_tokens":[]})",
                 "Connection: close\r\n");
  const auto response = client.read_response();
  if (!response) throw std::runtime_error("no answer in " + session);
  return *response;
}

std::uint64_t number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  std::uint64_t value = 0;
  if (at != std::string_view::npos) std::from_chars(text.data() + at + key.size(), text.data() + text.size(), value);
  return value;
}

/// All ids of the list, page by page.
std::vector<std::string> listed(std::uint16_t port) {
  std::vector<std::string> ids;
  http_client client(port);
  for (;;) {
    client.request("GET", "/v1/sessions?limit=100" + (ids.empty() ? "" : "&after=" + ids.back()));
    const auto page = client.read_response();
    if (!page || page->status != 200) throw std::runtime_error("no page after " + (ids.empty() ? "" : ids.back()));
    constexpr std::string_view key = R"({"id":")";
    for (std::size_t at = page->body.find(key); at != std::string::npos; at = page->body.find(key, at + 1)) {
      const std::size_t from = at + key.size();
      ids.push_back(page->body.substr(from, page->body.find('"', from) - from));
    }
    if (page->body.find(R"("has_more":true)") == std::string::npos) return ids;
  }
}

std::uintmax_t bytes_in(const std::string& directory) {
  std::uintmax_t bytes = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(directory))
    if (file.is_regular_file()) bytes += file.file_size();
  return bytes;
}

void stop(server_process& server) {
  server.signal(SIGTERM);
  BOOST_TEST(server.wait_for_exit() == 0);
}

}  // namespace

BOOST_AUTO_TEST_CASE(thousands_of_sessions_on_disk_can_all_be_continued) {
  const std::size_t sessions = session_count();
  const temporary_folder directory;
  std::size_t before = 0, after = 0;
  {
    server_process server(SKEIN_PROGRAM, settings(directory.path().string()));
    turn(server.port(), "warm-up", "hello");
    before = server.resident_bytes();
    std::vector<std::thread> threads;
    std::vector<std::string> trouble(clients);
    for (std::size_t c = 0; c < clients; ++c)
      threads.emplace_back([&, c] {
        for (std::size_t i = c; i < sessions && trouble[c].empty(); i += clients) {
          const http_response r = turn(server.port(), name_of(i), "I am number " + std::to_string(i));
          if (r.status != 200 || r.body.find(R"("durable":"process")") == std::string::npos) trouble[c] = r.body;
        }
      });
    for (auto& t : threads) t.join();
    for (const auto& t : trouble) BOOST_REQUIRE_EQUAL(t, "");
    after = server.resident_bytes();
    stop(server);
  }

  server_process server(SKEIN_PROGRAM, settings(directory.path().string()));
  const std::vector<std::string> ids = listed(server.port());
  BOOST_TEST(ids.size() == sessions + 1);
  BOOST_TEST(std::ranges::is_sorted(ids));
  BOOST_TEST(std::set(ids.begin(), ids.end()).size() == ids.size());

  random_cases random;
  std::uint64_t state_bytes = 0;
  for (int i = 0; i < 50; ++i) {
    const std::string session = name_of(random.below(static_cast<std::uint32_t>(sessions)));
    http_client client(server.port());
    client.request("GET", "/v1/sessions/" + session, "", "Connection: close\r\n");
    const auto info = client.read_response();
    BOOST_REQUIRE(info.has_value());
    // Where the disk is too slow for who writes, there are sessions whose state is made again.
    state_bytes = std::max(state_bytes, number_after(info->body, R"("state_bytes":)"));
    const http_response r = turn(server.port(), session, "and I come again");
    BOOST_TEST(r.status == 200u);
    BOOST_TEST(r.header("x-session-state") == "continued");
  }
  const std::size_t at_end = server.resident_bytes();
  stop(server);

  const std::uintmax_t on_disk = bytes_in(directory.path().string());
  BOOST_TEST_MESSAGE(sessions << " sessions of " << state_bytes << " bytes of state: " << on_disk / mib
                              << " MiB on disk; resident " << before / mib << " MiB at first, " << after / mib
                              << " MiB with all written, " << at_end / mib << " MiB after the restart");
  BOOST_TEST(state_bytes > 0u);
  BOOST_TEST(on_disk < 2 * sessions * state_bytes);
#if !defined(SKEIN_ADDRESS_SANITIZER) && !defined(SKEIN_THREAD_SANITIZER)
  // Beside what the settings name, RocksDB has its write buffers, as much again where the disk is slow, and its cache.
  constexpr std::size_t database = (64 + 64 + 32) * mib;
  constexpr std::size_t allowed = ram_states + dirty_states + ram_prefixes + trees + database;
  BOOST_TEST(after < (before + allowed) * 11 / 10);
  BOOST_TEST(at_end < (before + allowed) * 11 / 10);
#endif
}
