#pragma once
#include <string>
#include <string_view>

#include "base/log_format.hpp"

namespace skein::log {

/// The event as the journal of systemd takes it: a text for people, its priority, the MESSAGE_ID of its kind, and a field
/// SKEIN_NAME for each value, so that `journalctl SKEIN_REQUEST_ID=...` finds it.
[[nodiscard]] std::string to_journal_entry(const event& what);

/// The journal's socket, by which entries keep their fields; its own protocol, since that is a few lines.
class journal {
 public:
  static constexpr const char* standard_path = "/run/systemd/journal/socket";

  journal() = default;
  ~journal();
  journal(const journal&) = delete;  // one owner of the descriptor
  journal& operator=(const journal&) = delete;

  /// False where nobody listens.
  [[nodiscard]] bool open(const char* path);
  /// Waits while the journal is busy; false when the entry is lost.
  [[nodiscard]] bool send(std::string_view entry);

 private:
  int fd_ = -1;
};

}  // namespace skein::log
