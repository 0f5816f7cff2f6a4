#pragma once
// The GEMMs of a layer of RWKV-7, with random weights, for gpu_matmul_bench.cu.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/gpu/device/convert.cuh"
#include "kernels/gpu/gemm/matmul.hpp"
#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/runtime/stream.hpp"
#include "kernels/gpu/types/coded_layout.hpp"

namespace skein::kernels::gpu::bench {

/// What `speed` measures: the format of the large matrices, or none for 16-bit ones, and the type of the activations.
inline struct {
  weight_format format;
  element type = element::bf16;
} measured;

inline weight_plan require_plan(weight_format format) {
  auto plan = weight_plan::parse(to_string(format), "", dtype::bf16);
  if (!plan) std::printf("%s\n", plan.error().message.c_str()), std::exit(1);
  return *std::move(plan);
}

/// The kernels of the card, or of the profile in $SKEIN_DEVICE_PROFILE, for 16-bit types.
inline const matmul_functions& ours() {
  static const matmul_functions functions = [] {
    const weight_format format = measured.format;
    const auto chosen = choose_matmul(0, element::f16, format.quantised() ? require_plan(format) : dtype::f16);
    if (!chosen) std::printf("%s\n", chosen.error().message.c_str()), std::exit(1);
    return *chosen;
  }();
  return functions;
}

__device__ inline std::uint32_t scrambled(std::uint64_t x) {
  x ^= x >> 33, x *= 0xff51afd7ed558ccdull, x ^= x >> 33, x *= 0xc4ceb9fe1a85ec53ull, x ^= x >> 33;
  return static_cast<std::uint32_t>(x);
}

/// Random values in -scale .. scale; columns at and beyond `width` are 0.
template <typename Element>
__global__ void fill(Element* to, std::size_t rows, std::uint32_t stride, std::uint32_t width, std::uint64_t seed,
                     float scale) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < rows * stride; i += step) {
    const float value = (static_cast<float>(scrambled(seed * 0x9e3779b97f4a7c15ull + i)) / 2147483648.0f - 1) * scale;
    to[i] = from_float<Element>(i % stride < width ? value : 0);
  }
}

template <typename T>
std::vector<T> fetch(const void* from, std::size_t count, stream& in) {
  pinned_buffer<T> host(count);
  require(copy_to_host(host.data(), from, count * sizeof(T), in));
  require(in.synchronize());
  return {host.data(), host.data() + count};
}

/// Random codes with scales of a few thousandths, in either element type.
inline __global__ void fill_codes(std::uint32_t* words, std::size_t count, std::uint32_t words_of_codes,
                                  std::uint32_t words_of_block, std::uint32_t scales) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    words[i] = i % words_of_block < words_of_codes ? scrambled(i * 0x9e3779b97f4a7c15ull) : scales;
}

/// One matrix of a layer, in several copies that exceed every cache.
class matrix_set {
  static constexpr std::uint32_t copies = 6;

 public:
  const std::uint32_t outputs, inputs;
  const weight_format format;
  matrix_set(std::uint32_t o, std::uint32_t i, weight_format how, stream& in)
      : outputs(o), inputs(i), format(how), memory_(copies * bytes()) {
    if (how.quantised()) {
      const std::uint32_t codes = code_bytes_of_block(how.element),
                          scales = measured.type == element::f16 ? 0x2e002e00 : 0x3b003b00;
      fill_codes<<<1024, 256, 0, in>>>(reinterpret_cast<std::uint32_t*>(memory_.data()), memory_.bytes() / 4, codes / 4,
                                       block_bytes(how) / 4, scales);
    } else if (measured.type == element::f16) {
      fill_as<half>(in);
    } else {
      fill_as<bf16>(in);
    }
  }
  [[nodiscard]] std::size_t bytes() const {
    return format.quantised() ? coded_bytes(format, padded(outputs), padded(inputs))
                              : std::size_t{padded(outputs)} * padded(inputs) * 2;
  }
  [[nodiscard]] device_matrix copy(int n) const {
    return {memory_.data() + n % copies * bytes(), outputs, inputs, format};
  }

 private:
  template <typename Element>
  void fill_as(stream& in) {
    fill<<<1024, 256, 0, in>>>(reinterpret_cast<Element*>(memory_.data()), std::size_t{copies} * padded(outputs),
                               padded(inputs), inputs, outputs + inputs, 0.02f);
  }
  device_buffer<std::byte> memory_;
};

/// The GEMMs of a layer, in the same launches as in the model.
class layer_gemms {
 public:
  layer_gemms(std::uint32_t width, std::array<std::uint32_t, 4> ranks, stream& in)
      : in_(in),
        squares_{{{width, width, large(), in},
                  {width, width, large(), in},
                  {width, width, large(), in},
                  {width, width, large(), in}}},
        down_{{{ranks[0], width, small(), in},
               {ranks[1], width, small(), in},
               {ranks[2], width, small(), in},
               {ranks[3], width, small(), in}}},
        up_{{{width, ranks[0], small(), in},
             {width, ranks[1], small(), in},
             {width, ranks[2], small(), in},
             {width, ranks[3], small(), in}}},
        key_(4 * width, width, large(), in),
        value_(width, 4 * width, large(), in),
        mixed_(std::size_t{7} * rows_max * width),
        made_(std::size_t{7} * rows_max * width),
        hidden_(std::size_t{rows_max} * 4 * width),
        x_(std::size_t{rows_max} * width),
        parts_(std::size_t{3 * 4} * split_rows_max * width),
        done_(2) {
    require(fill_with_zeros(parts_.data(), parts_.bytes(), in));
    require(fill_with_zeros(hidden_.data(), hidden_.bytes(), in));
    if (measured.type == element::f16)
      fill<<<1024, 256, 0, in>>>(reinterpret_cast<half*>(mixed_.data()), std::size_t{7} * rows_max, width, width, 3,
                                 1.0f);
    else
      fill<<<1024, 256, 0, in>>>(reinterpret_cast<bf16*>(mixed_.data()), std::size_t{7} * rows_max, width, width, 3,
                                 1.0f);
    fill<<<1024, 256, 0, in>>>(x_.data(), rows_max, width, width, 4, 1.0f);
    require(fill_with_zeros(made_.data(), made_.bytes(), in));
    require(fill_with_zeros(done_.data(), done_.bytes(), in));
  }

  result<void> r_k_v(int n, std::uint32_t rows) {
    const epilogue hows[] = {{}, {activation_function::sigmoid}, {activation_function::tanh}, {}};
    std::array<gemm, gemms_max> all;
    for (unsigned i = 0; i < 4; ++i) all[i] = of(down_[i], n, mixed(i), made(i), hows[i]), all[i].when = turn::first;
    for (unsigned i = 0; i < 3; ++i) all[4 + i] = of(squares_[i], n, mixed(4 + i), made(4 + i));
    for (unsigned i = 0; i < 4; ++i)
      all[7 + i] = of(up_[i], n, made(i), mixed(i)), all[7 + i].when = turn::second, all[7 + i].done = done_.data();
    return run(all, 4, 3, rows);
  }
  result<void> output(int n, std::uint32_t rows) { return add(squares_[3], n, mixed(6), rows); }
  result<void> key(int n, std::uint32_t rows) {
    gemm p = of(key_, n, mixed(5), hidden_.data(), {activation_function::relu_squared});
    return run({&p, 1}, 0, 0, rows);
  }
  result<void> value(int n, std::uint32_t rows) { return add(value_, n, hidden_.data(), rows); }

  [[nodiscard]] std::uint64_t hash_of_results(std::uint32_t rows) {
    std::uint64_t hash = 14695981039346656037ull;
    const auto add = [&](const auto& values) {
      for (const auto value : values) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof value);
        hash = (hash ^ bits) * 1099511628211ull;
      }
    };
    const std::size_t width = value_.outputs;
    for (unsigned i = 0; i < 7; ++i)
      for (const std::uint16_t* from : {mixed(i), made(i)}) add(fetch<std::uint16_t>(from, rows * width, in_));
    add(fetch<std::uint16_t>(hidden_.data(), rows * 4 * width, in_));
    add(fetch<float>(x_.data(), rows * width, in_));
    add(fetch<float>(parts_.data(), std::min<std::size_t>(parts_.size(), 12 * rows * width), in_));
    return hash;
  }

  struct launch_of {
    const char* name;
    result<void> (layer_gemms::*queue)(int n, std::uint32_t rows);
    double weights, bytes;  // without padding, and as stored
  };
  [[nodiscard]] std::array<launch_of, 4> launches() const {
    double ranks = 0, width = value_.outputs, of_pairs = 0;
    for (const matrix_set& m : down_) ranks += m.outputs;
    for (const auto& factors : {std::span(down_), std::span(up_)})
      for (const matrix_set& m : factors) of_pairs += static_cast<double>(m.bytes());
    const auto square = static_cast<double>(squares_[0].bytes()), deep = static_cast<double>(key_.bytes());
    return {{{"r k v", &layer_gemms::r_k_v, (3 * width + 2 * ranks) * width, 3 * square + of_pairs},
             {"output", &layer_gemms::output, width * width, square},
             {"key", &layer_gemms::key, 4 * width * width, deep},
             {"value", &layer_gemms::value, 4 * width * width, deep}}};
  }

 private:
  static constexpr std::uint32_t rows_max = 4096;

  static weight_format small() { return row_format(measured.type); }
  static weight_format large() { return measured.format.quantised() ? measured.format : small(); }
  std::uint16_t* mixed(unsigned i) { return mixed_.data() + std::size_t{i} * rows_max * value_.outputs; }
  std::uint16_t* made(unsigned i) { return made_.data() + std::size_t{i} * rows_max * value_.outputs; }
  static gemm of(const matrix_set& m, int n, const void* from, void* to, epilogue how = {}) {
    return {m.copy(n), from, to, padded(m.inputs), padded(m.outputs), how};
  }
  result<void> add(const matrix_set& m, int n, const void* from, std::uint32_t rows) {
    gemm p = of(m, n, from, x_.data(), {.to = destination::add_f32});
    return run({&p, 1}, 0, 1, rows);
  }
  /// `cut` GEMMs, starting at `first`, use split-K.
  result<void> run(std::span<gemm> all, std::size_t first, std::size_t cut, std::uint32_t rows) {
    std::uint32_t tiles = 0;
    for (const gemm& p : all.subspan(first, cut)) tiles += padded(p.matrix.outputs) / matrix_tile;
    float* parts = parts_.data();
    for (gemm& p : all.subspan(first, cut)) {
      p.segments =
          segments_of(p.matrix.depth(), tiles, static_cast<std::uint32_t>(*count_sms() * ours().blocks_per_sm));
      if (p.segments == 1 || !ours().splits(all, rows)) continue;
      p.how.to = destination::parts, p.out = parts, p.part_stride = std::size_t{rows} * p.matrix.outputs;
      parts += p.segments * p.part_stride;
    }
    return ours().run(in_, measured.type, all, nullptr, rows);
  }

  stream& in_;
  std::array<matrix_set, 4> squares_, down_, up_;
  matrix_set key_, value_;
  device_buffer<std::uint16_t> mixed_, made_, hidden_;
  device_buffer<float> x_, parts_;
  device_buffer<std::uint32_t> done_;
};

}  // namespace skein::kernels::gpu::bench
