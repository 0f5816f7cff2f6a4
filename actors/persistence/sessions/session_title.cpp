#include "actors/persistence/sessions/session_title.hpp"

#include <algorithm>
#include <string_view>

namespace skein::persistence {
namespace {

constexpr std::size_t characters_max = 80, bytes_max = 240;
constexpr std::string_view dots = "…";
static_assert(bytes_max + dots.size() <= storage::session_title_bytes_max);

bool is_blank(char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; }
bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

std::string_view first_line(std::string_view text) {
  text.remove_prefix(static_cast<std::size_t>(std::ranges::find_if_not(text, is_blank) - text.begin()));
  return text.substr(0, text.find_first_of("\r\n"));
}

/// The number of bytes of a line that fit, in whole characters.
std::size_t fitting(std::string_view line) {
  std::size_t fits = 0, characters = 0;
  for (std::size_t at = 0; at <= std::min(line.size(), bytes_max); ++at) {
    if (at < line.size() && !begins_character(line[at])) continue;
    fits = at;
    if (characters++ == characters_max) break;
  }
  return fits;
}

}  // namespace

std::string title_of(const storage::version_record& first) {
  const auto asked = std::ranges::find(first.messages, "user", &storage::message::role);
  const bool is_chat = asked != first.messages.end();
  const std::string_view line = first_line(is_chat ? std::string_view(asked->content)
                                                   : std::string_view(first.text).substr(0, first.prompt_bytes));
  std::string title(line.substr(0, fitting(line)));
  const bool is_cut = title.size() < line.size();
  if (is_cut)
    if (const auto word = title.find_last_of(' '); word != title.npos && word >= title.size() / 2) title.resize(word);
  std::ranges::replace_if(title, is_blank, ' ');
  while (title.ends_with(' ')) title.pop_back();
  return is_cut ? title.append(dots) : title;
}

}  // namespace skein::persistence
