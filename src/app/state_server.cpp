#include "app/state_server.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "app/state_reading.hpp"

namespace skein::cli {
namespace {

/// One request and its response over a unix socket, in minimal HTTP.
class exchange {
 public:
  exchange() : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~exchange() {
    if (fd_ >= 0) ::close(fd_);
  }
  exchange(const exchange&) = delete;  // owns a descriptor
  exchange& operator=(const exchange&) = delete;

  [[nodiscard]] bool connect(const std::string& path) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) return false;
    std::memcpy(address.sun_path, path.data(), path.size());
    return fd_ >= 0 && ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  [[nodiscard]] bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  /// Reads until the server closes the connection.
  [[nodiscard]] std::string receive() const {
    std::string all(1 << 16, '\0');
    for (std::size_t size = 0;;) {
      const auto got = ::recv(fd_, all.data() + size, all.size() - size, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        all.resize(size);
        return all;
      }
      size += static_cast<std::size_t>(got);
      if (size == all.size()) all.resize(2 * size);
    }
  }

 private:
  const int fd_;
};

std::string percent_encoded(std::string_view text) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    if (plain)
      out += c;
    else
      ((out += '%') += digits[byte >> 4]) += digits[byte & 15];
  }
  return out;
}

std::string target_of(const state_command& what) {
  std::string target = "/admin/state/" + std::string(name_of(what.action)) + "?tenant=" + percent_encoded(what.tenant);
  const auto add = [&](const char* name, const std::string& value) {
    target += '&' + (name + ('=' + percent_encoded(value)));
  };
  if (!what.id.empty()) add("id", what.id);
  if (!what.new_id.empty()) add("to", what.new_id);
  if (what.version) add("version", std::to_string(*what.version));
  if (what.action == state_action::backup) add("into", what.file.string());
  if (what.replace) add("replace", "true");
  if (!what.with_states) add("states", "false");
  if (what.json) add("json", "true");
  return target;
}

error_kind kind_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(error_kind::internal); ++i)
    if (to_string(static_cast<error_kind>(i)) == name) return static_cast<error_kind>(i);
  return error_kind::internal;
}

/// The body of a complete response; nullopt if it is truncated.
std::optional<std::string_view> body_of(std::string_view response) {
  const auto end = response.find("\r\n\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  constexpr std::string_view field = "\r\nContent-Length: ";
  const auto at = response.substr(0, end).find(field);
  if (at == std::string_view::npos) return std::nullopt;
  std::size_t bytes = 0;
  std::from_chars(response.data() + at + field.size(), response.data() + end, bytes);
  const auto body = response.substr(end + 4);
  return body.size() == bytes ? std::optional(body) : std::nullopt;
}

}  // namespace

std::filesystem::path admin_socket(const std::filesystem::path& state_dir) { return state_dir / "admin.socket"; }

result<void> ask_server(const state_command& what, const std::string& body, std::string& output) {
  const std::string path = (what.admin_socket.empty() ? admin_socket(what.state_dir) : what.admin_socket).string();
  const exchange with_server;
  if (!with_server.connect(path))
    return error{error_kind::conflict,
                 "a server is running on " + what.state_dir.string() + " but does not answer on " + path + " (" +
                     std::strerror(errno) + "); stop it first, or use its HTTP API",
                 {}};
  const bool is_file = what.action == state_action::import_session;
  const std::string head =
      std::string(is_file ? "PUT " : "POST ") + target_of(what) +
      " HTTP/1.1\r\nHost: skein\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  const bool sent = with_server.send(head) && with_server.send(body);
  const std::string response =
      with_server.receive();  // also if the request was not sent completely: the response says why
  const auto told = body_of(response);
  if (!told)
    return error{
        error_kind::io,
        sent ? "the server closed the connection before the end of its response" : "the server closed the connection",
        {}};
  if (!response.starts_with("HTTP/1.1 200 "))
    return error{error_kind::unavailable, "the server returned: " + std::string(*told), {}};
  // The first line is the outcome; the rest is printed.
  const auto line = told->substr(0, told->find('\n'));
  output = told->substr(std::min(line.size() + 1, told->size()));
  if (line == "ok") return {};
  const auto gap = line.find(' ');
  return error{kind_named(line.substr(0, gap)), std::string(line.substr(std::min(gap, line.size() - 1) + 1)), {}};
}

}  // namespace skein::cli
