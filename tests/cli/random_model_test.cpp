// Shows that a random checkpoint is one that the model room accepts, with the sizes asked for; by writing a small one
// and binding it.
#include "cli/random_model.hpp"

#include <boost/test/unit_test.hpp>

#include "model/model_info.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;

BOOST_AUTO_TEST_CASE(binds_with_the_sizes_asked_for) {
  const kernels::rwkv7_dims dims{.layers = 2,
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
  BOOST_REQUIRE(cli::write_random_model(path, dims, 7));
  const auto file = model::checkpoint::open(path);
  BOOST_REQUIRE_MESSAGE(file, file.error().message);
  const auto info = model::describe(*file);
  BOOST_REQUIRE_MESSAGE(info, info.error().message);
  BOOST_TEST(info->layers == 2u);
  BOOST_TEST(info->rank_g == 24u);
  BOOST_TEST(info->vocab == 300u);
  BOOST_TEST((info->matrix_type == dtype::bf16));
  const auto weights = model::bind_rwkv7(*file, *info);
  BOOST_REQUIRE_MESSAGE(weights, weights.error().message);
  BOOST_TEST(weights->dims.rank_v == 8u);
}

BOOST_AUTO_TEST_CASE(released_sizes_have_names) {
  const auto dims = cli::released_dims("1.5b");
  BOOST_REQUIRE(dims);
  BOOST_TEST(dims->layers == 24u);
  BOOST_TEST(dims->heads * dims->head_size == dims->embd);
  BOOST_TEST(dims->vocab == 65536u);
  BOOST_TEST(!cli::released_dims("3b"));
}
