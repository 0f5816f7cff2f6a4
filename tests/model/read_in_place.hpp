#pragma once
#include "model/files/file_bytes.hpp"

namespace skein::test {

/// Runs the format readers on bytes that need not be a mapped file, and reads every element they describe. Given a
/// buffer without slack, AddressSanitizer sees the first byte read outside, which it cannot in a mapped page.
void read_in_place(model::byte_span bytes);

}  // namespace skein::test
