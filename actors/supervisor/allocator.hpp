#pragma once

namespace skein::supervisor {

/// Blocks of 128 KiB and more go back to the system when they are freed. Left to itself glibc raises that limit with
/// the first large block that is freed; states then lie between small blocks in its heaps, which never shrink: 2,000
/// sessions of 0.4 MiB that pass through 48 MiB of RAM tier left 370 MiB resident, and 120 MiB so.
void return_large_blocks();

}  // namespace skein::supervisor
