#include "kernels/gpu/runtime/emulator/fibers.hpp"

#include <algorithm>
#include <boost/context/preallocated.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <memory>
#include <utility>

#include "base/sanitizer.hpp"

#if defined(SKEIN_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace skein::kernels::gpu::emulator {

namespace {

constexpr std::size_t stack_bytes = std::size_t{256} << 10;  // sanitizers make frames several times larger
constexpr std::byte stale{0xff};                             // fills fresh memory: NaNs as floats

/// Thrown to unwind a fiber whose barrier never opens.
struct abandoned {};

// AddressSanitizer tracks the stack of a thread, so it has to be told of every switch to another one.
#if defined(SKEIN_ADDRESS_SANITIZER)
void leave_stack(void** saved, const void* bottom, std::size_t bytes) {
  __sanitizer_start_switch_fiber(saved, bottom, bytes);
}
void reach_stack(void* saved, const void** bottom, std::size_t* bytes) {
  __sanitizer_finish_switch_fiber(saved, bottom, bytes);
}
/// Frames that a fiber leaves without returning: their memory would stay poisoned.
void forget_frames(const void* bottom, std::size_t bytes) { __asan_unpoison_memory_region(bottom, bytes); }
#else
void leave_stack(void**, const void*, std::size_t) {}
void reach_stack(void*, const void**, std::size_t*) {}
void forget_frames(const void*, std::size_t) {}
#endif

std::string place(const std::source_location& where) {
  const std::string file = where.file_name();
  return file.substr(file.find_last_of('/') + 1) + ':' + std::to_string(where.line());
}

}  // namespace

block_runner& block_runner::of_this_thread() {
  thread_local block_runner runner;
  return runner;
}

block_runner::~block_runner() {
  ending_ = true;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    enter(i);
    forget_frames(threads_[i]->stack_bottom, threads_[i]->stack_bytes);
  }
}

std::string block_runner::run(extent grid, extent block, std::size_t shared_bytes, function body, void* context,
                              unsigned cluster) {
  constexpr std::size_t alignment = 1024;  // an address has the same alignment in every block of a cluster
  block_threads_ = block.count(), running_threads_ = cluster * block_threads_;
  block_shared_ = (shared_bytes + alignment - 1) / alignment * alignment;
  if (cluster > 1 && (grid.x % cluster != 0 || block_threads_ % warp_width != 0)) return "a cluster is incomplete";
  grow(running_threads_);
  shared_.resize(cluster == 1 ? shared_bytes : cluster * block_shared_);
  body_ = body, context_ = context;
  now.grid = grid, now.block = block;
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; x += cluster) {
        first_block_ = {x, y, z};
        std::ranges::fill(shared_, stale);
        run_blocks(running_threads_);
        if (failure_.empty() && all_done(running_threads_) && later_.empty()) continue;
        if (failure_.empty())
          failure_ = all_done(running_threads_) ? "a block ended before its copies were complete"
                                                : describe_deadlock(running_threads_);
        abandon(running_threads_);
        return std::exchange(failure_, {});
      }
  return {};
}

void block_runner::grow(std::size_t threads) {
  for (std::size_t i = threads_.size(); i < threads; ++i) {
    boost::context::protected_fixedsize_stack stacks(stack_bytes);
    const auto stack = stacks.allocate();
    thread& made = *threads_.emplace_back(std::make_unique<thread>());
    made.stack_bottom = static_cast<const std::byte*>(stack.sp) - stack.size;
    made.stack_bytes = stack.size;
    forget_frames(made.stack_bottom, made.stack_bytes);
    made.self = boost::context::fiber(std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack),
                                      stacks, [this, i](boost::context::fiber&& scheduler) {
                                        threads_[i]->scheduler = std::move(scheduler);
                                        live();
                                        return std::move(threads_[i]->scheduler);
                                      });
  }
  warps_.resize((threads + warp_width - 1) / warp_width);
}

// Runs in a fiber: one kernel after another.
void block_runner::live() {
  reach_stack(nullptr, &scheduler_bottom_, &scheduler_bytes_);
  while (!ending_) {
    try {
      body_(context_);
      if (owed() > 0) fail("a thread ended before its pending instructions");
    } catch (const abandoned&) {
      const thread& self = *threads_[running_];
      forget_frames(self.stack_bottom, self.stack_bytes);
    }
    wait(state::done, {});
  }
  leave_stack(nullptr, scheduler_bottom_, scheduler_bytes_);
}

// Runs thread i until it waits.
void block_runner::enter(std::size_t i) {
  thread& t = *threads_[i];
  running_ = i;
  void* saved = nullptr;
  leave_stack(&saved, t.stack_bottom, t.stack_bytes);
  t.self = std::move(t.self).resume();
  reach_stack(saved, nullptr, nullptr);
}

void block_runner::wait(state why, const std::source_location& where) {
  thread& self = *threads_[running_];
  self.at = why;
  self.where = where;
  void* saved = nullptr;
  leave_stack(&saved, scheduler_bottom_, scheduler_bytes_);
  self.scheduler = std::move(self.scheduler).resume();
  reach_stack(saved, &scheduler_bottom_, &scheduler_bytes_);
  if (abandoning_ && why != state::done) throw abandoned();
}

bool block_runner::all_done(std::size_t threads) const {
  return std::ranges::all_of(of_threads(0, threads), [](const auto& t) { return t->at == state::done; });
}

void block_runner::abandon(std::size_t threads) {
  abandoning_ = true;
  for (std::size_t i = 0; i < threads; ++i)
    if (threads_[i]->at != state::done) enter(i);
  abandoning_ = false;
  later_.clear();
}

void block_runner::run_blocks(std::size_t threads) {
  ++blocks_begun_;
  waits_for_need_ = any_below(2) == 0;
  named_.assign(threads / block_threads_ * named_of_block, {});
  cluster_ = {};
  for (std::size_t i = 0; i < threads; ++i)
    threads_[i]->at = state::ready, threads_[i]->exchanges = 0, threads_[i]->owed = 0;
  const std::size_t warps = (threads + warp_width - 1) / warp_width;
  const auto is_waited_for = [&] {
    return std::ranges::any_of(of_threads(0, threads), [](const auto& t) { return t->at == state::at_condition; });
  };
  const auto a_block_meets = [&] {
    bool meets = false;
    for (std::size_t i = 0; i < threads; i += block_threads_) meets |= meet(i, i + block_threads_, state::at_barrier);
    return meets;
  };
  something_ran_ = true;
  do {
    const bool is_needed = !something_ran_;
    something_ran_ = false;
    if (is_needed) work_beside_threads(1);
    shuffle(warp_order_, warps);
    for (const unsigned warp : warp_order_) {
      if (!waits_for_need_) work_beside_threads(any_below(3));
      run_warp(warp * warp_width, std::min<std::size_t>((warp + 1) * warp_width, threads));
    }
  } while (failure_.empty() &&
           (a_block_meets() || (something_ran_ && is_waited_for()) || (!later_.empty() && !all_done(threads))));
}

void block_runner::work_beside_threads(unsigned count) {
  for (; count > 0 && !later_.empty(); --count) {
    std::swap(later_[any_below(static_cast<unsigned>(later_.size()))], later_.back());
    const std::function<void()> work = std::move(later_.back());
    later_.pop_back();
    work();
    something_ran_ = true;
  }
}

// Runs a warp as far as possible without the other warps: no kernel may rely on their progress.
void block_runner::run_warp(std::size_t begin, std::size_t end) {
  const extent block = now.block;
  do {
    shuffle(lane_order_, end - begin);
    for (const unsigned lane : lane_order_) {
      const std::size_t i = begin + lane;
      thread& t = *threads_[i];
      if (t.at == state::at_condition && t.over(t.context)) t.at = state::ready;
      if (t.at != state::ready) continue;
      const auto index = static_cast<unsigned>(i % block_threads_), rank = static_cast<unsigned>(i / block_threads_);
      now.block_index = {first_block_.x + rank, first_block_.y, first_block_.z};
      now.dynamic_shared = shared_.data() + rank * block_shared_;
      now.thread_index = {index % block.x, index / block.x % block.y, index / (block.x * block.y)};
      something_ran_ = true;
      enter(i);
    }
  } while (meet(begin, end, state::at_exchange));
}

// If all of these threads wait at the same place, they continue. Warps that have ended as a whole do not count.
bool block_runner::meet(std::size_t begin, std::size_t end, state at) {
  const thread* first = nullptr;
  for (std::size_t warp = begin; warp < end; warp += warp_width) {
    const auto lanes = of_threads(warp, std::min(warp + warp_width, end));
    if (std::ranges::all_of(lanes, [](const auto& t) { return t->at == state::done; })) continue;
    if (first == nullptr) first = lanes.front().get();
    for (const auto& t : lanes)
      if (t->at != at || t->where.line() != first->where.line()) return false;
  }
  if (first == nullptr) return false;
  for (std::size_t i = begin; i < end; ++i)
    if (threads_[i]->at == at) threads_[i]->at = state::ready;
  return true;
}

std::string block_runner::describe_deadlock(std::size_t threads) const {
  std::string text = "deadlock: some threads wait for others that never arrive:";
  for (std::size_t i = 0; i < threads; ++i) {
    const thread& t = *threads_[i];
    const auto same = [&](const auto& o) { return o->at == t.at && o->where.line() == t.where.line(); };
    if (std::ranges::any_of(of_threads(0, i), same)) continue;
    text += ' ' + std::to_string(std::ranges::count_if(of_threads(i, threads), same));
    text += t.at == state::done           ? " finished"
            : t.at == state::at_barrier   ? " at the barrier "
            : t.at == state::at_condition ? " waiting "
                                          : " at the warp operation ";
    if (t.at != state::done) text += place(t.where);
    text += ';';
  }
  text += " block (" + std::to_string(now.block_index.x) + ", " + std::to_string(now.block_index.y) + ')';
  return text;
}

unsigned block_runner::any_below(unsigned bound) {
  random_ = random_ * 6364136223846793005u + 1442695040888963407u;
  return static_cast<unsigned>((random_ >> 32) * bound >> 32);
}

void block_runner::shuffle(std::vector<unsigned>& order, std::size_t count) {
  order.resize(count);
  for (unsigned i = 0; i < count; ++i) {
    const unsigned other = any_below(i + 1);
    order[i] = order[other];
    order[other] = i;
  }
}

void block_runner::barrier(const std::source_location& where) { wait(state::at_barrier, where); }

void block_runner::wait_until(condition over, const void* context, const std::source_location& where) {
  if (over(context)) return;
  thread& self = *threads_[running_];
  self.over = over, self.context = context;
  wait(state::at_condition, where);
}

void block_runner::named_barrier(unsigned number, unsigned threads, const std::source_location& where) {
  named& n = named_[running_ / block_threads_ * named_of_block + number];
  if (++n.arrived == threads) {
    n.arrived = 0, ++n.opened;
    return;
  }
  wait_until([&n, before = n.opened] { return n.opened != before; }, where);
}

void block_runner::cluster_barrier(const std::source_location& where) {
  ++cluster_.arrived;
  wait_until(
      [this, before = cluster_.opened] {
        if (cluster_.opened != before) return true;
        const auto ended =
            std::ranges::count_if(of_threads(0, running_threads_), [](const auto& t) { return t->at == state::done; });
        if (cluster_.arrived + static_cast<std::size_t>(ended) < running_threads_) return false;
        cluster_.arrived = 0, ++cluster_.opened;
        return true;
      },
      where);
}

std::byte* block_runner::of_other_block(void* own, unsigned rank) const {
  const auto at = static_cast<std::size_t>(static_cast<std::byte*>(own) - now.dynamic_shared);
  return const_cast<std::byte*>(shared_.data()) + rank * block_shared_ + at;
}

void block_runner::fail(const char* why) {
  if (failure_.empty())
    failure_ = std::string(why) + "; block (" + std::to_string(now.block_index.x) + ", " +
               std::to_string(now.block_index.y) + "), thread " + std::to_string(running_);
  throw abandoned();
}

const std::uint64_t* block_runner::exchange(std::uint64_t value, const std::source_location& where) {
  thread& self = *threads_[running_];
  std::uint64_t* const values = warps_[running_ / warp_width].values[self.exchanges++ % 2];
  values[running_ % warp_width] = value;
  wait(state::at_exchange, where);
  return values;
}

}  // namespace skein::kernels::gpu::emulator
