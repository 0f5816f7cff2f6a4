// The tensor-core product on a card: first that it is right, against sums in fp64, and that no bit hangs on the number
// of rows or on how segments are spread; then how fast the products of a layer run, weights streamed from memory.
// gpu_matmul_bench [check|speed]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/gpu/device/convert.cuh"
#include "kernels/gpu/matmul_hopper.hpp"
#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/runtime/stream.hpp"

using namespace skein::kernels::gpu;
using skein::result;

namespace {

__device__ std::uint32_t scrambled(std::uint64_t x) {
  x ^= x >> 33, x *= 0xff51afd7ed558ccdull, x ^= x >> 33, x *= 0xc4ceb9fe1a85ec53ull, x ^= x >> 33;
  return static_cast<std::uint32_t>(x);
}

/// Random values in -scale .. scale; columns from `width` on are 0.
template <typename Element>
__global__ void fill(Element* to, std::size_t rows, std::uint32_t stride, std::uint32_t width, std::uint64_t seed,
                     float scale) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < rows * stride; i += step) {
    const float value = (static_cast<float>(scrambled(seed * 0x9e3779b97f4a7c15ull + i)) / 2147483648.0f - 1) * scale;
    to[i] = from_float<Element>(i % stride < width ? value : 0);
  }
}

template <typename Element>
__global__ void multiply_in_double(const Element* matrix, const Element* in, double* out, std::uint32_t outputs,
                                   std::uint32_t depth, std::uint32_t in_stride) {
  const std::uint32_t o = blockIdx.x * blockDim.x + threadIdx.x, t = blockIdx.y;
  if (o >= outputs) return;
  double sum = 0;
  for (std::uint32_t i = 0; i < depth; ++i)
    sum += double{to_float(matrix[std::size_t{o} * depth + i])} * to_float(in[std::size_t{t} * in_stride + i]);
  out[std::size_t{t} * outputs + o] = sum;
}

int failures = 0;

void expect(bool is_so, const std::string& what) {
  if (is_so) return;
  ++failures;
  std::printf("WRONG: %s\n", what.c_str());
}

template <typename T>
std::vector<T> fetch(const void* from, std::size_t count, stream& in) {
  pinned_buffer<T> host(count);
  require(copy_to_host(host.data(), from, count * sizeof(T), in));
  require(in.synchronize());
  return {host.data(), host.data() + count};
}

template <typename Element>
constexpr element type_of = std::is_same_v<Element, half> ? element::f16 : element::bf16;

template <typename Element>
void check_shape(stream& in, std::uint32_t outputs, std::uint32_t inputs, std::uint32_t segments) {
  constexpr std::uint32_t rows_max = 1024;
  const std::uint32_t depth = padded(inputs);
  device_buffer<Element> matrix(std::size_t{padded(outputs)} * depth), x(std::size_t{rows_max} * depth);
  device_buffer<float> sums(std::size_t{rows_max} * outputs), parts(std::size_t{segments} * split_rows_max * outputs);
  device_buffer<double> truth(std::size_t{rows_max} * outputs);
  fill<<<512, 256, 0, in>>>(matrix.data(), padded(outputs), depth, inputs, outputs + inputs, 0.05f);
  fill<<<512, 256, 0, in>>>(x.data(), rows_max, depth, inputs, 77 + inputs, 1.0f);
  multiply_in_double<<<dim3((outputs + 255) / 256, rows_max), 256, 0, in>>>(matrix.data(), x.data(), truth.data(),
                                                                            outputs, depth, depth);
  const auto right = fetch<double>(truth.data(), truth.size(), in);
  std::vector<float> all;  // of 1024 rows: what every other number of rows must repeat
  for (const std::uint32_t rows :
       {1024u, 1u, 3u, 8u, 16u, 17u, 32u, 50u, 64u, 100u, 128u, 129u, 160u, 192u, 240u, 300u, 320u, 700u, 960u}) {
    const std::string name = std::to_string(outputs) + " x " + std::to_string(inputs) + " in " +
                             std::to_string(segments) + " segments, " + std::to_string(rows) + " rows";
    product p{matrix.data(), x.data(), sums.data(), outputs, inputs, depth, outputs, finish::store_f32, segments, 0};
    std::vector<float> got;
    if (segments > 1 && hopper_splits({&p, 1}, rows)) {
      p.how = finish::store_parts, p.out = parts.data(), p.part_stride = std::size_t{rows} * outputs;
      require(matmul_hopper(in, type_of<Element>, {&p, 1}, nullptr, rows));
      const auto each = fetch<float>(parts.data(), std::size_t{segments} * rows * outputs, in);
      got.resize(std::size_t{rows} * outputs);
      for (std::size_t i = 0; i < got.size(); ++i) {
        got[i] = each[i];
        for (std::uint32_t s = 1; s < segments; ++s) got[i] += each[s * got.size() + i];
      }
    } else {
      require(fill_with_zeros(sums.data(), sums.bytes(), in));
      require(matmul_hopper(in, type_of<Element>, {&p, 1}, nullptr, rows));
      got = fetch<float>(sums.data(), std::size_t{rows} * outputs, in);
    }
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double off = std::abs(got[i] - right[i]);
      worst = off <= worst ? worst : std::isnan(off) ? 1e9 : off;
    }
    expect(worst < 2e-4 * std::sqrt(inputs / 64.0), name + ": off by " + std::to_string(worst));
    if (all.empty()) all = got;
    expect(std::memcmp(got.data(), all.data(), got.size() * sizeof(float)) == 0, name + ": other bits than 1024 rows");
  }
}

void check_finishes(stream& in) {
  constexpr std::uint32_t outputs = 96, inputs = 320, stride = 128;
  device_buffer<half> matrix(std::size_t{128} * inputs), x(std::size_t{256} * inputs), out(std::size_t{256} * stride);
  device_buffer<float> sums(std::size_t{256} * stride);
  fill<<<64, 256, 0, in>>>(matrix.data(), 96, inputs, inputs, 5, 0.5f);
  fill<<<64, 256, 0, in>>>(x.data(), 256, inputs, inputs, 6, 1.0f);
  for (const std::uint32_t rows : {5u, 200u}) {
    product plain{matrix.data(), x.data(), sums.data(), outputs, inputs, inputs, stride, finish::store_f32};
    require(matmul_hopper(in, element::f16, {&plain, 1}, nullptr, rows));
    const auto sum = fetch<float>(sums.data(), std::size_t{rows} * stride, in);
    for (const finish how : {finish::store, finish::sigmoid, finish::tanh, finish::relu_squared}) {
      require(fill_with_zeros(out.data(), out.bytes(), in));
      product p = plain;
      p.out = out.data(), p.how = how;
      require(matmul_hopper(in, element::f16, {&p, 1}, nullptr, rows));
      const auto got = fetch<half>(out.data(), std::size_t{rows} * stride, in);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double s = i % stride < outputs ? sum[i] : 0;
        const double want = i % stride >= outputs    ? 0
                            : how == finish::store   ? s
                            : how == finish::sigmoid ? 1 / (1 + std::exp(-s))
                            : how == finish::tanh    ? std::tanh(s)
                                                     : std::max(s, 0.0) * std::max(s, 0.0);
        if (!(std::abs(__half2float(got[i]) - want) <= 1e-3 * std::abs(want) + 1e-4))
          return expect(false, "finish " + std::to_string(static_cast<int>(how)) + " at " + std::to_string(i));
      }
    }
    product add = plain;
    add.how = finish::add_f32;
    require(matmul_hopper(in, element::f16, {&add, 1}, nullptr, rows));
    const auto twice = fetch<float>(sums.data(), std::size_t{rows} * stride, in);
    for (std::size_t i = 0; i < twice.size(); ++i)
      if (i % stride < outputs && twice[i] != 2 * sum[i]) return expect(false, "add_f32 at " + std::to_string(i));
  }
}

/// One matrix of a layer, in copies that together are larger than any cache.
struct matrix_set {
  std::uint32_t outputs, inputs, segments, copies;
  device_buffer<half> memory;
  matrix_set(std::uint32_t o, std::uint32_t i, std::uint32_t s, std::uint32_t n, stream& in)
      : outputs(o), inputs(i), segments(s), copies(n), memory(std::size_t{n} * o * i) {
    fill<<<1024, 256, 0, in>>>(memory.data(), std::size_t{n} * o, i, i, o + i, 0.02f);
  }
  [[nodiscard]] const half* copy(std::uint32_t n) const {
    return memory.data() + std::size_t{n % copies} * outputs * inputs;
  }
  [[nodiscard]] double bytes() const { return 2.0 * outputs * inputs; }
};

template <typename Work>
double microseconds(stream& in, int repeats, const Work& work) {
  auto recorded = graph::record(in, [&]() -> result<void> {
    for (int i = 0; i < repeats; ++i)
      if (auto r = work(i); !r) return r;
    return {};
  });
  if (!recorded) return std::printf("WRONG: %s\n", recorded.error().message.c_str()), ++failures, 0;
  cudaEvent_t begin, end;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  std::vector<float> times;
  for (int i = 0; i < 5; ++i) {
    cudaEventRecord(begin, in);
    require(recorded->launch(in));
    cudaEventRecord(end, in);
    require(in.synchronize());
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    times.push_back(ms);
  }
  cudaEventDestroy(begin), cudaEventDestroy(end);
  std::ranges::sort(times);
  return times[1] * 1000 / repeats;
}

void time_model(stream& in, const char* name, std::uint32_t width, std::uint32_t rank_sum, std::uint32_t layers,
                std::uint32_t least, std::uint32_t most) {
  constexpr std::uint32_t copies = 6, rows_max = 4096;
  const std::uint32_t s = 4, ffn = 4 * width;
  const matrix_set square(width, width, s, 4 * copies, in), rank_in(rank_sum, width, 1, copies, in);
  const matrix_set key(ffn, width, 1, copies, in), value(width, ffn, s, copies, in), head(65536, width, 1, 1, in);
  device_buffer<half> x(std::size_t{rows_max} * ffn), out(std::size_t{rows_max} * ffn);
  device_buffer<float> sums(std::size_t{4096} * 65536);
  fill<<<1024, 256, 0, in>>>(x.data(), rows_max, ffn, ffn, 3, 1.0f);
  std::printf("%s: width %u, segments %u\n", name, width, s);
  for (const std::uint32_t rows : {1u, 8u, 16u, 32u, 64u, 128u, 256u, 320u, 512u, 960u, 1024u, 4096u}) {
    if (rows < least || rows > most) continue;
    const auto of = [&](const matrix_set& m, std::uint32_t n, finish how) {
      void* const to = how == finish::store_f32 ? static_cast<void*>(sums.data()) : out.data();
      product p{m.copy(n), x.data(), to, m.outputs, m.inputs, m.inputs, m.outputs, how, m.segments};
      p.part_stride = std::size_t{rows} * m.outputs;
      return p;
    };
    const auto run = [&](std::span<product> products) {
      if (hopper_splits(products, rows))
        for (product& p : products)
          if (p.segments > 1) p.how = finish::store_parts, p.out = sums.data();
      return matmul_hopper(in, element::f16, products, nullptr, rows);
    };
    const int repeats = rows > 512 ? 12 : 48;
    const auto rkv = [&](int i) {
      product all[] = {of(rank_in, i, finish::store), of(square, 4 * i, finish::store),
                       of(square, 4 * i + 1, finish::store), of(square, 4 * i + 2, finish::store)};
      return run(all);
    };
    const auto one = [&](const matrix_set& m, int n, finish how) {
      product p = of(m, n, how);
      return run({&p, 1});
    };
    const finish residual = finish::add_f32;
    const double t_rkv = microseconds(in, repeats, rkv);
    const double t_out = microseconds(in, repeats, [&](int i) { return one(square, i, residual); });
    const double t_key = microseconds(in, repeats, [&](int i) { return one(key, i, finish::relu_squared); });
    const double t_value = microseconds(in, repeats, [&](int i) { return one(value, i, residual); });
    const double t_head = rows <= 1024 ? microseconds(in, 8, [&](int) { return one(head, 0, finish::store_f32); }) : 0;
    const double t_layer = microseconds(in, repeats, [&](int i) -> result<void> {
      if (auto r = rkv(i); !r) return r;
      if (auto r = one(square, 4 * i + 3, residual); !r) return r;
      if (auto r = one(key, i, finish::relu_squared); !r) return r;
      return one(value, i, residual);
    });
    const double bytes = 4 * square.bytes() + rank_in.bytes() + key.bytes() + value.bytes();
    const auto rate = [&](double matrix_bytes, double us) {
      char text[64];
      if (rows <= 128)
        std::snprintf(text, sizeof text, "%7.1f us %5.2f TB/s", us, matrix_bytes / us / 1e6);
      else
        std::snprintf(text, sizeof text, "%7.1f us %5.0f TF/s", us, matrix_bytes * rows / us / 1e6);
      return std::string(text);
    };
    std::printf(
        "%5u rows  rkv+rank %s | out %s | key %s | value %s | head %s | layer %s | steps of %u layers + head: %.0f/s\n",
        rows, rate(3 * square.bytes() + rank_in.bytes(), t_rkv).c_str(), rate(square.bytes(), t_out).c_str(),
        rate(key.bytes(), t_key).c_str(), rate(value.bytes(), t_value).c_str(), rate(head.bytes(), t_head).c_str(),
        rate(bytes, t_layer).c_str(), layers, 1e6 / (layers * t_layer + t_head));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  stream in;
  if (what != "speed") {
    for (const auto [outputs, inputs, segments] : {std::array{64u, 64u, 1u},
                                                   {96u, 128u, 1u},
                                                   {480u, 256u, 1u},
                                                   {256u, 480u, 1u},
                                                   {512u, 512u, 4u},
                                                   {2048u, 2048u, 4u},
                                                   {320u, 832u, 4u},
                                                   {4012u, 256u, 1u},
                                                   {4096u, 4096u, 2u},
                                                   {16384u, 512u, 1u},  // enough for tiles of every width
                                                   {16384u, 512u, 2u},
                                                   {2048u, 8192u, 4u}}) {
      check_shape<half>(in, outputs, inputs, segments);
      check_shape<bf16>(in, outputs, inputs, segments);
    }
    check_finishes(in);
    std::printf("%s\n", failures ? "matmul: WRONG" : "matmul: right, and the same bits for any number of rows");
    if (failures) return 1;
  }
  if (what != "check") {
    const std::uint32_t least = count > 2 ? std::stoul(arguments[2]) : 1,
                        most = count > 3 ? std::stoul(arguments[3]) : 4096;
    time_model(in, "7.2B", 4096, 832, 32, least, most);
    time_model(in, "1.5B", 2048, 512, 24, least, most);
  }
  return failures ? 1 : 0;
}
