#pragma once
#include <deque>
#include <iterator>

#include "kernels/gpu/device/pdl.cuh"
#include "tests/kernels/gpu/device_values.hpp"

/// A kernel that lets the next one start and writes the inputs of that one later, as kernels of a tick may: on a card
/// much later; the emulator finds copies of inputs that did not wait for it (early_reads.hpp).
namespace skein::test {

namespace {

struct late_copies {
  struct {
    const std::uint32_t* from;
    std::uint32_t* to;
    std::size_t words;
  } of[12];
  unsigned count;
};

__global__ void write_late(late_copies all) {
  kernels::gpu::pdl_launch_dependents();
  kernels::gpu::pdl_wait();
#if !defined(SKEIN_GPU_EMULATOR)
  for (const long long begin = clock64(); clock64() - begin < 500'000;) {
  }
#endif
  for (unsigned i = 0; i < all.count; ++i)
    for (std::size_t word = threadIdx.x; word < all.of[i].words; word += blockDim.x)
      all.of[i].to[word] = all.of[i].from[word];
}

class late_inputs {
 public:
  /// Keeps a copy of these, which have whole words.
  void add(const device_values& values) {
    BOOST_REQUIRE(copies_.count < std::size(copies_.of));
    const kernels::gpu::stream in;
    const auto& kept = kept_.emplace_back(values.bytes(), "inputs");
    require(kernels::gpu::copy_on_device(kept.data(), values.data(), values.bytes(), in));
    require(in.synchronize());
    copies_.of[copies_.count++] = {reinterpret_cast<const std::uint32_t*>(kept.data()),
                                   static_cast<std::uint32_t*>(values.data()), values.bytes() / 4};
  }
  /// Clears them all, and queues the kernel.
  void begin(const kernels::gpu::stream& in) const {
    for (unsigned i = 0; i < copies_.count; ++i)
      require(kernels::gpu::fill_with_zeros(copies_.of[i].to, copies_.of[i].words * 4, in));
    require(kernels::gpu::launch({"late", {1}, {256}, 0, in, true}, write_late, copies_));
  }

 private:
#if defined(SKEIN_GPU_EMULATOR)
  kernels::gpu::emulator::early_reads reads_;
#endif
  std::deque<kernels::gpu::device_buffer<std::byte>> kept_;
  late_copies copies_ = {};
};

}  // namespace

}  // namespace skein::test
