#pragma once
#include <source_location>

namespace skein {

/// Prints `what` with its source location and aborts the process. Called by `check` only.
[[noreturn]] void check_failed(const char* what, const std::source_location& where);

/// Asserts a condition that only a bug in this program can make false, and aborts the process if it is. One condition
/// per call.
/// Never use it for user input, files or the network: those are errors (`result`).
inline void check(bool fact, const char* what = "check failed",
                  const std::source_location& where = std::source_location::current()) {
  if (!fact) [[unlikely]]
    check_failed(what, where);
}

}  // namespace skein
