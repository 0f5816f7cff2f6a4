// What a service manager is told, and the sockets that it hands over: real sockets on both ends.
#include "actors/supervisor/process/service_manager.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "actors/supervisor/process/inherited_sockets.hpp"
#include "tests/support/oracle.hpp"

namespace skein::test {
namespace {

using supervisor::inherited_sockets;
using supervisor::service_manager;

/// The receiving end of a service manager's notifications.
class notify_socket {
 public:
  /// "@..." is abstract.
  explicit notify_socket(const std::string& name) : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    const bool is_abstract = name[0] == '@';
    if (is_abstract) address.sun_path[0] = 0;
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + (is_abstract ? 0 : 1));
    BOOST_REQUIRE(::bind(fd_, reinterpret_cast<sockaddr*>(&address), size) == 0);
  }
  ~notify_socket() { ::close(fd_); }
  notify_socket(const notify_socket&) = delete;  // owns a socket
  notify_socket& operator=(const notify_socket&) = delete;

  std::vector<std::string> read() {
    std::vector<std::string> messages;
    char bytes[512];
    for (ssize_t size = 0; (size = ::recv(fd_, bytes, sizeof bytes, 0)) >= 0;) messages.emplace_back(bytes, size);
    return messages;
  }

 private:
  int fd_;
};

using lines = std::vector<std::string>;

void check_told(const std::string& address) {
  notify_socket hears(address);
  service_manager manager(address, std::nullopt);
  BOOST_TEST(manager.is_there());
  manager.status("loading");
  manager.status("loading");
  manager.extend(std::chrono::seconds(10));
  manager.ready();
  manager.alive();
  manager.status("3 running");
  manager.stopping();
  const lines expected{"STATUS=loading", "EXTEND_TIMEOUT_USEC=10000000", "READY=1", "WATCHDOG=1", "STATUS=3 running",
                       "STOPPING=1"};
  BOOST_TEST(hears.read() == expected, boost::test_tools::per_element());
}

int listening() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  BOOST_REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  BOOST_REQUIRE(::listen(fd, 1) == 0);
  return fd;
}

/// Puts a socket in the place of descriptor `at`, and what was there back.
class in_place {
 public:
  in_place(int fd, int at) : at_(at) {
    const int out_of_the_way = ::fcntl(fd, F_DUPFD_CLOEXEC, 100);  // it may be `at` itself
    ::close(fd);
    before_ = ::fcntl(at, F_DUPFD_CLOEXEC, 100);
    BOOST_REQUIRE(::dup2(out_of_the_way, at) == at);
    ::close(out_of_the_way);
  }
  ~in_place() {
    ::close(at_);
    if (before_ < 0) return;
    ::dup2(before_, at_);
    ::close(before_);
  }
  in_place(const in_place&) = delete;  // restores once
  in_place& operator=(const in_place&) = delete;

 private:
  int at_, before_ = -1;
};

std::string own_pid() { return std::to_string(::getpid()); }

}  // namespace

BOOST_AUTO_TEST_SUITE(service_manager_)

BOOST_AUTO_TEST_CASE(a_manager_is_told_in_order_and_no_status_twice) {
  const temporary_folder folder;
  check_told((folder.path() / "notify").string());
  check_told("@skein-test-" + own_pid());
}

BOOST_AUTO_TEST_CASE(without_a_service_manager_nothing_fails) {
  service_manager nobody("", std::nullopt);
  BOOST_TEST(!nobody.is_there());
  nobody.ready();
  for (const std::string address : {"relative", "@", "/nowhere/at/all"}) {
    service_manager deaf(address, std::nullopt);
    deaf.ready();
    deaf.status("text");
  }
  service_manager too_long('/' + std::string(200, 'x'), std::nullopt);
  BOOST_TEST(!too_long.is_there());
}

BOOST_AUTO_TEST_CASE(the_environment_says_who_watches) {
  const auto watchdog = [](const char* time, const std::string& pid) {
    ::setenv("WATCHDOG_USEC", time, 1);
    ::setenv("WATCHDOG_PID", pid.c_str(), 1);
    const auto found = service_manager::from_environment().watchdog();
    ::unsetenv("WATCHDOG_USEC");
    ::unsetenv("WATCHDOG_PID");
    return found ? found->count() : -1;
  };
  BOOST_TEST(watchdog("30000000", own_pid()) == 30'000'000);
  BOOST_TEST(watchdog("30000000", "") == 30'000'000);
  BOOST_TEST(watchdog("30000000", "1") == -1);
  BOOST_TEST(watchdog("0", own_pid()) == -1);
  BOOST_TEST(watchdog("soon", own_pid()) == -1);
}

BOOST_AUTO_TEST_CASE(sockets_are_taken_over_with_their_names) {
  const in_place third(listening(), 3), fourth(listening(), 4);
  const auto found = inherited_sockets(own_pid(), "2", "http:admin");
  BOOST_REQUIRE(found);
  BOOST_REQUIRE(found->size() == 2);
  BOOST_TEST((*found)[0].fd == 3);
  BOOST_TEST((*found)[0].name == "http");
  BOOST_TEST((*found)[1].name == "admin");
  BOOST_TEST((::fcntl(3, F_GETFD) & FD_CLOEXEC) == FD_CLOEXEC);
  const auto unnamed = inherited_sockets(own_pid(), "2", "");
  BOOST_REQUIRE(unnamed);
  BOOST_TEST((*unnamed)[1].name.empty());
}

BOOST_AUTO_TEST_CASE(what_is_for_others_is_left_alone_and_what_is_no_socket_refused) {
  BOOST_TEST(inherited_sockets("", "", "")->empty());
  BOOST_TEST(inherited_sockets("1", "2", "")->empty());
  BOOST_TEST(inherited_sockets("1", "two", "")->empty());
  BOOST_TEST(inherited_sockets(own_pid(), "0", "")->empty());
  for (const char* count : {"two", "-1", "99999999999"}) {
    const auto refused = inherited_sockets(own_pid(), count, "");
    BOOST_REQUIRE(!refused);
    BOOST_TEST(refused.error().field == "LISTEN_FDS");
  }
  BOOST_REQUIRE(!inherited_sockets("me", "1", ""));
  const in_place no_socket(::open("/dev/null", O_RDONLY), 3);
  const auto refused = inherited_sockets(own_pid(), "1", "");
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().message.find("descriptor 3") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::test
