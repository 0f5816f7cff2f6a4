#include "actors/supervisor/process/inherited_sockets.hpp"

#include "actors/supervisor/process/environment.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <optional>

namespace skein::supervisor {
namespace {

constexpr int first_fd = 3;  // SD_LISTEN_FDS_START

error no_number(const char* variable, std::string_view value) {
  return {error_kind::invalid_argument, std::string(variable) + ": '" + std::string(value) + "' is not a number",
          variable};
}

int option(int fd, int name) {
  int value = -1;
  socklen_t size = sizeof(value);
  return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

}  // namespace

result<std::vector<inherited_socket>> inherited_sockets(std::string_view listen_pid, std::string_view listen_fds,
                                                        std::string_view names) {
  std::vector<inherited_socket> found;
  if (listen_fds.empty() || listen_pid.empty()) return found;
  const auto pid = number<int>(listen_pid), count = number<int>(listen_fds);
  if (!pid) return no_number("LISTEN_PID", listen_pid);
  if (*pid != ::getpid()) return found;  // meant for another process
  if (!count) return no_number("LISTEN_FDS", listen_fds);
  for (int fd = first_fd; fd - first_fd < *count; ++fd) {
    if (option(fd, SO_TYPE) != SOCK_STREAM || option(fd, SO_ACCEPTCONN) != 1)
      return error{error_kind::invalid_argument,
                   "LISTEN_FDS: descriptor " + std::to_string(fd) + " is not a listening stream socket", "LISTEN_FDS"};
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    const std::size_t colon = names.find(':');
    found.push_back({fd, std::string(names.substr(0, colon))});
    names = colon == std::string_view::npos ? std::string_view() : names.substr(colon + 1);
  }
  return found;
}

result<std::vector<inherited_socket>> inherited_sockets() {
  return inherited_sockets(environment("LISTEN_PID"), environment("LISTEN_FDS"), environment("LISTEN_FDNAMES"));
}

}  // namespace skein::supervisor
