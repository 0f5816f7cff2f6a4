#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <vector>

#include "kernels/gpu/ops/small_copy.hpp"
#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/runtime/stream.hpp"

namespace {

using namespace skein;
using namespace skein::kernels::gpu;

}  // namespace

// To the device and back, in sizes of less than a block to more than all of them; what lies behind stays.
BOOST_AUTO_TEST_CASE(small_copies_go_both_ways) {
  constexpr std::size_t most = 600'000;
  const stream in;
  const device_buffer<std::byte> there(most);
  const pinned_buffer<std::byte> from(most), to(most);
  for (std::size_t i = 0; i < most; ++i) from.data()[i] = static_cast<std::byte>(i * 31 >> 3);
  for (const std::size_t bytes : {0u, 16u, 4'080u, 4'112u, 131'088u, 400'000u}) {
    std::ranges::fill(to.all(), std::byte{7});
    BOOST_REQUIRE(fill_with_zeros(there.data(), most, in).has_value());
    BOOST_REQUIRE(queue_small_copy(in, there.data(), from.data(), bytes).has_value());
    BOOST_REQUIRE(queue_small_copy(in, to.data(), there.data(), small_copy_bytes(bytes + 1)).has_value());
    BOOST_REQUIRE(in.synchronize().has_value());
    for (std::size_t i = 0; i < most; ++i) {
      const std::byte expected = i < bytes ? from.data()[i] : i < bytes + 16 ? std::byte{0} : std::byte{7};
      if (to.data()[i] != expected) BOOST_FAIL("byte " << i << " of " << bytes);
    }
  }
}
