// The epilogue of GEMMs that a library ran: a thread processes 16 bytes of a row.
#include "kernels/gpu/gemm/epilogue_rows.hpp"

#include "base/check.hpp"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/device/vec.cuh"
#include "kernels/gpu/gemm/epilogue.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned epilogue_threads = 256;

template <typename Element>
__global__ void __launch_bounds__(epilogue_threads)
    epilogue_rows_kernel(Element* out, std::uint32_t row_packets, std::uint32_t stride, std::size_t packets,
                         activation_function function) {
  pdl_launch_dependents();
  pdl_wait();
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * epilogue_threads + threadIdx.x;
  if (i >= packets) return;
  Element* const at = out + i / row_packets * stride + i % row_packets * packet<Element>::size;
  packet<Element> values = load_packet(at);
#pragma unroll
  for (unsigned e = 0; e < packet<Element>::size; ++e)
    values.values[e] = from_float<Element>(apply_activation(function, to_float(values.values[e])));
  store_packet(at, values);
}

}  // namespace

result<void> epilogue_rows(stream_handle in, element type, const gemm& p, std::uint32_t rows) {
  check(p.how.function != activation_function::none);
  return with_element(output_type(p.how, type), [&]<typename Element>() {
    constexpr std::uint32_t size = packet<Element>::size;
    check(p.matrix.outputs % size == 0);
    check(p.out_stride % size == 0);
    check(reinterpret_cast<std::uintptr_t>(p.out) % sizeof(packet<Element>) == 0);
    const std::size_t packets = std::size_t{rows} * (p.matrix.outputs / size);
    const auto blocks = static_cast<unsigned>((packets + epilogue_threads - 1) / epilogue_threads);
    return launch({"finish_rows", {blocks}, {epilogue_threads}, 0, in, true}, epilogue_rows_kernel<Element>,
                  static_cast<Element*>(p.out), p.matrix.outputs / size, p.out_stride, packets, p.how.function);
  });
}

}  // namespace skein::kernels::gpu
