#pragma once
#include <chrono>
#include <span>
#include <string>

#include "base/log.hpp"

namespace skein::log {

/// How a line looks, once `automatic` has been decided.
struct alignas(4) line_style {  // of a size that is read and written at once
  format shape = format::text;  ///< not automatic
  bool colour = false;          ///< text only
  bool journal = false;         ///< systemd only: the descriptor is the journal's, which also takes fields
};

/// One event before it becomes a line.
struct event {
  std::chrono::system_clock::time_point time;
  level severity;
  std::string_view message;
  std::span<const field> fields;
};

/// One line with its newline at the end and none before. Strings are cut to 8 KiB; invalid UTF-8 becomes U+FFFD and
/// control characters are escaped, so that no value can start a line, end a string or reach the terminal.
///   text     12:34:56.789 warning  message key=value key="two words"
///   json     {"ts":"2026-01-31T12:34:56.789Z","level":"warning","msg":"message","key":value}
///   systemd  <4>message key=value key="two words"
[[nodiscard]] std::string to_line(const event& what, const line_style& style);

/// A value as it is, without quotes or escapes.
[[nodiscard]] std::string bare_text(const field::value_type& value);

/// The style for a descriptor: what was asked for, or by its nature. `journal_stream`: $JOURNAL_STREAM, may be null.
[[nodiscard]] line_style choose_style(format wanted, int fd, const char* journal_stream);

}  // namespace skein::log
