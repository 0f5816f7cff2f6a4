#include "base/log/log_format.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "base/log/control_character.hpp"
#include "base/utf8.hpp"

namespace skein::log {
namespace {

constexpr std::size_t string_bytes_max = 8192;

struct level_words {
  std::string_view name;
  std::string_view colour;
  char priority;  // syslog(3) priority
};

const level_words& words_of(level severity) {
  static constexpr std::array<level_words, 4> all{{
      {"debug", "\x1b[2m", '7'},
      {"info", "\x1b[32m", '6'},
      {"warning", "\x1b[33m", '4'},
      {"error", "\x1b[31m", '3'},
  }};
  return all[std::min<std::size_t>(static_cast<std::size_t>(severity), all.size() - 1)];
}

void append_control(std::string& out, unsigned code) {
  switch (code) {
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  std::array<char, 8> escape;
  std::snprintf(escape.data(), escape.size(), "\\u%04x", code);
  out += escape.data();
}

// Appends `text` escaped for a JSON string; unless `quoted`, quotes and backslashes are not escaped.
void append_escaped(std::string& out, std::string_view text, bool quoted) {
  const bool cut = text.size() > string_bytes_max;
  std::string_view rest = text.substr(0, string_bytes_max);
  while (!rest.empty()) {
    const utf8_head head = first_character(rest);
    const std::string_view sequence = rest.substr(0, head.bytes);
    rest.remove_prefix(sequence.size());
    if (!head.is_character()) {
      out += "\xef\xbf\xbd";
    } else if (const auto control = control_character(sequence)) {
      append_control(out, *control);
    } else {
      if (quoted && (sequence[0] == '"' || sequence[0] == '\\')) out += '\\';
      out += sequence;
    }
  }
  if (cut) out += "\xe2\x80\xa6";
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  append_escaped(out, text, true);
  out += '"';
}

void append_bare_or_quoted(std::string& out, std::string_view text) {
  const bool bare = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < 0x7f && c != '"' && c != '\\' && c != '=';
  });
  if (bare && text.size() <= string_bytes_max)
    out += text;
  else
    append_quoted(out, text);
}

template <typename Number>
void append_number(std::string& out, Number number) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

void append_value(std::string& out, const field::value_type& value, bool json) {
  const auto append = [&](auto v) {
    using type = decltype(v);
    if constexpr (std::is_same_v<type, std::string_view>) {
      json ? append_quoted(out, v) : append_bare_or_quoted(out, v);
    } else if constexpr (std::is_same_v<type, bool>) {
      out += v ? "true" : "false";
    } else if constexpr (std::is_same_v<type, double>) {
      if (json && !std::isfinite(v))
        out += "null";  // JSON has no NaN or infinity
      else
        append_number(out, v);
    } else {
      append_number(out, v);
    }
  };
  std::visit(append, value);
}

void append_pairs(std::string& out, std::span<const field> fields) {
  for (const field& f : fields) {
    out += ' ';
    append_escaped(out, f.name, false);
    out += '=';
    append_value(out, f.value, false);
  }
}

int milliseconds_of(std::chrono::system_clock::time_point time) {
  const auto since_epoch = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch());
  return static_cast<int>((since_epoch - std::chrono::floor<std::chrono::seconds>(since_epoch)).count());
}

void append_time(std::string& out, const char* pattern, const std::tm& calendar, int milliseconds) {
  std::array<char, 32> text;
  out.append(text.data(), std::strftime(text.data(), text.size(), pattern, &calendar));
  std::snprintf(text.data(), text.size(), ".%03d", milliseconds);
  out += text.data();
}

std::string json_line(const event& what) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(what.time);
  std::tm utc;
  gmtime_r(&seconds, &utc);
  std::string out = "{\"ts\":\"";
  append_time(out, "%Y-%m-%dT%H:%M:%S", utc, milliseconds_of(what.time));
  out += "Z\",\"level\":";
  append_quoted(out, words_of(what.severity).name);
  out += ",\"msg\":";
  append_quoted(out, what.message);
  for (const field& f : what.fields) {
    out += ',';
    append_quoted(out, f.name);
    out += ':';
    append_value(out, f.value, true);
  }
  return out + "}\n";
}

std::string text_line(const event& what, bool colour) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(what.time);
  std::tm local;
  localtime_r(&seconds, &local);
  const level_words& words = words_of(what.severity);
  std::string out;
  append_time(out, "%H:%M:%S", local, milliseconds_of(what.time));
  out += ' ';
  if (colour) out += words.colour;
  out += words.name;
  if (colour) out += "\x1b[0m";
  out.append(8 - words.name.size(), ' ');
  append_escaped(out, what.message, false);
  append_pairs(out, what.fields);
  return out + '\n';
}

std::string systemd_line(const event& what) {
  std::string out = {'<', words_of(what.severity).priority, '>'};
  append_escaped(out, what.message, false);
  append_pairs(out, what.fields);
  return out + '\n';
}

bool is_journal(int fd, const char* journal_stream) {
  if (!journal_stream) return false;
  struct stat status;
  if (fstat(fd, &status) != 0) return false;
  return std::to_string(status.st_dev) + ':' + std::to_string(status.st_ino) == journal_stream;
}

}  // namespace

std::string to_line(const event& what, const line_style& style) {
  if (style.shape == format::json) return json_line(what);
  if (style.shape == format::systemd) return systemd_line(what);
  return text_line(what, style.colour);
}

std::string bare_text(const field::value_type& value) {
  if (const auto* text = std::get_if<std::string_view>(&value)) return std::string(text->substr(0, string_bytes_max));
  std::string out;
  append_value(out, value, false);
  return out;
}

line_style choose_style(format wanted, int fd, const char* journal_stream) {
  const bool terminal = isatty(fd) == 1, journal = is_journal(fd, journal_stream);
  if (wanted == format::automatic) wanted = journal ? format::systemd : terminal ? format::text : format::json;
  return {wanted, terminal, journal && wanted == format::systemd};
}

}  // namespace skein::log
