#pragma once
#include <string>

namespace skein::cli {

/// Prints "skein: WHAT", the reason why the program ends, on stderr. If stderr is the systemd journal, the line has the
/// priority of an error, so that `journalctl -p err` shows it.
void complain(const std::string& what);

}  // namespace skein::cli
