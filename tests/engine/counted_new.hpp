#pragma once
#include <cstdint>

namespace skein::test {

/// How often the process has called operator new. A program that links this counts all its threads.
[[nodiscard]] std::uint64_t allocation_count();

}  // namespace skein::test
