#pragma once
#include <string>
#include <string_view>

namespace skein {

/// What this program was built of.
struct build_facts {
  std::string_view version;   ///< "0.1.0"
  std::string_view commit;    ///< "1a2b3c4", or "unknown" where the source was no git checkout
  std::string_view day;       ///< of the commit: "2025-01-31"; empty where that is unknown
  std::string_view compiler;  ///< "gcc 12.2.0"
  std::string_view backend;   ///< the engines in the program itself: "cpu"
};
[[nodiscard]] build_facts this_build();

/// "skein 0.1.0 (1a2b3c4, 2025-01-31, gcc 12.2.0, cpu)"
[[nodiscard]] std::string version_line();
/// "0.1.0+1a2b3c4": what tells one build from another, in short.
[[nodiscard]] std::string build_name();

}  // namespace skein
