#include "base/version.hpp"

// The build passes SKEIN_VERSION, and SKEIN_COMMIT and SKEIN_COMMIT_DAY if the source is a git checkout.
#ifndef SKEIN_COMMIT
#define SKEIN_COMMIT "unknown"
#define SKEIN_COMMIT_DAY ""
#endif

namespace skein {

build_facts this_build() { return {SKEIN_VERSION, SKEIN_COMMIT, SKEIN_COMMIT_DAY, "gcc " __VERSION__, "cpu"}; }

std::string version_line() {
  const build_facts b = this_build();
  std::string line = "skein ";
  line.append(b.version).append(" (").append(b.commit);
  for (const auto part : {b.day, b.compiler, b.backend})
    if (!part.empty()) line.append(", ").append(part);
  return line + ')';
}

std::string build_name() {
  const build_facts b = this_build();
  return std::string(b.version).append("+").append(b.commit);
}

}  // namespace skein
