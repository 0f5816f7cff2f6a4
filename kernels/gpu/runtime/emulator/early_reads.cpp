#include "kernels/gpu/runtime/emulator/early_reads.hpp"

#include <cstring>
#include <iterator>
#include <mutex>

#include "kernels/gpu/runtime/emulator/emulator.hpp"

namespace skein::kernels::gpu::emulator {

namespace {

std::mutex memory_mutex;
std::map<const std::byte*, std::size_t>& memory() {
  static std::map<const std::byte*, std::size_t> all;
  return all;
}

}  // namespace

void remember_memory(const void* at, std::size_t bytes) {
  const own_memory mine;
  const std::scoped_lock lock(memory_mutex);
  memory()[static_cast<const std::byte*>(at)] = bytes;
}
void forget_memory(const void* at) {
  const own_memory mine;
  const std::scoped_lock lock(memory_mutex);
  memory().erase(static_cast<const std::byte*>(at));
}

early_reads::early_reads() { of_this_thread_ = this; }
early_reads::~early_reads() { of_this_thread_ = nullptr; }

// A kernel starts when all blocks of the one before have let it. If one of those blocks had waited before, all kernels
// before that one are complete.
void early_reads::begin_kernel(bool overlaps, std::size_t blocks) {
  if (!overlaps)
    may_run_.clear();
  else if (!last_was_early_ && may_run_.size() > 1)
    may_run_.erase(may_run_.begin(), std::prev(may_run_.end()));
  started_next_.assign(blocks, false), early_starts_ = 0, blocks_ = blocks;
  before_.clear();
  const std::scoped_lock lock(memory_mutex);
  for (const auto& [at, bytes] : memory()) before_[at].assign(at, at + bytes);
}

void early_reads::end_kernel() {
  may_run_.push_back(std::move(before_));
  last_was_early_ = early_starts_ == blocks_;
}

bool early_reads::has_waited() const {
  const auto& runner = block_runner::of_this_thread();
  const std::uint64_t block = runner.blocks_begun() + 1;
  return counted_ == block || (runner.thread_number() < waited_.size() && waited_[runner.thread_number()] == block);
}
void early_reads::wait_for_count() { counted_ = block_runner::of_this_thread().blocks_begun() + 1; }
void early_reads::wait() {
  const auto& runner = block_runner::of_this_thread();
  if (waited_.size() <= runner.thread_number()) waited_.resize(runner.thread_number() + 1);
  waited_[runner.thread_number()] = runner.blocks_begun() + 1;
}
void early_reads::start_next() {
  const std::size_t block =
      (std::size_t{now.block_index.z} * now.grid.y + now.block_index.y) * now.grid.x + now.block_index.x;
  if (started_next_[block]) return;
  started_next_[block] = true;
  if (!has_waited()) ++early_starts_;
}

void early_reads::check(const std::byte* from, std::size_t bytes) const {
  if (may_run_.empty() || bytes == 0 || has_waited()) return;
  const contents& then = may_run_.front();
  auto found = then.upper_bound(from);
  if (found == then.begin()) return;
  --found;
  const std::size_t offset = from - found->first;
  if (offset + bytes > found->second.size()) return;
  if (std::memcmp(from, found->second.data() + offset, bytes) != 0)
    block_runner::of_this_thread().fail("memory was read that a kernel before may not have written yet");
}

}  // namespace skein::kernels::gpu::emulator
