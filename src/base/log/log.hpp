#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

/// Structured logging: an event is a constant message and named values. Callers never wait for the terminal or the
/// disk:
/// lines go into a bounded queue that one writer thread empties. When it is full or memory is short, lines are dropped
/// and counted, so logging never throws. Never log secrets; log prompt text only if log.prompts is set.
namespace skein::log {

enum class level : std::uint8_t { debug, info, warning, error, off };

/// text: short lines for a terminal (colour when stderr is one); json: one object a line;
/// systemd: fields to the journal, or lines with "<N>" and no time if stderr is not the journal; automatic: chosen from
/// stderr and $JOURNAL_STREAM.
enum class format : std::uint8_t { automatic, text, json, systemd };

/// One named value of an event.
struct field {
  using value_type = std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool>;
  std::string_view name;
  value_type value;

  field(std::string_view n, std::string_view v) : name(n), value(v) {}
  field(std::string_view n, const char* v) : name(n), value(std::string_view(v)) {}
  field(std::string_view n, const std::string& v) : name(n), value(std::string_view(v)) {}
  field(std::string_view n, bool v) : name(n), value(v) {}
  field(std::string_view n, double v) : name(n), value(v) {}
  field(std::string_view n, std::int32_t v) : name(n), value(static_cast<std::int64_t>(v)) {}
  field(std::string_view n, std::uint32_t v) : name(n), value(static_cast<std::uint64_t>(v)) {}
  field(std::string_view n, std::int64_t v) : name(n), value(v) {}
  field(std::string_view n, std::uint64_t v) : name(n), value(v) {}
};

struct options {
  level minimum = level::info;
  format shape = format::automatic;
  int fd = 2;
  std::uint32_t queue_max_lines = 8192;
};

/// Starts the writer; call once from main before threads start. Without it, lines go straight to stderr (tests, tools).
void start(const options& how);
/// Changes the lowest level that is logged. Thread safe.
void set_minimum(level minimum);
/// Writes the queued lines and stops the writer. After that, lines go straight to stderr again, with the same minimum.
/// Does nothing if the writer was not started.
void stop();

[[nodiscard]] bool enabled(level l);
[[nodiscard]] std::uint64_t dropped_lines();

void write(level l, std::string_view message, std::initializer_list<field> fields);

inline void debug(std::string_view m, std::initializer_list<field> f = {}) { write(level::debug, m, f); }
inline void info(std::string_view m, std::initializer_list<field> f = {}) { write(level::info, m, f); }
inline void warning(std::string_view m, std::initializer_list<field> f = {}) { write(level::warning, m, f); }
inline void error(std::string_view m, std::initializer_list<field> f = {}) { write(level::error, m, f); }

}  // namespace skein::log
