#pragma once
#include <string>

namespace skein::cli {

/// "skein 0.1.0 (1a2b3c4, 2025-01-31, gcc 12.2.0, cpu)": version, commit and its day, compiler, engines in this build.
[[nodiscard]] std::string version_line();
/// "0.1.0+1a2b3c4": what tells one build from another, in short.
[[nodiscard]] std::string build_name();

}  // namespace skein::cli
