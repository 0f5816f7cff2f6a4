// The matrix product on the tensor cores of sm_90a. Weights stand on the 64-row side of the instruction, the rows of
// the batch on the other, which may be as narrow as eight: few rows waste nothing.
//
// A block is one producer warp and one or two warpgroups of consumers. One thread of the producer lets the copy engine
// fill a ring of stages, a tile of weights and one of inputs each, 64 inputs deep; the consumers multiply what has
// arrived and give stages back. Weights do not depend on the kernel before, so the first ring of them is asked for
// before that kernel has ended; and a kernel lets its successor begin while it works (few rows: as soon as it knows
// that all before it are over; the ring of the next is then filled behind its own) or when it has asked for its last
// tiles. Not before its own wait, since who comes next may read, without waiting, what the kernels before this one
// wrote; but where it does not (next_may_begin).
//
// Floor: decode reads every weight once, so time >= bytes of weights / bandwidth up to about 180 rows, then
// 2 * rows * weights / FLOP rate. Up to 128 rows run as one block a (64 or 128 outputs, segment), for which a matrix is
// cut into as many segments as make blocks for all multiprocessors. More rows run on as many blocks as there are
// multiprocessors, each of which takes tiles of 128 outputs by 128 rows in turn and adds up the segments itself. Both
// give the same bits.
#include <algorithm>
#include <array>
#include <initializer_list>

#include "base/check.hpp"
#include "kernels/gpu/device/convert.cuh"
#include "kernels/gpu/device/overlap.cuh"
#include "kernels/gpu/device/tile_copy.cuh"
#include "kernels/gpu/device/vec.cuh"
#include "kernels/gpu/device/wgmma.cuh"
#include "kernels/gpu/matmul_hopper.hpp"

namespace skein::kernels::gpu {

namespace {

constexpr std::uint32_t group_outputs = 64;  // of one warpgroup
constexpr unsigned warpgroup = 128;
constexpr std::uint32_t row_bytes = matrix_tile * 2;  // of a tile, in either type
constexpr std::uint32_t raster_tiles = 16;            // tiles of outputs whose weights should stay in the L2 cache

/// How a block works: `groups_` warpgroups of 64 outputs each, by `columns_` rows of the batch. It takes tiles in turn
/// and sums all segments of each when it is `whole_`; else it sums one segment of one tile. `blocks_each_` of them fit
/// on a multiprocessor.
template <int groups_, int columns_, int stages_, int blocks_each_, bool whole_, bool adds_up_ = whole_>
struct tiling {
  static constexpr int groups = groups_, columns = columns_, stages = stages_;
  static constexpr int blocks_each = blocks_each_;
  static constexpr bool adds_up = adds_up_;
  static constexpr bool whole = whole_;
  static constexpr std::uint32_t outputs = groups * group_outputs;
  static constexpr std::uint32_t weight_bytes = outputs * row_bytes, input_bytes = columns * row_bytes;
  static constexpr std::uint32_t stage_bytes = weight_bytes + input_bytes;
  static constexpr int staged_columns =  // that lie in shared memory at once on their way out; whole sixteens
      columns < 128 || columns % 128 == 0 ? std::min(columns, 128)
      : columns % 96 == 0                 ? 96
                                          : 80;
  static_assert(!whole || columns % staged_columns == 0);
  static constexpr std::uint32_t result_bytes = whole ? outputs * staged_columns * 2 : 0;  // in either type
  static constexpr std::size_t shared_bytes =
      1024 + std::size_t{stages} * (stage_bytes + 2 * sizeof(phase_barrier)) + result_bytes;
  /// Wide tiles need more registers than an equal share: a warpgroup of producers leaves most of its own to the others.
  static constexpr bool moves_registers = columns > 128;
  static constexpr unsigned consumers = groups * warpgroup, threads = consumers + (moves_registers ? warpgroup : 32);
};

/// A product as blocks see it.
struct placed_product {
  CUtensorMap weights, inputs;
  void* out;
  std::size_t part_stride;
  std::uint32_t outputs, out_stride;
  std::uint32_t depth, segment_depth;  // in tiles of 64 inputs
  std::uint32_t tiles;                 // of outputs, for each segment that has blocks of its own
  std::uint32_t first_item;            // of the launch
  finish how;
};

struct placed_products {
  placed_product of[products_max];
  std::uint32_t count, items, row_tiles, rows;  // items: tiles of outputs, times segments that have blocks of their own
  bool next_may_begin;
};

/// A tile: whose it is, and its first output, row and 64 inputs.
struct work_item {
  const placed_product* product;
  std::uint32_t output, row, segment, first, count;
};

template <typename t>
__device__ work_item find_work(const placed_products& all, std::uint32_t item) {
  std::uint32_t row_tile = 0;
  if (all.row_tiles > 1) {  // neighbours share weights and inputs: some tiles of outputs, then the next rows
    const std::uint32_t band = item / (raster_tiles * all.row_tiles), inside = item % (raster_tiles * all.row_tiles);
    const std::uint32_t first = band * raster_tiles, height = min(raster_tiles, all.items - first);
    item = first + inside % height;
    row_tile = inside / height;
  }
  std::uint32_t which = all.count - 1;
  while (item < all.of[which].first_item) --which;
  const placed_product& p = all.of[which];
  const std::uint32_t inside = item - p.first_item, segment = inside / p.tiles, first = segment * p.segment_depth;
  return {&p,
          inside % p.tiles * t::outputs,
          row_tile * t::columns,
          segment,
          first,
          t::whole ? p.depth : min(p.segment_depth, p.depth - first)};
}

struct block_memory {
  std::byte *stages, *result;
  phase_barrier *full, *empty;
};

template <typename t>
__device__ block_memory lay_out_memory() {
  extern __shared__ std::byte memory_of_launch[];
  std::byte* const stages = memory_of_launch + (1024 - shared_address(memory_of_launch) % 1024) % 1024;
  std::byte* const result = stages + t::stages * t::stage_bytes;
  auto* const barriers = reinterpret_cast<phase_barrier*>(result + t::result_bytes);
  return {stages, result, barriers, barriers + t::stages};
}

/// The stages of a block in turn, counted over all its tiles.
template <typename t>
struct stage_turn {
  unsigned stage = 0, phase = 0;
  __device__ void next() {
    if (++stage == t::stages) stage = 0, ++phase;
  }
};

template <typename t>
__device__ void produce(const placed_products& all, const block_memory& memory) {
  const std::uint32_t tiles = all.items * all.row_tiles;
  const auto copy_weights = [&](const work_item& work, std::uint32_t i, unsigned stage) {
    memory.full[stage].arrive_expecting(t::stage_bytes);
    copy_tile(memory.stages + stage * t::stage_bytes, work.product->weights, (work.first + i) * matrix_tile,
              work.output, memory.full[stage], t::whole ? cache_use::shared : cache_use::streamed);
  };
  const auto copy_inputs = [&](const work_item& work, std::uint32_t i, unsigned stage) {
    copy_tile(memory.stages + stage * t::stage_bytes + t::weight_bytes, work.product->inputs,
              (work.first + i) * matrix_tile, work.row, memory.full[stage], cache_use::shared);
  };
  work_item work = find_work<t>(all, blockIdx.x);
  const std::uint32_t early = min(work.count, static_cast<std::uint32_t>(t::stages));
  for (std::uint32_t i = 0; i < early; ++i) copy_weights(work, i, i);
  if (all.next_may_begin) let_next_kernel_begin();
  wait_for_kernels_before();
  if (t::columns <= 32) let_next_kernel_begin();
  for (std::uint32_t i = 0; i < early; ++i) copy_inputs(work, i, i);
  stage_turn<t> turn;
  std::uint32_t i = early;
  if (early == t::stages)
    turn.phase = 1;
  else
    turn.stage = early;
  for (std::uint32_t tile = blockIdx.x;;) {
    for (; i < work.count; ++i, turn.next()) {
      if (turn.phase > 0) memory.empty[turn.stage].wait(turn.phase - 1);
      copy_weights(work, i, turn.stage);
      copy_inputs(work, i, turn.stage);
    }
    tile += gridDim.x;
    if (!t::whole || tile >= tiles) break;
    work = find_work<t>(all, tile);
    i = 0;
  }
  let_next_kernel_begin();
}

/// sums = sum over the tile's inputs, segment by segment.
template <typename Element, typename t>
__device__ void multiply(const work_item& work, const block_memory& memory, stage_turn<t>& turn,
                         float (&sums)[t::columns / 2]) {
  constexpr int size = t::columns / 2;
  [[maybe_unused]] float done[t::adds_up ? size : 1];
  const unsigned group = threadIdx.x / warpgroup;
  const std::uint32_t segment_depth = work.product->segment_depth;
  std::uint32_t in_segment = 0;
  unsigned before = 0;
  for (std::uint32_t i = 0; i < work.count; ++i, turn.next()) {
    if constexpr (t::adds_up)
      if (in_segment == segment_depth) {
        wgmma_wait<0>();
        const bool first = i == segment_depth;
#pragma unroll
        for (int j = 0; j < size; ++j) done[j] = first ? sums[j] : done[j] + sums[j];
        in_segment = 0;
      }
    memory.full[turn.stage].wait(turn.phase);
    const std::byte* const tiles = memory.stages + turn.stage * t::stage_bytes;
    const std::uint64_t weights = tile_descriptor(tiles + group * group_outputs * row_bytes);
    const std::uint64_t inputs = tile_descriptor(tiles + t::weight_bytes);
    wgmma_begin();
#pragma unroll
    for (int k = 0; k < 4; ++k)
      wgmma<Element, t::columns>(sums, weights + 2 * k, inputs + 2 * k, k > 0 || in_segment > 0);
    wgmma_commit();
    wgmma_wait<1>();  // the tile before is used up
    if (i > 0 && threadIdx.x % 32 == 0) memory.empty[before].arrive();
    before = turn.stage;
    ++in_segment;
  }
  wgmma_wait<0>();
  if (threadIdx.x % 32 == 0) memory.empty[before].arrive();
  if constexpr (t::adds_up)
    if (work.count > segment_depth) {
#pragma unroll
      for (int j = 0; j < size; ++j) sums[j] = done[j] + sums[j];
    }
}

template <int size, typename Make>
__device__ __forceinline__ void replace_each(float (&sums)[size], Make make) {
#pragma unroll
  for (int j = 0; j < size; ++j) sums[j] = make(sums[j]);
}

template <int size>
__device__ __forceinline__ void finish_each(finish how, float (&sums)[size]) {
  if (how == finish::relu_squared) return replace_each(sums, [](float sum) { return sum > 0 ? sum * sum : 0; });
  if (how != finish::sigmoid && how != finish::tanh) return;
  const float scale = how == finish::tanh ? 2 : 1;  // tanh(x) = 2 sigmoid(2 x) - 1
  replace_each(sums, [=](float sum) { return scale * __fdividef(1, 1 + __expf(-scale * sum)) + (1 - scale); });
}

/// The sums straight to memory: eight neighbouring outputs at a time.
template <typename t, typename Put>
__device__ void for_each_sum(const work_item& work, std::uint32_t rows, const float (&sums)[t::columns / 2], Put put) {
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t first_output = work.output + warp * 16 + lane / 4, first_row = work.row + lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < t::columns / 8; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t output = first_output + i / 2 * 8, row = first_row + 8 * j + i % 2;
      if (output < work.product->outputs && row < rows)
        put(std::size_t{row} * work.product->out_stride + output, sums[4 * j + i]);
    }
}

template <typename Element>
__device__ std::uint32_t pair(float low, float high) {
  union {
    Element elements[2];
    std::uint32_t bits;
  } as{{from_float<Element>(low), from_float<Element>(high)}};
  return as.bits;
}

template <typename t>
__device__ void wait_for_consumers() {
  asm volatile("bar.sync 1, %0;" ::"n"(t::consumers) : "memory");
}

/// As elements, through shared memory: [row, output], the 16-byte pieces of a row exclusive-ored by the row modulo
/// eight.
template <typename Element, typename t>
__device__ void store_tile(const work_item& work, std::uint32_t rows, std::byte* result,
                           const float (&sums)[t::columns / 2]) {
  constexpr unsigned pitch = t::outputs * sizeof(Element), pieces = pitch / 16;
  const placed_product& p = *work.product;
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool in_packets = p.out_stride % packet<Element>::size == 0;
#pragma unroll
  for (int first = 0; first < t::columns; first += t::staged_columns) {
    wait_for_consumers<t>();  // nobody still reads what lay there
#pragma unroll
    for (int column = 0; column < t::staged_columns; column += 16) {
      // Four 8 x 8 matrices, transposed on the way: outputs 0-7 and 8-15 of the warp, for eight rows and the next
      // eight.
      const unsigned row = column + lane % 8 + lane / 16 * 8, piece = warp * 2 + lane / 8 % 2;
      const std::uint32_t to = shared_address(result + row * pitch + (piece ^ row % 8) * 16);
      const int j = (first + column) / 2;
      asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                   "r"(pair<Element>(sums[j], sums[j + 1])), "r"(pair<Element>(sums[j + 2], sums[j + 3])),
                   "r"(pair<Element>(sums[j + 4], sums[j + 5])), "r"(pair<Element>(sums[j + 6], sums[j + 7]))
                   : "memory");
    }
    wait_for_consumers<t>();
    for (unsigned i = threadIdx.x; i < t::staged_columns * pieces; i += t::consumers) {
      const unsigned staged = i / pieces, piece = i % pieces;
      const std::uint32_t row = work.row + first + staged, output = work.output + piece * packet<Element>::size;
      if (row >= rows || output >= p.outputs) continue;
      const std::byte* const from = result + staged * pitch + (piece ^ staged % 8) * 16;
      const auto values = load_packet(reinterpret_cast<const Element*>(from));
      Element* const to = static_cast<Element*>(p.out) + std::size_t{row} * p.out_stride + output;
      if (in_packets && output + packet<Element>::size <= p.outputs)
        store_packet(to, values);
      else
        for (unsigned e = 0; e < packet<Element>::size && output + e < p.outputs; ++e) to[e] = values.values[e];
    }
  }
}

template <typename Element, typename t>
__device__ void store_elements(const work_item& work, std::uint32_t rows, const block_memory& memory,
                               const float (&sums)[t::columns / 2]) {
  if constexpr (t::whole)
    store_tile<Element, t>(work, rows, memory.result, sums);
  else
    for_each_sum<t>(work, rows, sums, [&](std::size_t at, float sum) {
      static_cast<Element*>(work.product->out)[at] = from_float<Element>(sum);
    });
}

template <typename Element, typename t>
__device__ void store(const work_item& work, std::uint32_t rows, const block_memory& memory,
                      const float (&sums)[t::columns / 2]) {
  const placed_product& p = *work.product;
  auto* const floats = static_cast<float*>(p.out) + work.segment * p.part_stride;
  switch (p.how) {
    case finish::add_f32:  // by the L2 cache, one addition an output: here it would be a wait for each
      return for_each_sum<t>(work, rows, sums, [&](std::size_t at, float sum) { atomicAdd(floats + at, sum); });
    case finish::store_f32:
    case finish::store_parts:
      return for_each_sum<t>(work, rows, sums, [&](std::size_t at, float sum) { floats[at] = sum; });
    default: break;
  }
  if (p.how == finish::store_f16)
    store_elements<half, t>(work, rows, memory, sums);
  else
    store_elements<Element, t>(work, rows, memory, sums);
}

template <typename Element, typename t>
__global__ void __launch_bounds__(t::threads, t::blocks_each)
    matmul_hopper_kernel(const __grid_constant__ placed_products all) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  const block_memory memory = lay_out_memory<t>();
  if (threadIdx.x == t::consumers) {
    for (int stage = 0; stage < t::stages; ++stage) memory.full[stage].init(1), memory.empty[stage].init(4 * t::groups);
    publish_barriers();
  }
  __syncthreads();
  if (threadIdx.x >= t::consumers) {
    if constexpr (t::moves_registers) keep_registers<24>();
    if (threadIdx.x == t::consumers) produce<t>(all, memory);
    return;
  }
  if constexpr (t::moves_registers) take_registers<240>();
  const std::uint32_t tiles = all.items * all.row_tiles;
  stage_turn<t> turn;
  for (std::uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const work_item work = find_work<t>(all, tile);
    float sums[t::columns / 2];
    multiply<Element, t>(work, memory, turn, sums);
    wait_for_kernels_before();  // over long since; but every thread that reads or writes has to ask
    finish_each(work.product->how, sums);
    store<Element, t>(work, all.rows, memory, sums);
  }
#endif
}

/// Describes rows of `width` elements for the copy engine, which takes boxes of 64 by `box_rows`.
CUtensorMap describe(element type, const void* data, std::uint32_t width, std::size_t stride, std::uint32_t rows,
                     std::uint32_t box_rows) {
  using encode_function = decltype(&cuTensorMapEncodeTiled);
  static const auto encode = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult how;
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &how) ==
                  cudaSuccess &&
              found,
          "a driver without tensor maps");
    return reinterpret_cast<encode_function>(found);
  }();
  CUtensorMap map;
  const cuuint64_t sizes[] = {width, rows}, strides[] = {stride * 2};
  const cuuint32_t box[] = {matrix_tile, box_rows}, steps[] = {1, 1};
  const auto done =
      encode(&map, type == element::f16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2,
             const_cast<void*>(data), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
             CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  check(done == CUDA_SUCCESS, "a tensor map that the driver refuses");
  return map;
}

template <typename t>
result<void> launch_tiles(stream_handle in, element type, std::span<const product> products, std::uint32_t rows) {
  const auto multiprocessors = multiprocessor_count();
  if (!multiprocessors) return multiprocessors.error();
  placed_products all{};
  all.rows = rows;
  all.next_may_begin = products.front().next_may_begin;
  all.row_tiles = (rows + t::columns - 1) / t::columns;
  for (const product& p : products) {
    placed_product& to = all.of[all.count++];
    to.depth = padded(p.inputs) / matrix_tile;
    to.segment_depth = segment_tiles(p);
    to.tiles = (p.outputs + t::outputs - 1) / t::outputs;
    to.weights = describe(type, p.matrix, to.depth * matrix_tile, padded(p.inputs), padded(p.outputs), t::outputs);
    to.inputs = describe(type, p.in, to.depth * matrix_tile, p.in_stride, rows, t::columns);
    to.out = p.out, to.part_stride = p.part_stride;
    to.outputs = p.outputs, to.out_stride = p.out_stride, to.how = p.how;
    to.first_item = all.items;
    all.items += to.tiles * (t::whole ? 1 : p.segments);
  }
  const auto start = [&](auto kernel) {
    if (const auto r = outcome(
            cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(t::shared_bytes)),
            "matmul's shared memory");
        !r)
      return r;
    const std::uint32_t tiles = all.items * all.row_tiles;
    const std::uint32_t blocks = t::whole ? std::min(tiles, *multiprocessors) : tiles;
    return launch({"matmul", {blocks}, {t::threads}, t::shared_bytes, in, true}, kernel, all);
  };
  return type == element::f16 ? start(matmul_hopper_kernel<half, t>) : start(matmul_hopper_kernel<bf16, t>);
}

/// What a tile of 128 outputs takes, relative to others: measured were 547 TFLOP/s at 128 columns and 620 at 256; those
/// between are on a line.
constexpr std::uint32_t tile_time(std::uint32_t columns) { return 550 + 14 * columns; }

}  // namespace

bool hopper_splits(std::span<const product> products, std::uint32_t rows) {
  if (rows <= 128 || rows > split_rows_max) return rows <= 128;
  std::uint32_t tiles = 0;
  for (const product& p : products) tiles += (p.outputs + 127) / 128 * ((rows + 127) / 128);
  return tiles < 100;  // too few for the multiprocessors of any card with these tensor cores
}

result<void> matmul_hopper(stream_handle in, element type, std::span<const product> products, const std::uint32_t*,
                           std::uint32_t rows_room) {
  check(!products.empty());
  check(products.size() <= products_max);
  check(type != element::f32);
  bool segments = false, parts = false;
  std::uint32_t tiles = 0, split_tiles = 0;
  for (const product& p : products) {
    check(p.in_stride >= padded(p.inputs));
    check((p.segments - 1) * segment_tiles(p) * matrix_tile < padded(p.inputs));
    segments |= p.segments > 1;
    parts |= p.how == finish::store_parts;
    tiles += (p.outputs + 127) / 128, split_tiles += (p.outputs + 127) / 128 * p.segments;
  }
  check(!segments || parts == hopper_splits(products, rows_room));
  if (rows_room <= 8) return launch_tiles<tiling<1, 8, 12, 2, false>>(in, type, products, rows_room);
  if (rows_room <= 16) return launch_tiles<tiling<1, 16, 10, 2, false>>(in, type, products, rows_room);
  if (rows_room <= 32) return launch_tiles<tiling<1, 32, 9, 2, false>>(in, type, products, rows_room);
  if (rows_room <= 64) return launch_tiles<tiling<2, 64, 8, 1, false>>(in, type, products, rows_room);
  if (rows_room <= 128) return launch_tiles<tiling<2, 128, 6, 1, false>>(in, type, products, rows_room);
  const auto multiprocessors = multiprocessor_count();
  if (!multiprocessors) return multiprocessors.error();
  const auto fastest = [&](std::uint32_t blocks, std::initializer_list<std::uint32_t> choice) {
    return *std::ranges::min_element(choice, {}, [&](std::uint32_t columns) {
      const std::uint32_t all = blocks * ((rows_room + columns - 1) / columns);
      return (all + *multiprocessors - 1) / *multiprocessors * tile_time(columns);
    });
  };
  if (parts)
    return fastest(split_tiles, {128, 160}) == 128
               ? launch_tiles<tiling<2, 128, 6, 1, false>>(in, type, products, rows_room)
               : launch_tiles<tiling<2, 160, 6, 1, false>>(in, type, products, rows_room);
  if (segments)  // whose sums stand in registers as well: there is no room for those of wider tiles
    switch (fastest(tiles, {128, 160, 192})) {
      case 128: return launch_tiles<tiling<2, 128, 6, 1, true>>(in, type, products, rows_room);
      case 160: return launch_tiles<tiling<2, 160, 5, 1, true>>(in, type, products, rows_room);
      default: return launch_tiles<tiling<2, 192, 5, 1, true>>(in, type, products, rows_room);
    }
  switch (fastest(tiles, {128, 160, 192, 240, 256})) {
    case 128: return launch_tiles<tiling<2, 128, 6, 1, true, false>>(in, type, products, rows_room);
    case 160: return launch_tiles<tiling<2, 160, 5, 1, true, false>>(in, type, products, rows_room);
    case 192: return launch_tiles<tiling<2, 192, 5, 1, true, false>>(in, type, products, rows_room);
    case 240: return launch_tiles<tiling<2, 240, 4, 1, true, false>>(in, type, products, rows_room);
    default: return launch_tiles<tiling<2, 256, 4, 1, true, false>>(in, type, products, rows_room);
  }
}

#if defined(SKEIN_SM90A)
constexpr bool has_code = true;
#else
constexpr bool has_code = false;  // the build names no sm_90a among its targets
#endif

result<matmul_functions> choose_matmul(int device, element type) {
  int major = 0;
  if (const auto r =
          outcome(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "asking for it");
      !r)
    return r.error();
  if (!has_code || major != 9 || type == element::f32) return plain_matmul();
  return matmul_functions{"tensor cores of sm_90a", matmul_hopper, hopper_splits};
}

}  // namespace skein::kernels::gpu
