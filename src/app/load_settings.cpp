#include "app/load_settings.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "app/complaint.hpp"
#include "app/data_files.hpp"
#include "app/exit_code.hpp"
#include "app/small_file.hpp"
#include "config/dump.hpp"

namespace skein::cli {
namespace {

// The spellings are those in config/keys.
constexpr std::pair<std::string_view, log::level> levels[] = {{"debug", log::level::debug},
                                                              {"info", log::level::info},
                                                              {"warning", log::level::warning},
                                                              {"error", log::level::error},
                                                              {"off", log::level::off}};
constexpr std::pair<std::string_view, log::format> formats[] = {{"automatic", log::format::automatic},
                                                                {"text", log::format::text},
                                                                {"json", log::format::json},
                                                                {"systemd", log::format::systemd}};

/// Whether a credential is the placeholder of the packaged unit, which means that the host has no such file.
bool says_none(const std::filesystem::path& credential) {
  const auto text = read_small_file(credential.string());
  return text && (*text == "none" || *text == "none\n");
}

}  // namespace

config::loaded load_settings(config::sources from) {
  // Keys that the service manager passes as a credential need no further setting.
  if (const char* folder = std::getenv("CREDENTIALS_DIRECTORY"))
    if (const auto keys = std::filesystem::path(folder) / "api-keys"; is_file(keys) && !says_none(keys))
      from.environment.emplace_back("SKEIN_SERVER_KEYS_FILE", keys.string());
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text(*variable);
    const auto equals = text.find('=');
    if (text.starts_with("SKEIN_") && equals != std::string_view::npos)
      from.environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return config::load(from);
}

int report_faults(const config::loaded& merged) {
  for (const auto& fault : merged.faults) complain(config::to_string(fault));
  return static_cast<int>(exit_code_of(merged.faults));
}

int print_settings(const config::loaded& merged) {
  std::fputs(config::dump(merged).c_str(), stdout);
  return static_cast<int>(exit_code::ok);
}

log::options log_options(const config::log_settings& from) {
  log::options to;
  for (const auto& [name, level] : levels)
    if (name == from.level) to.minimum = level;
  for (const auto& [name, format] : formats)
    if (name == from.format) to.shape = format;
  return to;
}

}  // namespace skein::cli
