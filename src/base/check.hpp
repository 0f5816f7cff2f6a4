#pragma once
#include <source_location>

namespace skein {

/// Prints where and stops the process. Reached through `check` only.
[[noreturn]] void check_failed(const char* what, const std::source_location& where);

/// States a fact that only our own mistake can make false; a false one stops the process. One fact a line.
/// User input, files and the network never reach a check: those are errors (`result`).
inline void check(bool fact, const char* what = "check failed",
                  const std::source_location& where = std::source_location::current()) {
  if (!fact) [[unlikely]]
    check_failed(what, where);
}

}  // namespace skein
