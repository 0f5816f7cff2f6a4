// The epilogue of GEMMs that a library ran: a thread processes 16 bytes of a row.
#include "kernels/gpu/finish_rows.hpp"

#include "base/check.hpp"
#include "kernels/gpu/device/finish.cuh"
#include "kernels/gpu/device/overlap.cuh"
#include "kernels/gpu/device/vec.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned threads = 256;

template <typename Element>
__global__ void __launch_bounds__(threads)
    finish_rows_kernel(Element* out, std::uint32_t row_packets, std::uint32_t stride, std::size_t packets, finish how) {
  let_next_kernel_begin();
  wait_for_kernels_before();
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * threads + threadIdx.x;
  if (i >= packets) return;
  Element* const at = out + i / row_packets * stride + i % row_packets * packet<Element>::size;
  packet<Element> values = load_packet(at);
#pragma unroll
  for (unsigned e = 0; e < packet<Element>::size; ++e)
    values.values[e] = from_float<Element>(finished(how, to_float(values.values[e])));
  store_packet(at, values);
}

}  // namespace

result<void> finish_rows(stream_handle in, element type, const product& p, std::uint32_t rows) {
  check(p.how == finish::sigmoid || p.how == finish::tanh || p.how == finish::relu_squared);
  return with_element(type, [&]<typename Element>() {
    constexpr std::uint32_t size = packet<Element>::size;
    check(p.outputs % size == 0);
    check(p.out_stride % size == 0);
    check(reinterpret_cast<std::uintptr_t>(p.out) % sizeof(packet<Element>) == 0);
    const std::size_t packets = std::size_t{rows} * (p.outputs / size);
    const auto blocks = static_cast<unsigned>((packets + threads - 1) / threads);
    return launch({"finish_rows", {blocks}, {threads}, 0, in, true}, finish_rows_kernel<Element>,
                  static_cast<Element*>(p.out), p.outputs / size, p.out_stride, packets, p.how);
  });
}

}  // namespace skein::kernels::gpu
