#pragma once
#include <string>
#include <string_view>

namespace skein {

/// Facts about this build.
struct build_facts {
  std::string_view version;   ///< "0.1.0"
  std::string_view commit;    ///< "1a2b3c4", or "unknown" if the source was not a git checkout
  std::string_view day;       ///< date of the commit: "2025-01-31"; empty if unknown
  std::string_view compiler;  ///< "gcc 12.2.0"
  std::string_view backend;   ///< the engines linked into the program: "cpu"
};
[[nodiscard]] build_facts this_build();

/// "skein 0.1.0 (1a2b3c4, 2025-01-31, gcc 12.2.0, cpu)"
[[nodiscard]] std::string version_line();
/// "0.1.0+1a2b3c4": a short name that identifies the build.
[[nodiscard]] std::string build_name();

}  // namespace skein
