#include "config/shipped_file.hpp"

#include <string_view>

#include "config/keys.hpp"
#include "config/value.hpp"

namespace skein::config {
namespace {

constexpr std::string_view file_head =
    R"(# Configuration of skein. Every key is listed with its default, so deleting a line changes nothing.
#
# A flag overrides an environment variable (SKEIN_SERVER_PORT for server.port), which overrides this file. Files
# conf.d/*.toml beside this one are read after it in the order of their names; later files override earlier ones.
# `skein check-config --config F` refuses what `skein serve --config F` would. `skein serve --config F --dump-config`
# prints the merged result with the origin of each value. Each comment gives the meaning of a key and then its legal
# values. "Live" keys change without a restart: SIGHUP reads all files again. Devices that this version or machine does
# not have are refused, and so are fp16 states on the CPU.
)";

/// Whether a line may end at this blank: everywhere but inside a range, "0 .. 10".
bool may_break(std::string_view text, std::size_t blank) {
  return !text.substr(blank).starts_with(" .. ") && !text.substr(0, blank + 1).ends_with(" .. ");
}

/// The text as lines of at most 120 columns, if its words allow it, that begin with `mark`.
std::string comment(std::string_view text, std::string_view mark) {
  constexpr std::size_t columns = 120;
  std::string out;
  while (mark.size() + text.size() > columns) {
    std::size_t end = text.rfind(' ', columns - mark.size());
    while (end != std::string_view::npos && end > 0 && !may_break(text, end)) end = text.rfind(' ', end - 1);
    if (end == std::string_view::npos || end == 0) break;
    out.append(mark).append(text.substr(0, end)) += '\n';
    text.remove_prefix(end + 1);
  }
  return out.append(mark).append(text) += '\n';
}

/// `mark` begins each line; "# " makes the whole entry a comment.
std::string entry(const key& k, const std::string& mark) {
  std::string text(k.help);
  const std::string legal = k.legal();
  if (!legal.empty() && !std::holds_alternative<bool>(k.standard())) text += ' ' + legal + '.';
  if (k.live) text += " Live.";
  return comment(text, mark + "# ") + mark + std::string(k.name()) + " = " + to_toml(k.standard()) + '\n';
}

}  // namespace

std::string shipped_file() {
  std::string out(file_head);
  std::string_view section;
  for (const auto& k : keys()) {
    if (k.for_tests) continue;
    if (k.section() != section) out += "\n[" + std::string(section = k.section()) + "]\n";
    out += entry(k, "");
  }
  out += "\n# Defaults of one model, by its name in GET /v1/models:\n# [models.\"my-model\"]\n";
  for (const auto& k : model_keys("my-model")) out += entry(k, "# ");
  return out;
}

}  // namespace skein::config
