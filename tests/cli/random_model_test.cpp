// Shows that a random checkpoint of any version is one that loads with the sizes asked for and computes normal values,
// by writing small ones and running them.
#include "cli/bench/random_model.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <numeric>
#include <random>
#include <span>
#include <sstream>

#include "cli/command_line.hpp"
#include "kernels/make_stages.hpp"
#include "model/forward.hpp"
#include "model/model_info.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;

namespace {

constexpr kernels::model_dims small_dims(model::rwkv_version version) {
  using enum model::rwkv_version;
  kernels::model_dims dims{.layers = 12, .embd = 128, .heads = 2, .head_size = 64, .ffn = 448, .vocab = 300};
  switch (version) {
    case v4: dims.heads = dims.head_size = 0, dims.ffn = 512; break;
    case v5_1: dims.decays = 1; break;
    case v5_2: dims.decays = 64; break;
    case v6: dims.rank_w = 16, dims.rank_x = 8; break;
    case v7: dims.rank_w = 32, dims.rank_a = 16, dims.rank_v = 8, dims.rank_g = 24, dims.ffn = 512; break;
  }
  return dims;
}

model::checkpoint written(const std::filesystem::path& path, const cli::random_model& of) {
  BOOST_REQUIRE(cli::write_random_model(path, of));
  auto file = model::checkpoint::open(path);
  BOOST_REQUIRE_MESSAGE(file, file.error().message);
  return std::move(*file);
}

/// Logits of each of `count` tokens, fed from a fresh state.
std::vector<float> logits_of(const kernels::model_weights& weights, const kernels::model_dims& dims,
                             std::uint32_t count) {
  const auto stages = kernels::make_cpu_stages(weights, dtype::f32,
                                               {.slots = 1, .max_rows = count, .max_logit_rows = count, .threads = 2});
  BOOST_REQUIRE_MESSAGE(stages, stages.error().message);
  std::mt19937 random(5);
  std::vector<token_id> tokens(count);
  for (auto& token : tokens) token = static_cast<token_id>(random() % dims.vocab);
  const kernels::sequence_run run{0, 0, count};
  const kernels::batch rows{tokens, {&run, 1}};
  std::vector<std::uint32_t> wanted(count);
  std::iota(wanted.begin(), wanted.end(), 0u);
  std::vector<float> logits(std::size_t{count} * dims.vocab);
  (*stages)->clear_state(0);
  model::forward(**stages, dims.layers, rows);
  (*stages)->head(rows, wanted, logits);
  return logits;
}

double deviation(std::span<const float> values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0) / count - mean * mean);
}

template <template <typename> typename Layer>
std::uint64_t parameters_of(const kernels::model_dims& dims) {
  std::uint64_t sum = 0;
  std::uint32_t layer = 0;
  const auto count = [&](const kernels::tensor_spec& spec) {
    using enum kernels::presence;
    if (spec.when == optional || (spec.when == after_first && layer == 0)) return;
    std::uint64_t elements = 1;
    for (const kernels::extent e : spec.shape)
      if (e != kernels::extent::none) elements *= value_of(e, dims);
    sum += elements;
  };
  kernels::outer_weights_of<kernels::checkpoint_views>::for_each_tensor(count);
  for (; layer < dims.layers; ++layer) Layer<kernels::checkpoint_views>::for_each_tensor(count);
  return sum;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_version_loads_and_computes_normal_values) {
  using enum model::rwkv_version;
  const test::temporary_folder folder;
  for (const auto version : {v4, v5_1, v5_2, v6, v7}) {
    for (const bool sparse : {false, true}) {
      BOOST_TEST_CONTEXT("RWKV-" << to_string(version) << ", sparse " << sparse) {
        const kernels::model_dims dims = small_dims(version);
        const auto file = written(folder.path() / "random.safetensors",
                                  {.version = version, .dims = dims, .seed = 7, .sparse = sparse});
        const auto info = model::describe(file);
        BOOST_REQUIRE_MESSAGE(info, info.error().message);
        BOOST_TEST(to_string(info->version) == to_string(version));
        BOOST_TEST((info->matrix_type == dtype::bf16));
        BOOST_TEST(!info->has_time_state);
        const kernels::model_dims found = info->dims();
        for (const auto size :
             {&kernels::model_dims::layers, &kernels::model_dims::embd, &kernels::model_dims::heads,
              &kernels::model_dims::head_size, &kernels::model_dims::ffn, &kernels::model_dims::vocab,
              &kernels::model_dims::rank_w, &kernels::model_dims::rank_a, &kernels::model_dims::rank_v,
              &kernels::model_dims::rank_g, &kernels::model_dims::rank_x, &kernels::model_dims::decays})
          BOOST_TEST((found.*size) == (dims.*size));
        const auto weights = model::bind(file, *info);
        BOOST_REQUIRE_MESSAGE(weights, weights.error().message);

        constexpr std::uint32_t tokens = 100;
        const auto logits = logits_of(*weights, dims, tokens);
        BOOST_REQUIRE(std::ranges::all_of(logits, [](float x) { return std::isfinite(x); }));
        const auto rows = std::span(logits);
        const auto first = rows.first(dims.vocab), last = rows.last(dims.vocab);
        for (const auto row : {first, last}) {
          BOOST_TEST(deviation(row) > 0.1);
          BOOST_TEST(deviation(row) < 3);
        }
        BOOST_TEST(!std::ranges::equal(first, last));
      }
    }
  }
}

// Figures of different builds are comparable only with the same weights.
BOOST_AUTO_TEST_CASE(files_of_version_7_stay_as_they_are) {
  const test::temporary_folder folder;
  cli::random_model of{.dims = small_dims(model::rwkv_version::v7), .seed = 7};
  const auto path = folder.path() / "random.safetensors";
  const auto bits_of = [](const model::checkpoint& file) { return model::identify(file, "").former_identity; };
  BOOST_TEST(bits_of(written(path, of)) == "abd30f179e2655bc6e27391388e5b15c");
  of.sparse = true;
  BOOST_TEST(bits_of(written(path, of)) == "21e87ef56bade1c0843e7688b1342684");
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
  const auto of_seed = [&](const char* name, std::uint64_t seed) {
    return written(folder.path() / name, {.dims = dims, .type = dtype::f16, .seed = seed});
  };
  const auto one = of_seed("a", 3), again = of_seed("b", 3), other = of_seed("c", 4);
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
    const auto file =
        written(folder.path() / "random.safetensors", {.dims = dims, .type = dtype::f16, .sparse = sparse});
    const auto values = [&](const char* name) {
      const tensor_view* found = file.find(name);
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
  using enum model::rwkv_version;
  const auto expect = [](const char* name, model::rwkv_version version, std::uint32_t layers, std::uint32_t embd,
                         std::uint32_t ffn) {
    BOOST_TEST_CONTEXT(name) {
      const auto found = cli::find_released(name);
      BOOST_REQUIRE(found);
      BOOST_TEST(to_string(found->version) == to_string(version));
      BOOST_TEST(found->dims.layers == layers);
      BOOST_TEST(found->dims.embd == embd);
      BOOST_TEST(found->dims.ffn == ffn);
      BOOST_TEST(found->dims.vocab == 65536u);
      BOOST_TEST(found->dims.heads == (version == v4 ? 0 : embd / 64));
    }
  };
  expect("1.5b", v7, 24, 2048, 8192);
  expect("v7-0.4b", v7, 24, 1024, 4096);
  expect("v6-14b", v6, 61, 4096, 14336);
  expect("v5-3b", v5_2, 32, 2560, 8960);
  expect("v4-14b", v4, 40, 5120, 20480);
  BOOST_TEST(cli::find_released("v6-1.6b")->dims.rank_x == 32u);
  BOOST_TEST(cli::find_released("v5-7b")->dims.decays == 64u);
  for (const char* name : {"", "3b", "v7", "v7-", "v7-v7-0.4b", "v6-0.4b", "v5.2-3b"})
    BOOST_TEST(!cli::find_released(name), name);
}

BOOST_AUTO_TEST_CASE(parameters_are_those_of_the_released_models) {
  const auto parameters = [](const char* name) {
    return parameters_of<kernels::rwkv7_layer_of>(cli::find_released(name)->dims);
  };
  BOOST_TEST(parameters("0.1b") == 191'034'624u);
  BOOST_TEST(parameters("0.4b") == 450'767'872u);
  BOOST_TEST(parameters("1.5b") == 1'527'404'544u);
  BOOST_TEST(parameters("2.9b") == 2'947'735'040u);
  BOOST_TEST(parameters("7.2b") == 7'199'141'888u);
  BOOST_TEST(parameters("13.3b") == 13'269'245'952u);
}

BOOST_AUTO_TEST_CASE(the_help_names_every_size) {
  const std::vector<std::string> arguments{"bench", "engine", "--help"};
  const auto parsed = cli::parse_command_line(arguments);
  BOOST_REQUIRE(parsed);
  const std::string& help = std::get<cli::print_text>(*parsed).text;
  std::istringstream names(cli::released_sizes());
  std::string name;
  std::size_t count = 0;
  for (; std::getline(names >> std::ws, name, ','); ++count) BOOST_TEST(help.find(name) != std::string::npos, name);
  BOOST_TEST(count == 19u);
}
