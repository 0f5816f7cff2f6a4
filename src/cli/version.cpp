#include "cli/version.hpp"

#include <string_view>

// The build passes SKEIN_VERSION, and SKEIN_COMMIT where the source is a git checkout.
#ifndef SKEIN_COMMIT
#define SKEIN_COMMIT "unknown"
#endif

namespace skein::cli {

std::string version_line() { return "skein " SKEIN_VERSION " (" SKEIN_COMMIT ", gcc " __VERSION__ ", cpu)"; }

std::string build_name() {
  constexpr std::string_view commit = SKEIN_COMMIT;
  return SKEIN_VERSION "+" + std::string(commit.substr(0, commit.find_first_of(", ")));
}

}  // namespace skein::cli
