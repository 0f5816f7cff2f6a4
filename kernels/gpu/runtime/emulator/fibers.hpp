#pragma once
#include <boost/context/fiber.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Runs a GPU kernel on the CPU, so that tests without a GPU execute the same sources that nvcc and hipcc compile.
///
/// Every thread of a block is a fiber. The blocks of a grid run one after another, those of a cluster together. A fiber
/// runs until it reaches a barrier or a warp operation (a shuffle, a vote); then other fibers run until all
/// participants have arrived. A warp runs as far as it can before another one runs, and the order of warps and lanes is
/// shuffled from a seed, so a kernel with a missing barrier soon gives wrong numbers. A barrier that only some threads
/// reach is reported.
///
/// Asynchronous work (TMA transfers) happens at some later time, in any order, and in half of the blocks as late as
/// possible.
///
/// The emulator shows what a kernel computes. It does not show races inside a warp, the rounding of a GPU's own
/// functions, missing fences, occupancy or memory coalescing.
namespace skein::kernels::gpu::emulator {

/// The lanes of a warp: 32 as on NVIDIA and RDNA, 64 as on CDNA; chosen at compile time.
inline constexpr unsigned warp_width = SKEIN_GPU_EMULATOR;
static_assert(warp_width == 32 || warp_width == 64);

struct extent {
  unsigned x = 1, y = 1, z = 1;
  [[nodiscard]] std::size_t count() const { return std::size_t{x} * y * z; }
};

/// The values of a kernel's built-in variables in the running fiber.
struct built_in {
  extent grid, block, block_index, thread_index;
  std::byte* dynamic_shared = nullptr;
};
inline constinit thread_local built_in now{};

/// The fibers of one host thread; they are created when first needed and reused by every later block.
class block_runner {
 public:
  block_runner() = default;
  ~block_runner();
  block_runner(const block_runner&) = delete;  // its fibers point to it
  block_runner& operator=(const block_runner&) = delete;

  /// Runs a grid; body() is the kernel with its arguments. Returns an error message, or an empty string.
  using function = void (*)(void* context);
  /// `cluster` blocks, neighbours in x, run together; above 1 they may not have __shared__ variables.
  [[nodiscard]] std::string run(extent grid, extent block, std::size_t shared_bytes, function body, void* context,
                                unsigned cluster = 1);

  /// Sets the seed for the order of the fibers.
  void reseed(std::uint64_t seed) { random_ = seed * 2 + 1; }

  /// From within a kernel: waits for all threads of the block.
  void barrier(const std::source_location& where);
  /// From within a kernel: gives `value` to the other lanes of the warp, and waits until all have given theirs. Returns
  /// the values of all lanes; they stay valid until the warp's next exchange is complete.
  [[nodiscard]] const std::uint64_t* exchange(std::uint64_t value, const std::source_location& where);
  /// From within a kernel: waits for `threads` threads of the block at the barrier with that number, 0 .. 15.
  void named_barrier(unsigned number, unsigned threads, const std::source_location& where);
  /// From within a kernel: waits for all threads of the cluster that have not ended.
  void cluster_barrier(const std::source_location& where);
  /// From within a kernel: the address in another cluster block's dynamic shared memory that corresponds to `own` in
  /// this block's.
  [[nodiscard]] std::byte* of_other_block(void* own, unsigned rank) const;
  /// From within a kernel: waits until over() returns true; it is called repeatedly.
  template <typename Over>
  void wait_until(const Over& over, const std::source_location& where) {
    wait_until([](const void* context) { return (*static_cast<const Over*>(context))(); }, &over, where);
  }
  /// From within a kernel: `work` is done later, asynchronously to the threads, and before the block ends.
  void do_later(std::function<void()> work) { later_.push_back(std::move(work)); }
  /// From within a kernel: ends the kernel, and the launch with this message.
  [[noreturn]] void fail(const char* why);

  /// The running thread's lane in its warp, and its number among all threads of the running blocks.
  [[nodiscard]] unsigned lane() const { return static_cast<unsigned>(running_ % warp_width); }
  [[nodiscard]] std::size_t thread_number() const { return running_; }
  /// The operations that the running thread has begun and must still wait for.
  [[nodiscard]] unsigned& owed() { return threads_[running_]->owed; }
  /// The number of blocks begun so far.
  [[nodiscard]] std::uint64_t blocks_begun() const { return blocks_begun_; }
  /// A random number below `bound`.
  [[nodiscard]] unsigned any_below(unsigned bound);

  /// The runner of the calling host thread.
  [[nodiscard]] static block_runner& of_this_thread();

 private:
  enum class state : std::uint8_t { ready, at_barrier, at_exchange, at_condition, done };
  struct thread {
    boost::context::fiber self;       ///< while it waits
    boost::context::fiber scheduler;  ///< while it runs
    state at = state::done;
    std::source_location where;
    unsigned exchanges = 0;  ///< so far in this block
    unsigned owed = 0;
    bool (*over)(const void* context) = nullptr;  ///< the condition that it waits for
    const void* context = nullptr;
    const void* stack_bottom = nullptr;
    std::size_t stack_bytes = 0;
  };
  struct warp {
    std::uint64_t values[2][warp_width];  ///< of the last two exchanges: a slow lane may still read the one before
  };

  struct named {
    unsigned arrived = 0;
    std::uint64_t opened = 0;  ///< number of times
  };

  using condition = bool (*)(const void* context);
  void wait_until(condition over, const void* context, const std::source_location& where);
  void grow(std::size_t threads);
  void live();
  void enter(std::size_t i);
  void run_blocks(std::size_t threads);
  [[nodiscard]] auto of_threads(std::size_t begin, std::size_t end) const {
    return std::span(threads_).subspan(begin, end - begin);
  }
  [[nodiscard]] bool all_done(std::size_t threads) const;
  void abandon(std::size_t threads);
  void run_warp(std::size_t begin, std::size_t end);
  void work_beside_threads(unsigned count);
  [[nodiscard]] bool meet(std::size_t begin, std::size_t end, state at);
  [[nodiscard]] std::string describe_deadlock(std::size_t threads) const;
  void shuffle(std::vector<unsigned>& order, std::size_t count);
  void wait(state why, const std::source_location& where);

  std::vector<std::unique_ptr<thread>> threads_;
  std::vector<warp> warps_;
  static constexpr std::size_t named_of_block = 16;
  std::vector<named> named_;  ///< of each running block
  named cluster_;
  std::size_t running_threads_ = 0, block_threads_ = 1, block_shared_ = 0;  ///< of all running blocks, and of one
  extent first_block_;
  std::vector<std::function<void()>> later_;
  std::vector<unsigned> warp_order_, lane_order_;
  std::vector<std::byte> shared_;
  std::size_t running_ = 0;  ///< index of the running thread
  function body_ = nullptr;
  void* context_ = nullptr;
  std::uint64_t random_ = 1, blocks_begun_ = 0;
  std::string failure_;
  bool something_ran_ = false, waits_for_need_ = false;  ///< of a block: deferred work waits until no thread can run
  bool abandoning_ = false, ending_ = false;
  const void* scheduler_bottom_ = nullptr;  ///< the stack that fibers are entered from
  std::size_t scheduler_bytes_ = 0;
};

}  // namespace skein::kernels::gpu::emulator
