#include "actors/supervisor/process/allocator.hpp"

#include <malloc.h>

namespace skein::supervisor {

void return_large_blocks() { ::mallopt(M_MMAP_THRESHOLD, 128 * 1024); }

}  // namespace skein::supervisor
