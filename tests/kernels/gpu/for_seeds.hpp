#pragma once
#include "kernels/gpu/runtime/runtime.hpp"
#include "tests/kernels/random_rwkv7.hpp"
#include "tests/support/random_cases.hpp"

namespace skein::test {

/// Runs body(random) for several seeds, each with another order of fibers; a failure names the seed.
template <typename Body>
void for_seeds(std::uint64_t count, const Body& body) {
  for (std::uint64_t seed = random_cases::seed(); seed < random_cases::seed() + count; ++seed) {
    kernels::gpu::emulator::block_runner::of_this_thread().reseed(seed);
    random_numbers random(seed);
    BOOST_TEST_CONTEXT("SKEIN_SEED=" << seed) { body(random); }
  }
}

}  // namespace skein::test
