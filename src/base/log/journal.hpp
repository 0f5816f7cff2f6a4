#pragma once
#include <string>
#include <string_view>

#include "base/log/log_format.hpp"

namespace skein::log {

/// The event in the native format of the systemd journal: a text for people, its priority, the MESSAGE_ID of its kind,
/// and a field SKEIN_NAME for each value, so that `journalctl SKEIN_REQUEST_ID=...` finds it.
[[nodiscard]] std::string to_journal_entry(const event& what);

/// The journal's native socket, which preserves the fields of entries. Implemented here because the protocol needs only
/// a few lines.
class journal {
 public:
  static constexpr const char* standard_path = "/run/systemd/journal/socket";

  journal() = default;
  ~journal();
  journal(const journal&) = delete;  // one owner of the descriptor
  journal& operator=(const journal&) = delete;

  /// False if no process listens on the socket.
  [[nodiscard]] bool open(const char* path);
  /// Waits while the journal is busy; false if the entry is lost.
  [[nodiscard]] bool send(std::string_view entry);

 private:
  int fd_ = -1;
};

}  // namespace skein::log
