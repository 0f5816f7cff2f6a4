// GEMMs over packed panels.
//
// A task is a few panels of one matrix times a block of rows. Its inner kernel is the tile: up to 12 rows times one or
// more "strips" (a strip is one vector of line dwords, that is two vectors of outputs: j and j + 16), whose sums stay
// in registers while it walks down the panel. With many rows the inputs are processed in blocks, so that a block of a
// panel stays in the L1 cache for all rows, and a block of all rows stays in the L2 for all panels of the task; between
// blocks the fp32 sums are kept in memory unchanged. With one row a tile takes several strips instead, for more
// concurrent streams from memory. Neither changes the order of any sum.
#include "kernels/cpu/matmul.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/matmul.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/coded_tile-inl.hpp"
#include "kernels/cpu/fp8_tile-inl.hpp"
#include "kernels/cpu/panel-inl.hpp"
#include "kernels/cpu/vector_math-inl.hpp"

#ifndef SKEIN_KERNELS_CPU_MATMUL_TASK
#define SKEIN_KERNELS_CPU_MATMUL_TASK
namespace skein::kernels::cpu {

constexpr std::size_t task_panels_max = 4;
constexpr std::size_t task_rows_max = 192;  // with 256 inputs: 192 KiB of the L2
constexpr std::size_t sums_per_thread = task_panels_max * task_rows_max * panel_outputs;
constexpr std::size_t gemms_max = 8;
constexpr std::size_t smallest_group = 32;

struct task {
  const gemm* what;
  const std::byte* in;               // floats, or coded rows for a quantised matrix
  std::size_t in_stride, groups_at;  // bytes
  std::size_t first_row, rows, first_panel, panels;
  float* sums;  // [panels, rows, 32]
  bool fuses;   // use fused products of integers if this CPU has them
};

}  // namespace skein::kernels::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace skein::kernels::cpu::HWY_NAMESPACE {

// How a strip of a line becomes two vectors of weights: outputs j .. and j + 16 ..
struct f32_strip {
  static constexpr weight_element element = weight_element::f32;
  static HWY_INLINE void load(floats d, const std::byte* line, std::size_t strip, float_vector& low,
                              float_vector& high) {
    const auto* weights = reinterpret_cast<const float*>(line) + strip * lanes;
    low = hn::Load(d, weights);
    high = hn::Load(d, weights + half_panel);
  }
};

struct bf16_strip {
  static constexpr weight_element element = weight_element::bf16;
  static HWY_INLINE void load(floats d, const std::byte* line, std::size_t strip, float_vector& low,
                              float_vector& high) {
    widen_pairs(d, line + 4 * strip * lanes, low, high);
  }
};

struct f16_strip {
  static constexpr weight_element element = weight_element::f16;
  static HWY_INLINE void load(floats d, const std::byte* line, std::size_t strip, float_vector& low,
                              float_vector& high) {
    const hn::Rebind<hwy::float16_t, floats> half;
    const auto* weights = reinterpret_cast<const hwy::float16_t*>(line) + strip * lanes;
    low = hn::PromoteTo(d, hn::LoadU(half, weights));
    high = hn::PromoteTo(d, hn::LoadU(half, weights + half_panel));
  }
};

constexpr bool is_quantised(weight_element element) { return element >= weight_element::int8; }

// sums[panel, row, output] += over source.inputs inputs, for kRows rows and kStrips strips from `strip` on.
template <class Strip, std::size_t kRows, std::size_t kStrips>
HWY_INLINE void tile(const tile_source& source, std::size_t strip, float* HWY_RESTRICT sums, std::size_t panel_sums) {
  const floats d;
  float_vector acc[kRows][kStrips][2];
  const std::byte* HWY_RESTRICT lines[kStrips];
  float* HWY_RESTRICT places[kStrips];
#pragma GCC unroll 4
  for (std::size_t s = 0; s < kStrips; ++s) {
    const std::size_t panel = (strip + s) / strips_per_panel;
    lines[s] = source.line + panel * source.panel_bytes;
    places[s] = sums + panel * panel_sums + (strip + s) % strips_per_panel * lanes;
  }
#pragma GCC unroll 12
  for (std::size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (std::size_t s = 0; s < kStrips; ++s) {
      acc[r][s][0] = source.first ? hn::Zero(d) : hn::Load(d, places[s] + r * panel_outputs);
      acc[r][s][1] = source.first ? hn::Zero(d) : hn::Load(d, places[s] + r * panel_outputs + half_panel);
    }
  }

  // Four row pointers, with the two offsets that an address mode can scale, leave enough registers for the rest.
  constexpr std::size_t kTriples = (kRows + 2) / 3;
  const float* HWY_RESTRICT rows[kTriples];
#pragma GCC unroll 4
  for (std::size_t t = 0; t < kTriples; ++t)
    rows[t] = reinterpret_cast<const float*>(source.in + 3 * t * source.in_stride);
  const std::size_t stride = source.in_stride / sizeof(float);

  constexpr std::size_t kLine = line_bytes(Strip::element);
  for (std::size_t i = 0; i < source.inputs; ++i) {
    float_vector weights[kStrips][2];
#pragma GCC unroll 4
    for (std::size_t s = 0; s < kStrips; ++s) {
      hwy::Prefetch(lines[s] + prefetch_lines * kLine);
      Strip::load(d, lines[s], (strip + s) % strips_per_panel, weights[s][0], weights[s][1]);
      lines[s] += kLine;
    }
#pragma GCC unroll 12
    for (std::size_t r = 0; r < kRows; ++r) {
      const auto in = hn::Set(d, rows[r / 3][r % 3 * stride + i]);
#pragma GCC unroll 4
      for (std::size_t s = 0; s < kStrips; ++s) {
        acc[r][s][0] = hn::MulAdd(in, weights[s][0], acc[r][s][0]);
        acc[r][s][1] = hn::MulAdd(in, weights[s][1], acc[r][s][1]);
      }
    }
  }

#pragma GCC unroll 12
  for (std::size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (std::size_t s = 0; s < kStrips; ++s) {
      hn::Store(acc[r][s][0], d, places[s] + r * panel_outputs);
      hn::Store(acc[r][s][1], d, places[s] + r * panel_outputs + half_panel);
    }
  }
}

// kRows rows times all strips of the task's panels.
template <class Strip, std::size_t kRows>
HWY_NOINLINE void tile_row(const tile_source& source, std::size_t strips, float* sums, std::size_t panel_sums) {
  constexpr std::size_t kStrips = strips_for(kRows);
  std::size_t strip = 0;
  if constexpr (Strip::element == weight_element::fp8) {
    for (; strip + kStrips <= strips; strip += kStrips) fp8_tile<kRows, kStrips>(source, strip, sums, panel_sums);
    for (; strip < strips; ++strip) fp8_tile<kRows, 1>(source, strip, sums, panel_sums);
  } else if constexpr (takes_integers(Strip::element)) {
    for (; strip + kStrips <= strips; strip += kStrips)
      coded_tile<Strip, kRows, kStrips>(source, strip, sums, panel_sums);
    for (; strip < strips; ++strip) coded_tile<Strip, kRows, 1>(source, strip, sums, panel_sums);
  } else {
    for (; strip + kStrips <= strips; strip += kStrips) tile<Strip, kRows, kStrips>(source, strip, sums, panel_sums);
    for (; strip < strips; ++strip) tile<Strip, kRows, 1>(source, strip, sums, panel_sums);
  }
}

using tile_row_function = void (*)(const tile_source&, std::size_t, float*, std::size_t);

template <class Strip, std::size_t... kRowsLessOne>
constexpr std::array<tile_row_function, sizeof...(kRowsLessOne)> tile_rows(std::index_sequence<kRowsLessOne...>) {
  return {tile_row<Strip, kRowsLessOne + 1>...};
}

template <class Strip>
void sum_task(const task& work) {
  static constexpr auto by_rows = tile_rows<Strip>(std::make_index_sequence<tile_rows_max>());
  const packed_matrix& matrix = *work.what->matrix;
  const std::size_t inputs = matrix.inputs(), panel_sums = work.rows * panel_outputs;
  const std::size_t groups = (work.rows + tile_rows_max - 1) / tile_rows_max;
  // A single group reads its panels once and needs no blocks.
  constexpr bool kQuantised = is_quantised(Strip::element);
  constexpr std::size_t kBlock = kQuantised ? 512 : 16384 / line_bytes(Strip::element);
  const std::size_t block = groups == 1 ? std::max<std::size_t>(inputs, 1) : kBlock;
  const std::size_t group = kQuantised ? matrix.format().group : block;
  constexpr std::size_t element_bytes = takes_integers(Strip::element) ? sizeof(std::int16_t) : sizeof(float);
  for (std::size_t input = 0; input == 0 || input < inputs; input += block) {
    const std::size_t panels_at_once = groups == 1 ? work.panels : 1;
    for (std::size_t panel = 0; panel < work.panels; panel += panels_at_once) {
      for (std::size_t g = 0; g < groups; ++g) {  // sizes differ by one row at most: with full groups and a tail of one
        const std::size_t row = work.rows * g / groups;  // row, the tail would wait for loads
        const std::size_t rows = work.rows * (g + 1) / groups - row;
        const std::byte* in = work.in + (work.first_row + row) * work.in_stride;
        const tile_source source{in + input * element_bytes,
                                 work.in_stride,
                                 in + work.groups_at + input / group * sizeof(coded_group),
                                 matrix.panel(work.first_panel + panel) + matrix.offset_of(input),
                                 matrix.panel_bytes(),
                                 std::min(block, inputs - input),
                                 group,
                                 input == 0,
                                 matrix.half_scales()};
        by_rows[rows - 1](source, panels_at_once * strips_per_panel,
                          work.sums + panel * panel_sums + row * panel_outputs, panel_sums);
      }
    }
  }
}

template <class Strip>
void sum_coded_task(const task& work) {
  if constexpr (can_fuse) {
    if (work.fuses && cpu_fuses()) return sum_task<fused<Strip>>(work);
  }
  sum_task<Strip>(work);
}

// function(d, sum, out, left, row, output): a vector of sums, where it is stored, and the position of its first
// element.
template <class Function>
HWY_INLINE void apply_epilogue(const task& work, const Function& function) {
  const floats d;
  const std::size_t outputs = work.what->matrix->outputs();
  for (std::size_t panel = 0; panel < work.panels; ++panel) {
    const std::size_t first = (work.first_panel + panel) * panel_outputs;
    const std::size_t count = std::min(panel_outputs, outputs - first);
    const float* sums = work.sums + panel * work.rows * panel_outputs;
    float* out = work.what->out + work.first_row * work.what->out_stride + first;
    for (std::size_t r = 0; r < work.rows; ++r, sums += panel_outputs, out += work.what->out_stride) {
      for (std::size_t i = 0; i < count; i += lanes)
        store_part(function(d, hn::Load(d, sums + i), out + i, count - i, work.first_row + r, first + i), d, out + i,
                   count - i);
    }
  }
}

void run_task(const task& work) {
  switch (work.what->matrix->format().element) {
    case weight_element::f32: sum_task<f32_strip>(work); break;
    case weight_element::bf16: sum_task<bf16_strip>(work); break;
    case weight_element::f16: sum_task<f16_strip>(work); break;
    case weight_element::int8: sum_coded_task<int8_strip>(work); break;
    case weight_element::int4: sum_coded_task<int4_strip>(work); break;
    case weight_element::nf4: sum_coded_task<nf4_strip>(work); break;
    case weight_element::fp8: sum_task<fp8_strip>(work); break;
  }
  using size = std::size_t;
  switch (work.what->how) {
    case epilogue::store:
      return apply_epilogue(work, [](floats, float_vector sum, const float*, size, size, size) { return sum; });
    case epilogue::add:
      return apply_epilogue(work, [](floats d, float_vector sum, const float* out, size left, size, size) {
        return hn::Add(load_part(d, out, left), sum);
      });
    case epilogue::tanh:
      return apply_epilogue(
          work, [](floats d, float_vector sum, const float*, size, size, size) { return hn::Tanh(d, sum); });
    case epilogue::sigmoid:
      return apply_epilogue(work,
                            [](floats d, float_vector sum, const float*, size, size, size) { return sigmoid(d, sum); });
    case epilogue::silu:
      return apply_epilogue(work, [](floats d, float_vector sum, const float*, size, size, size) {
        return hn::Mul(sum, sigmoid(d, sum));
      });
    case epilogue::relu_squared:
      return apply_epilogue(work, [](floats d, float_vector sum, const float*, size, size, size) {
        const auto positive = hn::Max(sum, hn::Zero(d));
        return hn::Mul(positive, positive);
      });
    case epilogue::add_gated:
      return apply_epilogue(work, [&](floats d, float_vector sum, const float* out, size left, size row, size output) {
        const float* gate = work.what->gate + row * work.what->gate_stride + output;
        return hn::MulAdd(load_part(d, gate, left), sum, load_part(d, out, left));
      });
  }
}

}  // namespace skein::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein::kernels::cpu {

HWY_EXPORT(run_task);

matmul::matmul(thread_pool& pool, integer_products products)
    : pool_(pool), products_(products), sums_(pool.threads() * sums_per_thread) {}

std::size_t matmul::planned_bytes(std::uint32_t threads) { return threads * sums_per_thread * sizeof(float); }

void matmul::reserve_coded(std::size_t bytes) {
  if (bytes > coded_.size()) coded_ = aligned_buffer<std::byte>(bytes);
}

std::size_t matmul::coded_bytes(std::size_t rows, std::size_t inputs) {
  return rows * coded_layout(inputs, smallest_group).stride;
}

/// Codes the inputs of the GEMMs with quantised matrices; from[i]: where those of GEMM i begin.
void matmul::code_inputs(std::size_t rows, std::span<const gemm> gemms, std::span<std::size_t> from) {
  std::array<std::size_t, gemms_max> quantised{};
  std::size_t count = 0, bytes = 0;
  for (std::size_t i = 0; i < gemms.size(); ++i) {
    const packed_matrix& matrix = *gemms[i].matrix;
    if (!takes_integers(matrix.format().element)) continue;
    quantised[count++] = i;
    from[i] = bytes;
    bytes += rows * coded_layout(matrix.inputs(), matrix.format().group).stride;
  }
  if (count == 0) return;
  reserve_coded(bytes);
  constexpr std::size_t piece_rows = 8;
  const std::size_t pieces = (rows + piece_rows - 1) / piece_rows;
  pool_.run(count * pieces, [&](std::size_t task, std::uint32_t) {
    const gemm& what = gemms[quantised[task / pieces]];
    const packed_matrix& matrix = *what.matrix;
    const std::size_t stride = coded_layout(matrix.inputs(), matrix.format().group).stride;
    std::byte* const out = coded_.data() + from[quantised[task / pieces]];
    const std::size_t first = task % pieces * piece_rows;
    for (std::size_t row = first; row < std::min(first + piece_rows, rows); ++row)
      code_row(what.in + row * what.in_stride, matrix.inputs(), matrix.format(), out + row * stride);
  });
}

void matmul::operator()(std::size_t rows, std::span<const gemm> gemms) {
  if (rows == 0) return;
  check(gemms.size() <= gemms_max);
  const std::size_t row_blocks = (rows + task_rows_max - 1) / task_rows_max;
  std::array<std::size_t, gemms_max> ends{};  // of each GEMM's tasks
  std::size_t tasks = 0;
  for (std::size_t p = 0; p < gemms.size(); ++p) {
    tasks += (gemms[p].matrix->panels() + task_panels_max - 1) / task_panels_max * row_blocks;
    ends[p] = tasks;
  }
  std::array<std::size_t, gemms_max> coded{};
  code_inputs(rows, gemms, coded);
  const auto dispatched = HWY_DYNAMIC_DISPATCH(run_task);
  pool_.run(tasks, [&](std::size_t number, std::uint32_t thread) {
    // Task numbers count down; the widest GEMMs are first in the list and should start first.
    const std::size_t index = tasks - 1 - number;
    const auto p =
        static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.begin() + gemms.size(), index) - ends.begin());
    const std::size_t within = index - (p == 0 ? 0 : ends[p - 1]);
    const std::size_t row_block = within % row_blocks, first_row = rows * row_block / row_blocks;
    const std::size_t first_panel = within / row_blocks * task_panels_max;
    const packed_matrix& matrix = *gemms[p].matrix;
    task work{&gemms[p],
              reinterpret_cast<const std::byte*>(gemms[p].in),
              gemms[p].in_stride * sizeof(float),
              0,
              first_row,
              rows * (row_block + 1) / row_blocks - first_row,
              first_panel,
              std::min(task_panels_max, matrix.panels() - first_panel),
              sums_.data() + thread * sums_per_thread,
              products_ == integer_products::best};
    if (takes_integers(matrix.format().element)) {
      const coded_layout layout(matrix.inputs(), matrix.format().group);
      work.in = coded_.data() + coded[p], work.in_stride = layout.stride, work.groups_at = layout.groups;
    }
    dispatched(work);
  });
}

}  // namespace skein::kernels::cpu
#endif
