#pragma once
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.hpp"

namespace skein {

/// The system refuses to start a thread. The text says which one and why: "cannot start thread 5 of 8: ...".
class no_thread : public std::runtime_error {
 public:
  no_thread(const std::string& which, const std::string& why)
      : std::runtime_error("cannot start " + which + ": " + why) {}
};

/// A thread that runs `body`. Throws no_thread. `which` is for that text: "the device thread", "thread 5 of 8". A
/// constructor that starts several threads must join those that run before it lets the exception pass: its destructor
/// is not called.
template <typename Body>
[[nodiscard]] std::thread start_thread(const std::string& which, Body&& body) {
  try {
    return std::thread(std::forward<Body>(body));
  } catch (const std::system_error& refused) {
    throw no_thread(which, refused.code().message());
  }
}

/// The error for an exception that ends a command or a load: unavailable if a thread could not be started, internal for
/// any other.
[[nodiscard]] inline error error_of(const std::exception& trouble) {
  if (dynamic_cast<const no_thread*>(&trouble)) return {error_kind::unavailable, trouble.what(), {}};
  const auto* refused = dynamic_cast<const std::system_error*>(&trouble);
  if (refused && refused->code() == std::errc::resource_unavailable_try_again)  // a thread of a library, as RocksDB's
    return {error_kind::unavailable, no_thread("a thread", refused->code().message()).what(), {}};
  return {error_kind::internal, trouble.what(), {}};
}

}  // namespace skein
