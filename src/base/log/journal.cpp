#include "base/log/journal.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/log/message_names.hpp"
#include "base/sha256.hpp"

namespace skein::log {
namespace {

constexpr timeval patience{1, 0};  // for a journal that accepts no data

void append_field(std::string& entry, std::string_view name, std::string_view value) {
  entry += name;
  if (value.find('\n') == std::string_view::npos) {
    entry.append("=").append(value);
  } else {  // binary form: the value's length as a little-endian u64, then the value
    entry += '\n';
    for (std::uint64_t size = value.size(), byte = 0; byte < 8; ++byte, size >>= 8)
      entry += static_cast<char>(size & 0xff);
    entry += value;
  }
  entry += '\n';
}

/// Names of journal fields may contain only upper-case letters, digits and underscores.
std::string field_name(std::string_view name) {
  std::string out = "SKEIN_";
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    out += std::isalnum(letter) ? static_cast<char>(std::toupper(letter)) : '_';
  }
  return out;
}

/// Depends on the message alone, so it is the same in every build: messages are constants, and variable data is in the
/// fields.
std::string message_id(std::string_view message) {
  const std::string named = "skein: " + std::string(first_wording(message));
  const auto digest = sha256(std::span(reinterpret_cast<const std::uint8_t*>(named.data()), named.size()));
  return to_hex(digest).substr(0, 32);
}

}  // namespace

std::string to_journal_entry(const event& what) {
  // "<4>message key=value": the same text as for a pipe.
  std::string line = to_line(what, {format::systemd, false, false});
  line.pop_back();
  std::string entry;
  append_field(entry, "MESSAGE", std::string_view(line).substr(3));
  append_field(entry, "PRIORITY", std::string_view(line).substr(1, 1));
  append_field(entry, "SYSLOG_IDENTIFIER", "skein");
  append_field(entry, "MESSAGE_ID", message_id(what.message));
  for (const field& f : what.fields) append_field(entry, field_name(f.name), bare_text(f.value));
  return entry;
}

journal::~journal() {
  if (fd_ >= 0) ::close(fd_);
}

bool journal::open(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (std::strlen(path) >= sizeof(address.sun_path)) return false;
  std::strcpy(address.sun_path, path);
  if (fd_ < 0) fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  return fd_ >= 0 && ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

bool journal::send(std::string_view entry) {
  for (;;) {
    const ssize_t sent = ::send(fd_, entry.data(), entry.size(), MSG_NOSIGNAL);
    if (sent >= 0) return true;
    if (errno != EINTR) return false;
  }
}

}  // namespace skein::log
