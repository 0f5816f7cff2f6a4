// The server as a service manager sees it: what it is told from start to end, a watchdog that hears nothing of a device
// that hangs, and sockets that are there before the server is.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/server_process.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/oracle.hpp"

namespace skein::test {
namespace {

using namespace std::chrono_literals;

class notify_socket {
 public:
  explicit notify_socket(const std::string& path)
      : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    BOOST_REQUIRE(::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  ~notify_socket() { ::close(fd_); }
  notify_socket(const notify_socket&) = delete;  // owns a socket
  notify_socket& operator=(const notify_socket&) = delete;

  /// All that was said so far.
  const std::vector<std::string>& heard() {
    char bytes[512];
    for (ssize_t size = 0; (size = ::recv(fd_, bytes, sizeof bytes, 0)) >= 0;)
      heard_.emplace_back(bytes, static_cast<std::size_t>(size));
    return heard_;
  }
  [[nodiscard]] std::ptrdiff_t count(const std::string& message) { return std::ranges::count(heard(), message); }
  /// Its place, or the end.
  [[nodiscard]] std::ptrdiff_t place(const std::string& message) {
    const auto& all = heard();
    return std::ranges::find(all, message) - all.begin();
  }
  void wait_for(const std::string& message, std::ptrdiff_t times = 1) {
    for (int i = 0; i < 6000 && count(message) < times; ++i) std::this_thread::sleep_for(10ms);
    BOOST_REQUIRE_MESSAGE(count(message) >= times, "never heard: " << message);
  }

 private:
  int fd_;
  std::vector<std::string> heard_;
};

/// Variables that programs which are started meanwhile find.
class told_to_children {
 public:
  explicit told_to_children(std::vector<std::pair<const char*, std::string>> variables)
      : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) ::setenv(name, value.c_str(), 1);
  }
  ~told_to_children() {
    for (const auto& variable : variables_) ::unsetenv(variable.first);
  }
  told_to_children(const told_to_children&) = delete;  // unsets once
  told_to_children& operator=(const told_to_children&) = delete;

 private:
  std::vector<std::pair<const char*, std::string>> variables_;
};

const std::vector<std::string> fake{"--device", "fake", "--log-format", "json", "--set", "drain.grace_ms=0"};

}  // namespace

BOOST_AUTO_TEST_SUITE(service)

BOOST_AUTO_TEST_CASE(the_manager_is_told_in_order) {
  const temporary_folder folder;
  const std::string path = (folder.path() / "notify").string();
  notify_socket manager(path);
  const told_to_children asks({{"NOTIFY_SOCKET", path}, {"WATCHDOG_USEC", "400000"}});
  server_process server(SKEIN_PROGRAM, fake);
  manager.wait_for("WATCHDOG=1", 3);
  manager.wait_for("STATUS=0 running, 0 waiting");
  server.signal(SIGTERM);
  BOOST_TEST(server.wait_for_exit() == 0);
  const auto ready = manager.place("READY=1");
  BOOST_TEST(manager.count("READY=1") == 1);
  BOOST_TEST(manager.heard().front().starts_with("STATUS=loading"));
  BOOST_TEST(manager.place("WATCHDOG=1") > ready);
  BOOST_TEST(manager.place("EXTEND_TIMEOUT_USEC=30000000") < ready);
  BOOST_TEST(manager.count("STOPPING=1") == 1);
  BOOST_TEST(manager.place("STOPPING=1") > manager.place("WATCHDOG=1"));
  BOOST_TEST(manager.count("STATUS=draining") == 1);
}

BOOST_AUTO_TEST_CASE(a_device_that_hangs_is_not_called_alive) {
  const temporary_folder folder;
  const std::string path = (folder.path() / "notify").string();
  notify_socket manager(path);
  const told_to_children asks({{"NOTIFY_SOCKET", path}, {"WATCHDOG_USEC", "400000"}});
  auto arguments = fake;
  for (const char* more : {"--set", "engine.fake_tick_us=10000000", "--set", "server.stall_ms=300"})
    arguments.emplace_back(more);
  server_process server(SKEIN_PROGRAM, arguments);
  manager.wait_for("WATCHDOG=1");
  http_client client(server.port());
  client.request("POST", "/v1/completions", R"({"prompt":"x","max_tokens":5,"stream":true})");
  manager.wait_for("STATUS=1 running, 0 waiting");
  std::this_thread::sleep_for(500ms);  // now it has hung for longer than stall_ms, whatever the machine does
  const auto before = manager.count("WATCHDOG=1");
  std::this_thread::sleep_for(1s);
  BOOST_TEST(manager.count("WATCHDOG=1") == before);
}

BOOST_AUTO_TEST_CASE(a_reload_is_reported_to_the_manager) {
  const temporary_folder folder;
  const std::string place = (folder.path() / "notify").string();
  notify_socket manager(place);
  const told_to_children told({{"NOTIFY_SOCKET", place}});
  server_process server(SKEIN_PROGRAM, fake);
  manager.wait_for("READY=1");
  server.signal(SIGHUP);
  manager.wait_for("READY=1", 2);
  const auto& all = manager.heard();
  const auto reloading =
      std::ranges::find_if(all, [](const std::string& m) { return m.starts_with("RELOADING=1\nMONOTONIC_USEC="); });
  BOOST_REQUIRE(reloading != all.end());
  BOOST_TEST(std::count(reloading, all.end(), "READY=1") == 1);
  BOOST_TEST(std::count(all.begin(), reloading, "READY=1") == 1);
  server.signal(SIGTERM);
  BOOST_TEST(server.wait_for_exit() == 0);
}

/// A socket that listens before any server does, and a program that takes it over as a service manager has it done: it
/// is number 3 there, and LISTEN_PID is the process. A shell sees to both.
class open_door {
 public:
  explicit open_door(const std::filesystem::path& folder)
      : fd_(::socket(AF_INET, SOCK_STREAM, 0)), program_((folder / "activate").string()) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    BOOST_REQUIRE(::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    BOOST_REQUIRE(::listen(fd_, 128) == 0);
    socklen_t size = sizeof address;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    std::ofstream(program_) << "#!/bin/sh\nexport LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=http\nexec "
                            << SKEIN_PROGRAM << " \"$@\" 3<&" << fd_ << '\n';
    ::chmod(program_.c_str(), 0700);
  }
  ~open_door() { ::close(fd_); }
  open_door(const open_door&) = delete;  // owns a socket
  open_door& operator=(const open_door&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] const std::string& program() const { return program_; }

 private:
  int fd_;
  std::string program_;
  std::uint16_t port_ = 0;
};

/// They wait while the model loads, which here takes until a pipe has been written.
BOOST_AUTO_TEST_CASE(clients_that_come_before_the_server_are_served) {
  const temporary_folder folder;
  const open_door door(folder.path());
  const std::string vocabulary = folder.path() / "vocabulary";
  BOOST_REQUIRE(::mkfifo(vocabulary.c_str(), 0600) == 0);
  std::thread writer([&] {
    std::ofstream pipe(vocabulary);  // waits for the server to read
    std::this_thread::sleep_for(300ms);
    for (int byte = 0; byte < 256; ++byte) {
      char line[32];
      std::snprintf(line, sizeof line, "%d b'\\x%02x' 1\n", byte + 1, static_cast<unsigned>(byte));
      pipe << line;
    }
  });
  http_client early(door.port());
  early.request("GET", "/v1/models");
  auto slow = fake;
  slow.insert(slow.end(), {"--vocab", vocabulary});
  server_process server(door.program(), slow);
  writer.join();
  BOOST_TEST(server.port() == door.port());
  const auto answer = early.read_response();
  BOOST_REQUIRE(answer);
  BOOST_TEST(answer->status == 200);
  BOOST_TEST(server.counters().running == 0u);
  server.signal(SIGTERM);
  BOOST_TEST(server.wait_for_exit() == 0);
}

/// Each client connects for each request. While the server ends, an answer may be a refusal with a time to retry, or be
/// missing if the connection had just been accepted: then the client asks again. The system refuses no client, and at
/// the end all were served.
BOOST_AUTO_TEST_CASE(clients_are_served_over_restarts_behind_an_open_door) {
  constexpr int clients = 4, restarts = 3;
  const temporary_folder folder;
  const open_door door(folder.path());
  std::atomic<int> served{0}, refused{0}, wrong{0};
  std::atomic<bool> enough{false};
  std::vector<std::thread> crowd;
  const auto life = [&] { return std::make_unique<server_process>(door.program(), fake); };
  auto server = life();
  for (int i = 0; i < clients; ++i)
    crowd.emplace_back([&] {
      while (!enough) {
        try {
          http_client client(door.port());
          client.request("POST", "/v1/completions", R"({"prompt": "abc", "max_tokens": 3, "ignore_eos": true})",
                         "Connection: close\r\n");
          const auto answer = client.read_response();
          if (answer && answer->status == 200)
            ++served;
          else if (!answer || answer->status == 503)
            ++refused;
          else
            ++wrong;
        } catch (const std::exception&) {
          ++wrong;  // no listener
        }
      }
    });
  for (int i = 0; i < restarts; ++i) {
    const int before = served;
    for (int waited = 0; waited < 6000 && served < before + 2 * clients; ++waited) std::this_thread::sleep_for(10ms);
    BOOST_TEST(served >= before + 2 * clients);
    server->signal(SIGTERM);
    BOOST_TEST(server->wait_for_exit() == 0);
    server = life();
  }
  const int before = served;
  for (int waited = 0; waited < 6000 && served < before + 2 * clients; ++waited) std::this_thread::sleep_for(10ms);
  enough = true;
  for (auto& each : crowd) each.join();
  BOOST_TEST(served >= before + 2 * clients);
  BOOST_TEST(wrong == 0);
  server->signal(SIGTERM);
  BOOST_TEST(server->wait_for_exit() == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::test
