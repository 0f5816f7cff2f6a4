// The two ends of the residual stream: the embedding of a token, and the final norm before the head. A block is one
// row.
#include "kernels/gpu/ops/embed.hpp"

#include "base/check.hpp"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/ops/row_norm.cuh"
#include "kernels/ops.hpp"

namespace skein::kernels::gpu {

namespace {

template <typename Element, unsigned packets>
__global__ void embed_kernel(device_batch rows, const Element* table, std::uint32_t table_stride, norm_weights ln0,
                             float* x, std::uint32_t width) {
  const norm_share<packets> norm(ln0, width);
  pdl_wait();
  pdl_launch_dependents();  // not earlier: the next kernel relies on the batch being complete
  const std::uint32_t t = blockIdx.x;
  if (t >= rows.counts->rows) return;
  const Element* const embedding = table + static_cast<std::size_t>(rows.tokens[t]) * table_stride;
  row_share<packets> row{};
  for_each_packet<packets>(width, [&](unsigned i, std::uint32_t c) { load_floats(embedding + c, row.values[i]); });
  normalise(row, width, norm, layer_norm_eps);
  for_each_packet<packets>(width, [&](unsigned i, std::uint32_t c) {
    store_floats(x + static_cast<std::size_t>(t) * width + c, row.values[i]);
  });
}

template <typename Element, unsigned packets>
__global__ void norm_wanted_kernel(device_batch rows, residual from, norm_weights ln_out, Element* out,
                                   std::uint32_t out_stride, std::uint32_t width) {
  const norm_share<packets> norm(ln_out, width);
  pdl_launch_dependents();
  pdl_wait();
  const std::uint32_t wanted = blockIdx.x;
  if (wanted >= rows.counts->wanted) return;
  row_share<packets> row = load_row<packets>(from, width, rows.wanted_rows[wanted]);
  normalise(row, width, norm, layer_norm_eps);
  for_each_packet<packets>(width, [&](unsigned i, std::uint32_t c) {
    store_floats(out + static_cast<std::size_t>(wanted) * out_stride + c, row.values[i]);
  });
}

launch_shape one_block_a_row(const char* name, std::uint32_t rows, std::uint32_t width, stream_handle in) {
  return {name, {rows}, {row_threads(width)}, 0, in, true};
}

}  // namespace

result<void> embed(stream_handle in, const device_batch& rows, element type, const void* table,
                   std::uint32_t table_stride, norm_weights ln0, float* x, std::uint32_t width) {
  check(width <= width_max && width % 64 == 0);
  const launch_shape shape = one_block_a_row("embed", rows.room.rows, width, in);
  return with_element(type, [&]<typename Element>() {
    const auto kernel = packets_of(width) == 2 ? embed_kernel<Element, 2> : embed_kernel<Element, 3>;
    return launch(shape, kernel, rows, static_cast<const Element*>(table), table_stride, ln0, x, width);
  });
}

result<void> norm_wanted(stream_handle in, const device_batch& rows, element type, const residual& from,
                         norm_weights ln_out, void* out, std::uint32_t out_stride, std::uint32_t width) {
  check(width <= width_max && width % 64 == 0);
  const launch_shape shape = one_block_a_row("norm_wanted", rows.room.wanted, width, in);
  return with_element(type, [&]<typename Element>() {
    const auto kernel = packets_of(width) == 2 ? norm_wanted_kernel<Element, 2> : norm_wanted_kernel<Element, 3>;
    return launch(shape, kernel, rows, from, ln_out, static_cast<Element*>(out), out_stride, width);
  });
}

}  // namespace skein::kernels::gpu
