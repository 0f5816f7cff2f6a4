// The sparse value product, run by the emulator, against sums in fp64: any share of zeros, odd sizes, fewer rows than
// there is room for, one launch after the other on the same memory.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <deque>

#include "kernels/gpu/model/sparse_value.hpp"
#include "tests/kernels/gpu/device_values.hpp"
#include "tests/support/random_cases.hpp"

using namespace skein;
using namespace skein::test;
using namespace skein::kernels::gpu;
using values = std::vector<float>;

namespace {

/// A model of two layers with nothing but their value matrices, and activations of which a share is zero.
struct sparse_case {
  sparse_case(random_numbers& random, element element_type, std::uint32_t zeros_of_ten)
      : type(element_type), outputs(1 + random.below(700)), inputs(1 + random.below(1400)) {
    const std::uint32_t width = padded(inputs), height = padded(outputs);
    for (int layer = 0; layer < 2; ++layer) {
      values& matrix = matrices.emplace_back(std::size_t{height} * width, 0.0f);
      for (std::uint32_t o = 0; o < outputs; ++o)
        for (std::uint32_t i = 0; i < inputs; ++i) matrix[std::size_t{o} * width + i] = random.value();
      matrix = rounded(matrix, type);
      device_layer& on_device = layers.emplace_back();
      on_device.ffn_value = {memory.emplace_back(matrix, type).data(), outputs, inputs};
    }
    for (std::uint32_t row = 0; row < sparse_values::rows_max; ++row)
      for (std::uint32_t i = 0; i < width; ++i)
        hidden.push_back(i < inputs && random.below(10) >= zeros_of_ten ? std::abs(random.value()) : 0.0f);
    hidden = rounded(hidden, type);
    x = random_values(random, std::size_t{sparse_values::rows_max} * outputs);
  }

  /// x after `rows` rows of that layer were added, and how large its summands are.
  [[nodiscard]] std::pair<std::vector<double>, double> expected(std::size_t layer, std::uint32_t rows) const {
    std::vector<double> sums(x.begin(), x.end());
    double largest = 1;
    for (std::uint32_t row = 0; row < rows; ++row)
      for (std::uint32_t o = 0; o < outputs; ++o) {
        double size = 0;
        for (std::uint32_t i = 0; i < inputs; ++i) {
          const double term = double{matrices[layer][std::size_t{o} * padded(inputs) + i]} *
                              double{hidden[std::size_t{row} * padded(inputs) + i]};
          sums[std::size_t{row} * outputs + o] += term;
          size += std::abs(term);
        }
        largest = std::max(largest, size);
      }
    return {sums, largest};
  }

  element type;
  std::uint32_t outputs, inputs;
  std::vector<values> matrices;
  values hidden, x;
  std::deque<device_values> memory;
  std::vector<device_layer> layers;
};

values add(const sparse_values& sparse, const sparse_case& c, std::size_t layer, std::uint32_t rows, std::uint32_t room,
           const stream& in) {
  batch_upload upload(room, 1, 1);
  const std::vector<token_id> ids(rows, 0);
  const std::vector<kernels::sequence_run> runs{{0, 0, rows}};
  require(upload.send_rows({ids, runs}, in));
  const device_values hidden(c.hidden, c.type), x(c.x, element::f32);
  require(sparse.add(in, static_cast<std::uint32_t>(layer), hidden.data(), &upload.on_device().counts->rows, room,
                     x.floats()));
  return x.read(in);
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_zero_adds_nothing_and_what_is_not_adds_its_share) {
  for (std::uint64_t seed = random_cases::seed(); seed < random_cases::seed() + 24; ++seed) {
    emulator::block_runner::of_this_thread().reseed(seed);
    random_numbers random(seed);
    BOOST_TEST_CONTEXT("SKEIN_SEED=" << seed) {
      const stream in;
      const sparse_case c(random, seed % 2 == 0 ? element::f16 : element::bf16, static_cast<std::uint32_t>(seed % 11));
      const sparse_values sparse(c.layers, c.type, in);
      for (const std::size_t layer : {1, 0, 1}) {
        const std::uint32_t rows = 1 + random.below(sparse_values::rows_max);
        const std::uint32_t room = rows + random.below(sparse_values::rows_max + 1 - rows);
        const auto [sums, largest] = c.expected(layer, rows);
        const values got = add(sparse, c, layer, rows, room, in);
        double worst = 0;
        for (std::size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(double{got[i]} - sums[i]));
        BOOST_TEST(worst <= 1e-5 * largest);
        for (std::size_t i = std::size_t{rows} * c.outputs; i < got.size(); ++i) BOOST_TEST(got[i] == c.x[i]);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_sparse_sum_hangs_neither_on_the_other_row_nor_on_the_order_of_blocks) {
  random_numbers random(7);
  const stream in;
  const sparse_case c(random, element::f16, 8);
  const sparse_values sparse(c.layers, c.type, in);
  const values both = add(sparse, c, 0, 2, 2, in);
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    emulator::block_runner::of_this_thread().reseed(seed);
    const values alone = add(sparse, c, 0, 1, 1 + seed % 2, in);
    for (std::uint32_t o = 0; o < c.outputs; ++o) BOOST_REQUIRE(alone[o] == both[o]);
  }
}
