// The value GEMM of channel mixing for inputs that are mostly zeros. A block processes a segment of the inputs for a
// tile of columns of the transposed matrix: it lists the nonzero inputs, and each quarter of the block adds up their
// rows, with several loads in flight. The last block of a column tile adds the segments' sums to x.
#include "kernels/gpu/model/sparse_value.hpp"

#include "base/check.hpp"
#include "kernels/gpu/device/last_block.cuh"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/device/vec.cuh"
#include "kernels/gpu/device/warp.cuh"

namespace skein::kernels::gpu {

namespace {

constexpr unsigned sparse_value_threads = 256;
constexpr unsigned quarters = 4;
constexpr unsigned quarter_threads = sparse_value_threads / quarters;  // whole warps on every GPU
constexpr unsigned quarter_inputs = 128;
constexpr unsigned segment_inputs = quarters * quarter_inputs;
constexpr unsigned passes = quarter_inputs / quarter_threads;  // over a quarter's inputs
constexpr unsigned loads_at_once = 16;  // of weights, or of segment sums: each round waits for the memory once
constexpr unsigned turned_tile = 64;

template <typename Element>
constexpr unsigned tile_columns = quarter_threads* packet<Element>::size;

constexpr std::uint32_t segments_for(std::uint32_t inputs) { return (inputs + segment_inputs - 1) / segment_inputs; }

constexpr std::size_t parts_for(std::uint32_t outputs, std::uint32_t inputs) {
  return std::size_t{sparse_values::rows_max} * segments_for(padded(inputs)) * padded(outputs);
}
constexpr std::size_t finished_for(std::uint32_t outputs) {
  return std::size_t{sparse_values::rows_max} * padded(outputs) / matrix_tile;
}
constexpr std::size_t turned_bytes(std::uint32_t outputs, std::uint32_t inputs, element type) {
  return std::size_t{padded(outputs)} * padded(inputs) * element_bytes(type);
}

template <typename Element>
struct sparse_work {
  const Element* matrix;  ///< [inputs, columns]
  const Element* hidden;  ///< [rows, inputs]
  float* parts;           ///< [rows, segments, columns]
  std::uint32_t* finished;
  float* x;
  std::uint32_t inputs, columns;  ///< padded
  std::uint32_t outputs;
  const std::uint32_t* row_count;
};

/// The nonzero inputs of a quarter, in order.
struct input_list {
  std::uint16_t index[quarter_inputs];  ///< within the segment
  float value[quarter_inputs];
};

/// Fills the lists of all quarters; returns the number of inputs in this thread's list. All threads take part.
template <typename Element>
__device__ unsigned list_inputs(const Element* inputs, std::uint32_t count, input_list* lists) {
  constexpr unsigned warps = quarter_threads / warp_width;  // per quarter
  __shared__ std::uint64_t masks[quarters][passes * warps];
  const unsigned quarter = threadIdx.x / quarter_threads, place = threadIdx.x % quarter_threads;
  const unsigned warp = place / warp_width, lane = place % warp_width;
  float values[passes];
  for (unsigned pass = 0; pass < passes; ++pass) {
    const std::uint32_t i = quarter * quarter_inputs + pass * quarter_threads + place;
    values[pass] = i < count ? to_float(inputs[i]) : 0.0f;
    const std::uint64_t mask = ballot(values[pass] != 0);
    if (lane == 0) masks[quarter][pass * warps + warp] = mask;
  }
  __syncthreads();
  unsigned listed = 0;  // in the preceding masks
  for (unsigned m = 0; m < passes * warps; ++m) {
    const std::uint64_t mask = masks[quarter][m];
    if (m % warps == warp && (mask >> lane & 1) != 0) {
      const unsigned pass = m / warps, at = listed + count_bits(mask & ((std::uint64_t{1} << lane) - 1));
      lists[quarter].index[at] = static_cast<std::uint16_t>(quarter * quarter_inputs + pass * quarter_threads + place);
      lists[quarter].value[at] = values[pass];
    }
    listed += count_bits(mask);
  }
  __syncthreads();
  return listed;
}

template <typename Element>
__global__ void __launch_bounds__(sparse_value_threads) sparse_value_kernel(sparse_work<Element> work) {
  constexpr unsigned size = packet<Element>::size, columns = tile_columns<Element>;
  __shared__ input_list lists[quarters];
  __shared__ float sums[quarters][columns];
  pdl_wait();
  pdl_launch_dependents();  // not earlier, see docs/gpu.md, "Programmatic dependent launch"
  const std::uint32_t row = blockIdx.z, segment = blockIdx.y, tile = blockIdx.x;
  if (row >= *work.row_count) return;
  const std::uint32_t first_input = segment * segment_inputs, inputs_left = work.inputs - first_input;
  const unsigned listed = list_inputs(work.hidden + std::size_t{row} * work.inputs + first_input,
                                      inputs_left < segment_inputs ? inputs_left : segment_inputs, lists);

  const unsigned quarter = threadIdx.x / quarter_threads, place = threadIdx.x % quarter_threads;
  const std::uint32_t column = tile * columns + place * size;
  float sum[size] = {};
  if (column < work.columns) {
    const Element* const matrix = work.matrix + std::size_t{first_input} * work.columns + column;
    const input_list& list = lists[quarter];
    for (unsigned first = 0; first < listed; first += loads_at_once) {
      packet<Element> weights[loads_at_once];
#pragma unroll
      for (unsigned i = 0; i < loads_at_once; ++i)
        if (first + i < listed)
          weights[i] = load_packet_once(matrix + std::size_t{list.index[first + i]} * work.columns);
#pragma unroll
      for (unsigned i = 0; i < loads_at_once; ++i)
        if (first + i < listed)
          for (unsigned e = 0; e < size; ++e)
            sum[e] = multiply_add(to_float(weights[i].values[e]), list.value[first + i], sum[e]);
    }
  }
  for (unsigned e = 0; e < size; ++e) sums[quarter][place * size + e] = sum[e];
  __syncthreads();

  const std::uint32_t segments = gridDim.y, columns_left = work.columns - tile * columns;
  const std::uint32_t here = columns_left < columns ? columns_left : columns;
  float* const parts = work.parts + std::size_t{row} * segments * work.columns + tile * columns;
  for (unsigned c = threadIdx.x; c < here; c += sparse_value_threads) {
    float total = 0;
    for (unsigned q = 0; q < quarters; ++q) total += sums[q][c];
    parts[std::size_t{segment} * work.columns + c] = total;
  }
  if (!ends_last(work.finished + row * gridDim.x + tile, segments)) return;
  for (unsigned c = threadIdx.x; c < here && tile * columns + c < work.outputs; c += sparse_value_threads) {
    float& x = work.x[std::size_t{row} * work.outputs + tile * columns + c];
    const float before = x;
    float total = 0;
    for (std::uint32_t first = 0; first < segments; first += loads_at_once) {
      float of_segment[loads_at_once];
#pragma unroll
      for (unsigned i = 0; i < loads_at_once; ++i)
        if (first + i < segments) of_segment[i] = parts[std::size_t{first + i} * work.columns + c];
#pragma unroll
      for (unsigned i = 0; i < loads_at_once; ++i)
        if (first + i < segments) total += of_segment[i];
    }
    x = before + total;
  }
}

template <typename Element>
__global__ void __launch_bounds__(sparse_value_threads)
    turn_kernel(const Element* matrix, Element* turned, std::uint32_t height, std::uint32_t width) {
  __shared__ Element tile[turned_tile][turned_tile + 2];
  const std::uint32_t top = blockIdx.y * turned_tile, left = blockIdx.x * turned_tile;
  for (unsigned i = threadIdx.x; i < turned_tile * turned_tile; i += sparse_value_threads)
    tile[i / turned_tile][i % turned_tile] =
        matrix[std::size_t{top + i / turned_tile} * width + left + i % turned_tile];
  __syncthreads();
  for (unsigned i = threadIdx.x; i < turned_tile * turned_tile; i += sparse_value_threads)
    turned[std::size_t{left + i / turned_tile} * height + top + i % turned_tile] =
        tile[i % turned_tile][i / turned_tile];
}

}  // namespace

sparse_values::sparse_values(std::span<const device_layer> layers, element type, stream_handle in)
    : type_(type),
      outputs_(layers.front().ffn_value.outputs),
      inputs_(layers.front().ffn_value.inputs),
      parts_(parts_for(outputs_, inputs_), "sparse values"),
      finished_(finished_for(outputs_), "sparse values") {
  static_assert(turned_tile == matrix_tile);
  require(fill_with_zeros(finished_.data(), finished_.bytes(), in));
  const std::uint32_t height = padded(outputs_), width = padded(inputs_);
  for (const device_layer& layer : layers) {
    check(layer.ffn_value.outputs == outputs_ && layer.ffn_value.inputs == inputs_);
    auto& turned = turned_.emplace_back(turned_bytes(outputs_, inputs_, type), "sparse values");
    require(with_element(type, [&]<typename Element>() {
      const launch_shape shape{"transpose", {width / turned_tile, height / turned_tile}, {sparse_value_threads}, 0, in};
      return launch(shape, turn_kernel<Element>, static_cast<const Element*>(layer.ffn_value.data),
                    reinterpret_cast<Element*>(turned.data()), height, width);
    }));
  }
}

result<void> sparse_values::add(stream_handle in, std::uint32_t layer, const void* hidden,
                                const std::uint32_t* row_count, std::uint32_t rows_room, float* x) const {
  check(rows_room <= rows_max);
  const std::uint32_t inputs = padded(inputs_), columns = padded(outputs_);
  return with_element(type_, [&]<typename Element>() {
    const std::uint32_t tiles = (columns + tile_columns<Element> - 1) / tile_columns<Element>;
    const launch_shape shape{
        "sparse_value", {tiles, segments_for(inputs), rows_room}, {sparse_value_threads}, 0, in, true};
    return launch(shape, sparse_value_kernel<Element>,
                  {reinterpret_cast<const Element*>(turned_[layer].data()), static_cast<const Element*>(hidden),
                   parts_.data(), finished_.data(), x, inputs, columns, outputs_, row_count});
  });
}

std::size_t sparse_values::bytes() const {
  std::size_t bytes = parts_.bytes() + finished_.bytes();
  for (const auto& turned : turned_) bytes += turned.bytes();
  return bytes;
}

std::size_t sparse_values::planned_bytes(std::uint32_t layers, std::uint32_t outputs, std::uint32_t inputs,
                                         element type) {
  return layers * turned_bytes(outputs, inputs, type) + parts_for(outputs, inputs) * sizeof(float) +
         finished_for(outputs) * sizeof(std::uint32_t);
}

}  // namespace skein::kernels::gpu
