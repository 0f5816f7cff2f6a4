// Matrix products on the CPU against plain loops: every format, every Highway target, odd sizes, every way to finish a
// sum, nothing written outside the outputs. And the promise that carries all batching: a row's result is the same bits
// whatever other rows, threads and blocks there are.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "kernels/cpu/embedding.hpp"
#include "kernels/cpu/matmul.hpp"
#include "kernels/weights/e4m3.hpp"
#include "tests/kernels/every_target.hpp"
#include "tests/kernels/random_rwkv7.hpp"

using namespace skein;
using namespace skein::kernels::cpu;

namespace {

constexpr dtype formats[] = {dtype::f32, dtype::bf16, dtype::f16};
constexpr float guard = -12345;

std::vector<float> random_values(std::size_t count, std::uint64_t seed, float scale = 1) {
  test::random_numbers random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = scale * random.value();
  return values;
}

/// A random matrix (outputs, inputs) of one element type, with its exact values.
struct random_matrix {
  random_matrix(std::size_t outputs, std::size_t inputs, dtype type, std::uint64_t seed)
      : bytes(test::encode(random_values(outputs * inputs, seed), type)),
        view(test::view_of(bytes, type, {static_cast<std::int64_t>(outputs), static_cast<std::int64_t>(inputs)})),
        exact(outputs * inputs) {
    copy_to_f32(view, exact);
  }
  std::vector<std::byte> bytes;
  tensor_view view;
  std::vector<float> exact;
};

/// The product of `rows` rows (row-major, dense), without guards: what the bitwise cases compare.
std::vector<float> multiply(thread_pool& pool, const packed_matrix& matrix, const std::vector<float>& in,
                            std::size_t rows, integer_products products = integer_products::best) {
  std::vector<float> out(rows * matrix.outputs());
  const gemm one{&matrix, in.data(), matrix.inputs(), out.data(), matrix.outputs()};
  matmul multiplication(pool, products);
  multiplication(rows, {&one, 1});
  return out;
}

void check_against_loops(std::size_t rows, std::size_t outputs, std::size_t inputs, dtype type) {
  thread_pool pool(2);
  const random_matrix weights(outputs, inputs, type, outputs * 31 + inputs);
  const packed_matrix packed(weights.view, false, *kernels::format_of(type), pool);
  const std::vector<float> in = random_values(rows * inputs, rows);
  const std::size_t stride = outputs + 3;
  std::vector<float> out(rows * stride, guard);
  const gemm one{&packed, in.data(), inputs, out.data(), stride};
  matmul multiplication(pool);
  multiplication(rows, {&one, 1});
  for (std::size_t t = 0; t < rows; ++t) {
    for (std::size_t o = 0; o < outputs; ++o) {
      double sum = 0, size = 1e-30;
      for (std::size_t i = 0; i < inputs; ++i) {
        const double term = static_cast<double>(weights.exact[o * inputs + i]) * in[t * inputs + i];
        sum += term, size += std::abs(term);
      }
      // fp32 sums in order: each addition rounds by at most 2^-24 of a partial sum
      BOOST_REQUIRE_SMALL(out[t * stride + o] - sum, size * 4e-6);
    }
    for (std::size_t o = outputs; o < stride; ++o) BOOST_REQUIRE_EQUAL(out[t * stride + o], guard);
  }
}

/// What a quantised matrix computes with instead of these weights; returns the scale of each.
std::vector<float> dequantise_rows(kernels::weight_format format, std::size_t inputs, std::vector<float>& weights) {
  std::vector<float> scales(weights.size());
  for (std::size_t row = 0; row < weights.size(); row += inputs) {
    const std::uint16_t of_row = kernels::row_scale(format.element, std::span(weights).subspan(row, inputs));
    for (std::size_t i = 0; i < inputs; i += format.group) {
      const auto group = std::span(weights).subspan(row + i, std::min<std::size_t>(format.group, inputs - i));
      std::vector<std::uint8_t> codes(group.size());
      const float scale = bf16_to_f32(kernels::quantise_group(format.element, group, codes, of_row));
      for (std::size_t k = 0; k < group.size(); ++k) {
        group[k] = kernels::dequantise(format.element, codes[k], scale);
        scales[row + i + k] = scale;
      }
    }
  }
  return scales;
}

/// Activations are rounded to a step of 2^-15 (nf4: 2^-13; fp8: not at all) of the largest of their group, and the
/// numbers of nf4 to 8e-5.
void check_quantised_sums(kernels::weight_format format, const random_matrix& weights, const std::vector<float>& scales,
                          const std::vector<float>& in, const std::vector<float>& out, std::size_t inputs) {
  const bool nf4 = format.element == kernels::weight_element::nf4;
  const double steps = nf4 ? 8191.0 : format.element == kernels::weight_element::fp8 ? 1e300 : 32767.0;
  const std::size_t outputs = weights.exact.size() / inputs, rows = in.size() / inputs;
  for (std::size_t t = 0; t < rows; ++t) {
    std::vector<double> step(inputs);
    for (std::size_t i = 0; i < inputs; ++i) {
      const std::size_t first = i / format.group * format.group;
      for (std::size_t k = first; k < std::min(first + format.group, inputs); ++k)
        step[i] = std::max(step[i], std::abs(in[t * inputs + k]) / steps);
    }
    for (std::size_t o = 0; o < outputs; ++o) {
      double sum = 0, size = 1e-30, off = 0;
      for (std::size_t i = 0; i < inputs; ++i) {
        const double weight = weights.exact[o * inputs + i], activation = in[t * inputs + i];
        sum += weight * activation, size += std::abs(weight * activation);
        off += std::abs(weight) * step[i] / 2 + (nf4 ? 8.3e-5 * scales[o * inputs + i] * std::abs(activation) : 0);
      }
      BOOST_REQUIRE_SMALL(out[t * outputs + o] - sum, size * 4e-6 + off);
    }
  }
}

/// Random weights in a format by its name.
packed_matrix random_packed(const char* format, std::size_t outputs, std::size_t inputs, thread_pool& pool) {
  const random_matrix weights(outputs, inputs, dtype::f32, 5);
  return packed_matrix(weights.view, false, *kernels::parse_weight_format(format), pool);
}

}  // namespace

BOOST_AUTO_TEST_CASE(gemms_equal_plain_loops) {
  struct size {
    std::size_t rows, outputs, inputs;
  };
  constexpr size sizes[] = {{1, 32, 64},  // the base, then one number changed
                            {1, 1, 64},   {1, 31, 64},   {1, 33, 64},    {1, 130, 64}, {1, 32, 1},
                            {1, 32, 7},   {1, 32, 300},  {2, 32, 64},    {7, 32, 64},  {13, 32, 64},
                            {25, 32, 64}, {13, 70, 333}, {200, 40, 300}, {0, 32, 64}};
  test::for_every_target([&] {
    for (const dtype type : formats)
      for (const size& s : sizes)
        BOOST_TEST_CONTEXT(to_string(type) << ": " << s.rows << " rows, " << s.outputs << " x " << s.inputs)
    check_against_loops(s.rows, s.outputs, s.inputs, type);
  });
}

BOOST_AUTO_TEST_CASE(quantised_gemms_equal_loops_over_dequantised_weights) {
  struct size {
    std::size_t rows, outputs, inputs;
  };
  constexpr size sizes[] = {{1, 32, 128}, {1, 33, 1}, {1, 70, 200}, {2, 32, 64}, {7, 130, 333}, {25, 31, 1100}};
  test::for_every_target([&] {
    thread_pool pool(2);
    for (const char* name : {"int8", "int8-32", "fp8", "int4", "int4-128", "int4-32", "nf4", "nf4-128"}) {
      const auto format = *kernels::parse_weight_format(name);
      for (const size& s : sizes) {
        BOOST_TEST_CONTEXT(name << ": " << s.rows << " rows, " << s.outputs << " x " << s.inputs) {
          random_matrix weights(s.outputs, s.inputs, dtype::f32, s.outputs + s.inputs);
          const packed_matrix packed(weights.view, false, format, pool);
          BOOST_TEST(packed.bytes() == packed_matrix::planned_bytes(weights.view, false, format));
          const std::vector<float> scales = dequantise_rows(format, s.inputs, weights.exact);
          const std::vector<float> in = random_values(s.rows * s.inputs, s.rows);
          const auto out = multiply(pool, packed, in, s.rows);
          check_quantised_sums(format, weights, scales, in, out, s.inputs);
          const std::vector<float> first(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(s.inputs));
          const auto alone = multiply(pool, packed, first, 1);
          BOOST_TEST(std::memcmp(alone.data(), out.data(), alone.size() * sizeof(float)) == 0);
        }
      }
    }
  });
}

/// A matrix in blocks of a file, and its weights.
struct matrix_in_blocks {
  matrix_in_blocks(code_type type, std::size_t outputs, std::size_t inputs) : exact(outputs * inputs) {
    test::random_numbers random(outputs + inputs);
    view.shape = {static_cast<std::int64_t>(outputs), static_cast<std::int64_t>(inputs)};
    view.stride = {static_cast<std::int64_t>(inputs), 1};
    view.type = dtype::f16;
    view.blocks.type = type;
    blocks.resize(outputs * inputs / 32 * view.blocks.bytes());
    for (std::size_t at = 0, to = 0; at < blocks.size(); at += view.blocks.bytes(), to += 32) {
      const std::uint16_t scale = f32_to_f16(random.value() / 100);
      std::memcpy(&blocks[at], &scale, sizeof scale);
      for (std::size_t i = 2; i < view.blocks.bytes(); ++i)
        blocks[at + i] = static_cast<std::byte>(random.below(255) + 129);
      for (std::size_t i = 0; i < 32; ++i) {
        const auto byte = std::to_integer<std::uint8_t>(blocks[at + 2 + (type == code_type::int8 ? i : i % 16)]);
        const int code =
            type == code_type::int8 ? static_cast<std::int8_t>(byte) : (i < 16 ? byte & 15 : byte >> 4) - 8;
        exact[to + i] = f16_to_f32(scale) * static_cast<float>(code);
      }
    }
    elements.resize(outputs * inputs * 2);  // zeros: not read
    view.data = elements.data();
    view.blocks.data = blocks.data();
  }
  std::vector<std::byte> blocks, elements;
  tensor_view view;
  std::vector<float> exact;
};

BOOST_AUTO_TEST_CASE(codes_and_scales_of_a_file_are_used_as_they_are) {
  test::for_every_target([&] {
    thread_pool pool(2);
    for (const char* name : {"int8-32", "int4-32"}) {
      const auto format = *kernels::parse_weight_format(name);
      constexpr std::size_t outputs = 70, inputs = 96;
      const matrix_in_blocks file(format.element == kernels::weight_element::int8 ? code_type::int8 : code_type::int4,
                                  outputs, inputs);
      const packed_matrix packed(file.view, false, format, pool);
      BOOST_TEST(packed.half_scales());
      BOOST_TEST(packed.bytes() == packed_matrix::planned_bytes(file.view, false, format));
      std::vector<float> units(inputs * inputs);  // each row selects the weights of one input
      for (std::size_t i = 0; i < inputs; ++i) units[i * inputs + i] = 1;
      const auto columns = multiply(pool, packed, units, inputs);
      std::size_t wrong = 0;
      for (std::size_t o = 0; o < outputs; ++o)
        for (std::size_t i = 0; i < inputs; ++i) {
          const float exact = file.exact[o * inputs + i];  // the product by 32767 and its scale is rounded
          wrong += std::abs(columns[i * outputs + o] - exact) > 1e-6f * std::abs(exact);
        }
      BOOST_TEST(wrong == 0u, name);
      const packed_matrix others(file.view, false, {format.element, 64}, pool);  // quantises the elements
      BOOST_TEST(!others.half_scales());
    }
  });
}

/// Codes of fp8 and scales as a file has them, and their weights.
struct fp8_in_file {
  static constexpr std::size_t outputs = 67, inputs = 254, group = 32, groups = 8;
  std::vector<std::byte> codes, scales;
  std::vector<float> exact;
  tensor_view view;

  /// Every row has all finite codes, each row from another place on.
  fp8_in_file() : codes(outputs * inputs), scales(outputs * groups * 2), exact(outputs * inputs) {
    for (std::size_t o = 0; o < outputs; ++o)
      for (std::size_t i = 0; i < inputs; ++i) {
        const float size = std::ldexp(1.0f + static_cast<float>(o) / 128, -static_cast<int>((o + i / group) % 9));
        const std::uint16_t scale = f32_to_bf16(size);
        std::memcpy(&scales[(o * groups + i / group) * 2], &scale, sizeof scale);
        const std::size_t at = (i + 11 * o) % inputs, code = at < 0x7f ? at : at + 1;
        codes[o * inputs + i] = static_cast<std::byte>(code);
        exact[o * inputs + i] = size * kernels::e4m3_to_f32(static_cast<std::uint8_t>(code));
      }
    view = test::view_of(codes, dtype::bf16, {outputs, inputs});
    view.codes = {code_type::fp8, group, scales.data()};
  }
  [[nodiscard]] std::vector<float> weights_of_product() const {
    thread_pool pool(1);
    const packed_matrix packed(view, false, {kernels::weight_element::fp8, group}, pool);
    std::vector<float> units(inputs * inputs);  // each row selects the weights of one input
    for (std::size_t i = 0; i < inputs; ++i) units[i * inputs + i] = 1;
    const auto columns = multiply(pool, packed, units, inputs);
    std::vector<float> weights(outputs * inputs);
    for (std::size_t o = 0; o < outputs; ++o)
      for (std::size_t i = 0; i < inputs; ++i) weights[o * inputs + i] = columns[i * outputs + o];
    return weights;
  }
};

BOOST_AUTO_TEST_CASE(every_code_of_fp8_is_decoded) {
  test::for_every_target([&] { BOOST_TEST((fp8_in_file().weights_of_product() == fp8_in_file().exact)); });
}

BOOST_AUTO_TEST_CASE(a_code_of_nan_makes_the_sums_of_its_row_nan) {
  test::for_every_target([&] {
    for (const unsigned code : {0x7fu, 0xffu}) {
      fp8_in_file file;
      file.codes[3 * fp8_in_file::inputs + 77] = static_cast<std::byte>(code);
      const auto weights = file.weights_of_product();
      for (std::size_t i = 0; i < weights.size(); ++i)
        BOOST_REQUIRE(std::isnan(weights[i]) == (i / fp8_in_file::inputs == 3));
    }
  });
}

BOOST_AUTO_TEST_CASE(a_matrix_without_inputs_gives_zeros) {
  thread_pool pool(1);
  const random_matrix weights(40, 0, dtype::f32, 1);
  const packed_matrix packed(weights.view, false, {kernels::weight_element::f32, 0}, pool);
  for (const float value : multiply(pool, packed, {}, 2)) BOOST_REQUIRE_EQUAL(value, 0.0f);
}

BOOST_AUTO_TEST_CASE(a_row_has_the_same_bits_in_any_batch) {
  constexpr std::size_t outputs = 75, inputs = 301, rows = 25;
  test::for_every_target([&] {
    for (const char* format : {"fp32", "bf16", "fp16", "int8", "fp8", "int4-32", "nf4-128"}) {
      thread_pool one_thread(1);
      const packed_matrix packed = random_packed(format, outputs, inputs, one_thread);
      const std::vector<float> in = random_values(rows * inputs, 6);
      std::vector<float> alone;
      for (std::size_t t = 0; t < rows; ++t) {
        const std::vector<float> row(in.begin() + t * inputs, in.begin() + (t + 1) * inputs);
        const auto out = multiply(one_thread, packed, row, 1);
        alone.insert(alone.end(), out.begin(), out.end());
      }
      for (std::uint32_t threads = 1; threads <= 4; ++threads) {
        thread_pool pool(threads);
        for (std::size_t count = 1; count <= rows; ++count) {
          const auto together = multiply(pool, packed, in, count);
          BOOST_REQUIRE(std::memcmp(together.data(), alone.data(), together.size() * sizeof(float)) == 0);
        }
      }
    }
  });
}

// 500 rows cross every boundary: row groups, row blocks of a task, blocks of inputs.
BOOST_AUTO_TEST_CASE(a_row_has_the_same_bits_in_a_long_prefill) {
  constexpr std::size_t outputs = 200, inputs = 700, rows = 500;
  thread_pool pool(2);
  for (const char* format : {"bf16", "int8", "fp8", "int4", "nf4-128"}) {
    const packed_matrix packed = random_packed(format, outputs, inputs, pool);
    const std::vector<float> in = random_values(rows * inputs, 8);
    const auto together = multiply(pool, packed, in, rows);
    for (std::size_t t = 0; t < rows; ++t) {
      const std::vector<float> row(in.begin() + t * inputs, in.begin() + (t + 1) * inputs);
      const auto alone = multiply(pool, packed, row, 1);
      BOOST_REQUIRE(std::memcmp(alone.data(), together.data() + t * outputs, outputs * sizeof(float)) == 0);
    }
  }
}

// Integers cannot express NaN and infinity: the scale of the group has to carry them on.
BOOST_AUTO_TEST_CASE(fused_products_of_integers_give_the_same_bits) {
  constexpr std::size_t outputs = 150, inputs = 700;
  test::for_every_target([&] {
    thread_pool pool(2);
    const random_matrix weights(outputs, inputs, dtype::bf16, 21);
    for (const auto element :
         {kernels::weight_element::int8, kernels::weight_element::int4, kernels::weight_element::nf4}) {
      const packed_matrix packed(weights.view, false, {element, 64}, pool);
      for (const std::size_t rows : {1u, 2u, 3u, 7u, 11u, 12u, 30u}) {
        const std::vector<float> in = random_values(rows * inputs, 22 + rows);
        const std::vector<float> separate = multiply(pool, packed, in, rows, integer_products::separate);
        BOOST_TEST(multiply(pool, packed, in, rows) == separate);
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(quantised_gemms_carry_nan_and_infinity) {
  constexpr std::size_t outputs = 40, inputs = 200;
  test::for_every_target([&] {
    thread_pool pool(1);
    for (const char* format : {"int8", "fp8", "int4", "nf4"}) {
      const packed_matrix packed = random_packed(format, outputs, inputs, pool);
      for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        for (const std::size_t at : {std::size_t{0}, std::size_t{77}, inputs - 1}) {
          std::vector<float> in = random_values(2 * inputs, 3);
          in[at] = bad;
          const auto out = multiply(pool, packed, in, 2);
          for (std::size_t o = 0; o < outputs; ++o) {
            BOOST_REQUIRE(!std::isfinite(out[o]));
            BOOST_REQUIRE(std::isfinite(out[outputs + o]));
          }
        }
      }
    }
  });
}

// Of zeros, of tiny and of huge numbers, and with one that is not finite; in both panels and in the last, shorter
// group.
BOOST_AUTO_TEST_CASE(rows_of_fp8_have_one_scale) {
  constexpr std::size_t outputs = 37, inputs = 200;
  thread_pool pool(2);
  std::vector<float> values = random_values(outputs * inputs, 31, 0.02f);
  const auto row = [&](std::size_t o) { return std::span(values).subspan(o * inputs, inputs); };
  std::ranges::fill(row(1), 0.0f);
  for (float& w : row(2)) w *= 1e-38f;  // subnormal
  for (float& w : row(35)) w *= 1e-35f;
  for (float& w : row(3)) w *= 1e38f;
  row(33)[150] = std::numeric_limits<float>::infinity();
  row(34)[199] = 100;
  const auto bytes = test::encode(values, dtype::f32);
  const packed_matrix packed(test::view_of(bytes, dtype::f32, {outputs, inputs}), false,
                             {kernels::weight_element::fp8, 64}, pool);
  for (std::size_t o = 0; o < outputs; ++o) {
    const std::uint16_t expected = kernels::row_scale(kernels::weight_element::fp8, row(o));
    for (std::size_t input = 0; input < inputs; input += 64) {
      std::uint16_t scale;
      const std::byte* const line = packed.panel(o / panel_outputs) + packed.offset_of(input);
      std::memcpy(&scale, line + o % panel_outputs * sizeof scale, sizeof scale);
      BOOST_TEST(scale == expected, "row " << o << ", input " << input);
    }
  }
}

BOOST_AUTO_TEST_CASE(several_gemms_finish_in_their_own_ways) {
  constexpr std::size_t outputs = 45, inputs = 50, rows = 3;
  test::for_every_target([&] {
    thread_pool pool(3);
    const random_matrix weights(outputs, inputs, dtype::f32, 9);
    const packed_matrix packed(weights.view, false, {kernels::weight_element::f32, 0}, pool);
    const std::vector<float> in = random_values(rows * inputs, 10);
    const std::vector<float> sums = multiply(pool, packed, in, rows);
    const std::vector<float> before = random_values(rows * outputs, 11);
    std::vector<float> stored = before, added = before, tanhs = before, sigmoids = before, squares = before;
    const auto into = [&](std::vector<float>& out, epilogue how) {
      return gemm{&packed, in.data(), inputs, out.data(), outputs, how};
    };
    const gemm all[] = {into(stored, epilogue::store), into(added, epilogue::add), into(tanhs, epilogue::tanh),
                        into(sigmoids, epilogue::sigmoid), into(squares, epilogue::relu_squared)};
    matmul multiplication(pool);
    multiplication(rows, all);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const float positive = std::max(sums[i], 0.0f);
      BOOST_REQUIRE_EQUAL(stored[i], sums[i]);
      BOOST_REQUIRE_EQUAL(added[i], before[i] + sums[i]);
      BOOST_REQUIRE_SMALL(tanhs[i] - std::tanh(sums[i]), 1e-6f);
      BOOST_REQUIRE_SMALL(sigmoids[i] - 1 / (1 + std::exp(-sums[i])), 1e-6f);
      BOOST_REQUIRE_EQUAL(squares[i], positive * positive);
    }
  });
}

// A matrix times the unit vectors is the matrix: packing must find every element, wherever the view keeps it.
BOOST_AUTO_TEST_CASE(packing_follows_any_view) {
  constexpr std::size_t outputs = 37, inputs = 70;
  thread_pool pool(2);
  std::vector<float> units(inputs * inputs, 0.0f);
  for (std::size_t i = 0; i < inputs; ++i) units[i * inputs + i] = 1;
  for (const dtype type : {dtype::f32, dtype::bf16, dtype::f16, dtype::f64}) {
    const random_matrix dense(outputs, inputs, type, 12);
    std::vector<std::byte> shifted(dense.bytes.size() + 1);  // one byte off any alignment
    std::memcpy(shifted.data() + 1, dense.bytes.data(), dense.bytes.size());
    tensor_view unaligned = dense.view;
    unaligned.data = shifted.data() + 1;
    tensor_view turned = dense.view;  // the same memory, read as (inputs, outputs)
    std::swap(turned.shape[0], turned.shape[1]);
    std::swap(turned.stride[0], turned.stride[1]);
    const kernels::weight_format format = kernels::format_of(type).value_or(kernels::weight_format{});
    for (const packed_matrix& packed :
         {packed_matrix(dense.view, false, format, pool), packed_matrix(unaligned, false, format, pool),
          packed_matrix(turned, true, format, pool)}) {
      const auto columns = multiply(pool, packed, units, inputs);
      for (std::size_t o = 0; o < outputs; ++o)
        for (std::size_t i = 0; i < inputs; ++i)
          BOOST_REQUIRE_EQUAL(columns[i * outputs + o], dense.exact[o * inputs + i]);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_embedding_gives_its_rows_back) {
  thread_pool pool(2);
  constexpr std::size_t rows = 600, width = 33;
  for (const dtype type : formats) {
    const random_matrix table(rows, width, type, 13);
    const embedding packed(table.view, *format_for(type), pool);
    float out[width];
    for (std::size_t row = 0; row < rows; ++row) {
      packed.read(row, out);
      BOOST_REQUIRE(std::memcmp(out, table.exact.data() + row * width, sizeof out) == 0);
    }
  }
}
