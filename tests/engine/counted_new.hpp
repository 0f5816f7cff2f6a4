#pragma once
#include <cstddef>
#include <cstdint>

namespace skein::test {

/// How often the process has called operator new. A program that links this counts all its threads.
[[nodiscard]] std::uint64_t allocation_count();

/// Bytes that operator new has given and operator delete did not get back, with what malloc rounds up.
[[nodiscard]] std::size_t held_bytes();

}  // namespace skein::test
