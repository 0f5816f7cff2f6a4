#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.hpp"

namespace skein::config {

/// Origin of a value; a later kind overrides an earlier one.
enum class origin_kind { standard, file, environment, flag };

struct origin {
  origin_kind kind = origin_kind::standard;
  std::string name;  ///< file path, variable or flag
  int line = 0;      ///< of a file
};
[[nodiscard]] std::string to_string(const origin& from);  ///< "default", "skein.toml:12", "SKEIN_SERVER_PORT", "--port"

enum class fault_kind {
  missing,      ///< a named file or folder does not exist
  unreadable,   ///< a file is too large, not TOML, or cannot be read
  unknown_key,  ///< no such key or section
  bad_value,    ///< wrong type or outside the legal values
  conflict,     ///< legal by itself, but not in combination with another setting
};

struct fault {
  fault_kind kind;
  origin where;
  std::string key;  ///< path; empty if the fault is in the whole file
  std::string message;
};
/// One line: "skein.toml:12: server.prot: no such key; did you mean server.port?"
[[nodiscard]] std::string to_string(const fault& f);

/// A key set by a flag: `--set server.port=1` or `--port 1`.
struct assignment {
  std::string key;
  std::string text;
  std::string flag;
};

struct sources {
  std::filesystem::path file;  ///< empty: none. conf.d/*.toml beside it follow in name order and override it
  std::vector<std::pair<std::string, std::string>>
      environment;                ///< variables that do not begin with SKEIN_ are skipped
  std::vector<assignment> flags;  ///< the last one of a key wins
};

struct loaded {
  config settings;                        ///< valid only if there are no faults
  std::map<std::string, origin> origins;  ///< by key path; absent keys have their default
  std::vector<fault> faults;              ///< all faults, in the order of sources and lines
};

/// Merges defaults, file, environment and flags, in ascending order of precedence, and checks the result.
[[nodiscard]] loaded load(const sources& from);

}  // namespace skein::config
