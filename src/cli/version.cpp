#include "cli/version.hpp"

// The build passes SKEIN_VERSION, and SKEIN_COMMIT where the source is a git checkout.
#ifndef SKEIN_COMMIT
#define SKEIN_COMMIT "no commit"
#endif

namespace skein::cli {

std::string version_line() { return "skein " SKEIN_VERSION " (" SKEIN_COMMIT ", gcc " __VERSION__ ", cpu)"; }

}  // namespace skein::cli
