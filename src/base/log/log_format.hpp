#pragma once
#include <chrono>
#include <span>
#include <string>

#include "base/log/log.hpp"

namespace skein::log {

/// The format of a line, after `automatic` has been resolved.
struct alignas(4) line_style {  // 4 bytes, so that std::atomic is lock-free
  format shape = format::text;  ///< not automatic
  bool colour = false;          ///< text only
  bool journal = false;         ///< systemd only: the descriptor is the journal's, so entries are sent with fields
};

/// One event before formatting.
struct event {
  std::chrono::system_clock::time_point time;
  level severity;
  std::string_view message;
  std::span<const field> fields;
};

/// One line; its only newline is at the end. Strings are cut to 8 KiB, invalid UTF-8 becomes U+FFFD, and control
/// characters are escaped, so that no value can start a line, end a string or send control codes to the terminal.
///   text     12:34:56.789 warning  message key=value key="two words"
///   json     {"ts":"2026-01-31T12:34:56.789Z","level":"warning","msg":"message","key":value}
///   systemd  <4>message key=value key="two words"
[[nodiscard]] std::string to_line(const event& what, const line_style& style);

/// A value without quotes or escapes.
[[nodiscard]] std::string bare_text(const field::value_type& value);

/// The style for a descriptor: `wanted`, or if automatic, chosen from the type of the descriptor. `journal_stream`:
/// $JOURNAL_STREAM, may be null.
[[nodiscard]] line_style choose_style(format wanted, int fd, const char* journal_stream);

}  // namespace skein::log
