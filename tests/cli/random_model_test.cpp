// Shows that a random checkpoint is one that the model room accepts, with the sizes asked for; by writing a small one
// and binding it.
#include "cli/bench/random_model.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <numeric>
#include <random>

#include "model/model_info.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;

BOOST_AUTO_TEST_CASE(binds_with_the_sizes_asked_for) {
  const kernels::model_dims dims{.layers = 2,
                                 .embd = 128,
                                 .heads = 2,
                                 .head_size = 64,
                                 .ffn = 512,
                                 .vocab = 300,
                                 .rank_w = 32,
                                 .rank_a = 16,
                                 .rank_v = 8,
                                 .rank_g = 24};
  const test::temporary_folder folder;
  const auto path = folder.path() / "random.safetensors";
  BOOST_REQUIRE(cli::write_random_model(path, {.dims = dims, .seed = 7}));
  const auto file = model::checkpoint::open(path);
  BOOST_REQUIRE_MESSAGE(file, file.error().message);
  const auto info = model::describe(*file);
  BOOST_REQUIRE_MESSAGE(info, info.error().message);
  BOOST_TEST(info->layers == 2u);
  BOOST_TEST(info->rank_g == 24u);
  BOOST_TEST(info->vocab == 300u);
  BOOST_TEST((info->matrix_type == dtype::bf16));
  const auto weights = model::bind(*file, *info);
  BOOST_REQUIRE_MESSAGE(weights, weights.error().message);
  BOOST_TEST(weights->dims.rank_v == 8u);
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_file) {
  const kernels::model_dims dims{.layers = 1,
                                 .embd = 512,
                                 .heads = 8,
                                 .head_size = 64,
                                 .ffn = 2048,
                                 .vocab = 3000,  // the tables are cut into pieces
                                 .rank_w = 32,
                                 .rank_a = 32,
                                 .rank_v = 32,
                                 .rank_g = 32};
  const test::temporary_folder folder;
  const auto written = [&](const char* name, dtype type, std::uint64_t seed) {
    const auto path = folder.path() / name;
    BOOST_REQUIRE(cli::write_random_model(path, {.dims = dims, .type = type, .seed = seed}));
    auto file = model::checkpoint::open(path);
    BOOST_REQUIRE_MESSAGE(file, file.error().message);
    return std::move(*file);
  };
  const auto one = written("a", dtype::f16, 3), again = written("b", dtype::f16, 3),
             other = written("c", dtype::f16, 4);
  BOOST_TEST(model::identity(one, "") == model::identity(again, ""));
  BOOST_TEST(model::identity(one, "") != model::identity(other, ""));

  const tensor_view emb = *one.find("emb.weight");
  std::vector<float> values(static_cast<std::size_t>(emb.elements()));
  copy_to_f32(emb, values);
  const float bound = 1 / std::sqrt(512.0f);
  double sum = 0, squares = 0;
  for (const float v : values) {
    BOOST_REQUIRE(std::abs(v) <= bound);
    sum += v, squares += v * v;
  }
  BOOST_TEST(std::abs(sum) / static_cast<double>(values.size()) < 1e-3 * bound);
  BOOST_TEST(std::abs(squares / static_cast<double>(values.size()) / (bound * bound / 3) - 1) < 1e-2);
}

// Keys of the feed-forward for normed rows: positive half of the time, in a sparse model 12 % of it.
BOOST_AUTO_TEST_CASE(a_sparse_model_has_few_positive_keys) {
  const kernels::model_dims dims{.layers = 1,
                                 .embd = 512,
                                 .heads = 8,
                                 .head_size = 64,
                                 .ffn = 2048,
                                 .vocab = 100,
                                 .rank_w = 8,
                                 .rank_a = 8,
                                 .rank_v = 8,
                                 .rank_g = 8};
  const test::temporary_folder folder;
  for (const bool sparse : {false, true}) {
    const auto path = folder.path() / "random.safetensors";
    BOOST_REQUIRE(cli::write_random_model(path, {.dims = dims, .type = dtype::f16, .sparse = sparse}));
    const auto file = model::checkpoint::open(path);
    BOOST_REQUIRE_MESSAGE(file, file.error().message);
    const auto values = [&](const char* name) {
      const tensor_view* found = file->find(name);
      BOOST_REQUIRE(found);
      std::vector<float> all(static_cast<std::size_t>(found->elements()));
      copy_to_f32(*found, all);
      return all;
    };
    const auto weight = values("blocks.0.ln2.weight"), bias = values("blocks.0.ln2.bias");
    const auto mix = values("blocks.0.ffn.x_k"), key = values("blocks.0.ffn.key.weight");
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::size_t positive = 0, count = 0;
    for (int row = 0; row < 20; ++row) {
      std::vector<float> x(dims.embd);
      for (std::uint32_t c = 0; c < dims.embd; ++c) {
        const float now = normal(random) * weight[c] + bias[c], before = normal(random) * weight[c] + bias[c];
        x[c] = now + (before - now) * mix[c];
      }
      for (std::uint32_t f = 0; f < dims.ffn; ++f, ++count) {
        const auto first = key.begin() + static_cast<std::ptrdiff_t>(std::size_t{f} * dims.embd);
        positive += std::inner_product(x.begin(), x.end(), first, 0.0f) > 0;
      }
    }
    const double share = static_cast<double>(positive) / static_cast<double>(count);
    BOOST_TEST_CONTEXT("sparse " << sparse << ", share " << share) {
      BOOST_TEST(std::abs(share - (sparse ? 0.12 : 0.5)) < 0.03);
    }
  }
}

BOOST_AUTO_TEST_CASE(released_sizes_have_names) {
  const auto dims = cli::released_dims("1.5b");
  BOOST_REQUIRE(dims);
  BOOST_TEST(dims->layers == 24u);
  BOOST_TEST(dims->heads * dims->head_size == dims->embd);
  BOOST_TEST(dims->vocab == 65536u);
  BOOST_TEST(!cli::released_dims("3b"));
}
