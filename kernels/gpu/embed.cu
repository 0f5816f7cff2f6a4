// The two ends of the residual stream: a token's embedding on its way in, the final norm on its way to the head. A
// block is one row.
#include "kernels/gpu/embed.hpp"

#include "kernels/gpu/device/convert.cuh"
#include "kernels/gpu/device/layer_norm.cuh"
#include "kernels/ops.hpp"

namespace skein::kernels::gpu {

namespace {

template <typename Element>
__global__ void embed_kernel(device_batch rows, const Element* table, std::uint32_t table_stride, norm_weights ln0,
                             float* x, std::uint32_t width) {
  const std::uint32_t t = blockIdx.x;
  if (t >= rows.counts->rows) return;
  float* const row = dynamic_shared<float>();
  const Element* const embedding = table + static_cast<std::size_t>(rows.tokens[t]) * table_stride;
  for (std::uint32_t c = threadIdx.x; c < width; c += blockDim.x) row[c] = to_float(embedding[c]);
  layer_norm(row, width, ln0.weight, ln0.bias, layer_norm_eps);
  for (std::uint32_t c = threadIdx.x; c < width; c += blockDim.x) x[static_cast<std::size_t>(t) * width + c] = row[c];
}

template <typename Element>
__global__ void norm_wanted_kernel(device_batch rows, const float* x, norm_weights ln_out, Element* out,
                                   std::uint32_t out_stride, std::uint32_t width) {
  const std::uint32_t i = blockIdx.x;
  if (i >= rows.counts->wanted) return;
  float* const row = dynamic_shared<float>();
  const float* const from = x + static_cast<std::size_t>(rows.wanted_rows[i]) * width;
  for (std::uint32_t c = threadIdx.x; c < width; c += blockDim.x) row[c] = from[c];
  layer_norm(row, width, ln_out.weight, ln_out.bias, layer_norm_eps);
  for (std::uint32_t c = threadIdx.x; c < width; c += blockDim.x)
    out[static_cast<std::size_t>(i) * out_stride + c] = from_float<Element>(row[c]);
}

launch_shape one_block_a_row(const char* name, std::uint32_t rows, std::uint32_t width, stream_handle in) {
  return {name, {rows}, {layer_norm_threads(width)}, width * sizeof(float), in};
}

}  // namespace

result<void> embed(stream_handle in, const device_batch& rows, element type, const void* table,
                   std::uint32_t table_stride, norm_weights ln0, float* x, std::uint32_t width) {
  return with_element(type, [&]<typename Element>() {
    return launch(one_block_a_row("embed", rows.room.rows, width, in), embed_kernel<Element>, rows,
                  static_cast<const Element*>(table), table_stride, ln0, x, width);
  });
}

result<void> norm_wanted(stream_handle in, const device_batch& rows, element type, const float* x, norm_weights ln_out,
                         void* out, std::uint32_t out_stride, std::uint32_t width) {
  return with_element(type, [&]<typename Element>() {
    return launch(one_block_a_row("norm_wanted", rows.room.wanted, width, in), norm_wanted_kernel<Element>, rows, x,
                  ln_out, static_cast<Element*>(out), out_stride, width);
  });
}

}  // namespace skein::kernels::gpu
