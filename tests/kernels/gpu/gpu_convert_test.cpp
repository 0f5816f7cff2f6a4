// Every number of either 16-bit type becomes what the host makes of it, but that nothing becomes infinite; and one that
// is none stays none. What lies behind the values stays.
#include "kernels/gpu/ops/convert.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "base/finite_half.hpp"
#include "tests/kernels/gpu/device_values.hpp"

using namespace skein;
using namespace skein::test;
using kernels::gpu::queue_convert;

BOOST_AUTO_TEST_CASE(all_numbers_of_16_bits_become_those_of_the_other_type) {
  constexpr std::size_t all = (1 << 18) + 300, room = all + 8;  // more than all threads of a launch
  const kernels::gpu::stream in;
  const kernels::gpu::pinned_buffer<std::uint16_t> values(room);
  const kernels::gpu::device_buffer<std::uint16_t> there(room);
  const auto value_of = [](std::uint16_t bits, element type) {
    return type == element::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
  };
  for (const auto& [from, to] : {std::pair{element::bf16, element::f16}, std::pair{element::f16, element::bf16}})
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{300}, all}) {
      for (std::size_t i = 0; i < room; ++i) values.data()[i] = static_cast<std::uint16_t>(i);
      require(copy_to_device(there.data(), values.data(), room * 2, in));
      require(queue_convert(in, there.data(), count, from, to));
      require(copy_to_host(values.data(), there.data(), room * 2, in));
      require(in.synchronize());
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const auto bits = static_cast<std::uint16_t>(i);
        float expected = value_of(bits, from);
        expected = to == element::f16 ? f16_to_f32(f32_to_finite_f16(expected)) : bf16_to_f32(f32_to_bf16(expected));
        const float got = value_of(values.data()[i], to);
        if (std::isnan(value_of(bits, from)) ? !std::isnan(got) : got != expected) ++wrong;
      }
      for (std::size_t i = count; i < room; ++i)
        if (values.data()[i] != static_cast<std::uint16_t>(i)) ++wrong;
      BOOST_TEST(wrong == 0u);
    }
}
