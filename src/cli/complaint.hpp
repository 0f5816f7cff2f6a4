#pragma once
#include <string>

namespace skein::cli {

/// Says on stderr why the program ends: "skein: WHAT". Where stderr is the journal of systemd it is an error there, so
/// that `journalctl -p err` has it.
void complain(const std::string& what);

}  // namespace skein::cli
