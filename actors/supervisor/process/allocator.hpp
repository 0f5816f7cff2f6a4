#pragma once

namespace skein::supervisor {

/// Makes glibc return blocks of 128 KiB and more to the system when they are freed. By default glibc raises this
/// threshold when it frees the first large block; states are then placed between small blocks in heaps that never
/// shrink. With 2,000 sessions of 0.4 MiB through a RAM tier of 48 MiB, 370 MiB stayed resident; with this call 120
/// MiB.
void return_large_blocks();

}  // namespace skein::supervisor
