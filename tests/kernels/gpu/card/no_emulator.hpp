#pragma once

/// What tests say to the emulator, for a card: there the order of threads is not ours to choose.
namespace skein::kernels::gpu::emulator {

struct block_runner {
  static block_runner of_this_thread() { return {}; }
  void reseed(unsigned long) {}
};

}  // namespace skein::kernels::gpu::emulator
