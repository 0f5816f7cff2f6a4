#include "actors/supervisor/process/service_manager.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "actors/supervisor/process/environment.hpp"
#include "base/log/log.hpp"

namespace skein::supervisor {
namespace {

std::optional<std::chrono::microseconds> watchdog_of_environment() {
  const auto time = number<std::uint64_t>(environment("WATCHDOG_USEC"));
  if (!time || *time == 0) return std::nullopt;
  const std::string_view whose = environment("WATCHDOG_PID");
  if (!whose.empty() && number<std::uint64_t>(whose) != static_cast<std::uint64_t>(::getpid())) return std::nullopt;
  return std::chrono::microseconds(*time);
}

/// The bytes of the socket's address; empty if `name` is not an address.
std::string address_bytes(std::string_view name) {
  sockaddr_un address{};
  if (name.size() < 2 || name.size() >= sizeof(address.sun_path) || (name[0] != '/' && name[0] != '@')) return {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  const bool is_abstract = name[0] == '@';
  if (is_abstract) address.sun_path[0] = 0;
  const std::size_t size = offsetof(sockaddr_un, sun_path) + name.size() + (is_abstract ? 0 : 1);
  return {reinterpret_cast<const char*>(&address), size};
}

}  // namespace

service_manager::service_manager(std::string_view address, std::optional<std::chrono::microseconds> watchdog)
    : address_(address_bytes(address)), watchdog_(watchdog) {
  if (address.empty()) return;
  if (!address_.empty()) fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) log::warning("the service manager cannot be notified", {{"NOTIFY_SOCKET", address}});
}

service_manager service_manager::from_environment() {
  return {environment("NOTIFY_SOCKET"), watchdog_of_environment()};
}

service_manager::~service_manager() {
  if (fd_ >= 0) ::close(fd_);
}

service_manager::service_manager(service_manager&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      address_(std::move(other.address_)),
      watchdog_(other.watchdog_),
      last_status_(std::move(other.last_status_)) {}

void service_manager::status(std::string_view line) {
  if (!is_there() || line == last_status_) return;
  last_status_ = line;
  send("STATUS=" + last_status_);
}

void service_manager::reloading() const {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t us = std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
  send("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(us));
}

void service_manager::extend(std::chrono::microseconds time) {
  if (is_there()) send("EXTEND_TIMEOUT_USEC=" + std::to_string(time.count()));
}

void service_manager::send(std::string_view message) const {
  if (!is_there()) return;
  ::sendto(fd_, message.data(), message.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(address_.data()),
           static_cast<socklen_t>(address_.size()));
}

}  // namespace skein::supervisor
