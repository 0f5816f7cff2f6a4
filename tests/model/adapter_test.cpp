// Shows that adapters of every kind become the weights that a merge in fp64 gives, rounded once, for each element type
// and each layout of the blocks; that they apply in order; and that the identity changes with the adapter and its
// scale.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <functional>

#include "model/model_info.hpp"
#include "tests/model/adapter_fixture.hpp"

using namespace skein;
using test::adapter_folder;
using test::dense;
using test::dense_of;
using test::tensor;

namespace {

const std::string key = "blocks.1.att.key", wide = "blocks.0.ffn.key", tall = "blocks.1.ffn.value";

model::checkpoint opened(const adapter_folder& in, const std::vector<std::string>& adapters) {
  auto file = in.open(adapters);
  BOOST_REQUIRE_MESSAGE(file, (file ? "" : file.error().message));
  return std::move(*file);
}

/// The tensor of a plan.
dense dense_of(const test::tensor_plan& plan) {
  tensor_view view{reinterpret_cast<const std::byte*>(plan.data.data()), plan.type, plan.shape, {}};
  view.stride.resize(plan.shape.size());
  std::int64_t step = 1;
  for (std::size_t d = plan.shape.size(); d-- > 0; step *= plan.shape[d]) view.stride[d] = step;
  return test::dense_of(view);
}

/// The distance between neighbours of a value in its type.
double spacing(double value, dtype type) {
  const int bits = type == dtype::bf16 ? 8 : type == dtype::f16 ? 11 : 24;
  int exponent = 0;
  std::frexp(value, &exponent);
  if (type == dtype::f16) exponent = std::max(exponent, -13);
  return std::ldexp(1.0, exponent - bits);
}

/// Checks that each element is nearest to the exact one: rounded once.
void check_nearest(const tensor_view& merged, const dense& exact) {
  const dense got = test::dense_of(merged);
  BOOST_REQUIRE(got.values.size() == exact.values.size());
  for (std::size_t i = 0; i < got.values.size(); ++i)
    BOOST_TEST_REQUIRE(std::abs(got.values[i] - exact.values[i]) <= 0.5000001 * spacing(exact.values[i], merged.type));
}

dense product(const dense& up, const dense& down) {
  dense all{up.rows, down.columns, std::vector<double>(up.rows * down.columns)};
  for (std::size_t o = 0; o < up.rows; ++o)
    for (std::size_t i = 0; i < down.columns; ++i)
      for (std::size_t k = 0; k < up.columns; ++k) all.at(o, i) += up.at(o, k) * down.at(k, i);
  return all;
}

dense sum(dense a, const dense& b, double scale) {
  for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] += scale * b.values[i];
  return a;
}

struct sizes {
  std::int64_t outputs, inputs;
};
sizes sizes_of(const model::checkpoint& base, const std::string& matrix) {
  const auto* view = base.find(matrix + ".weight");
  return {view->shape[0], view->shape[1]};
}

/// Merges into one matrix of models of each type, and compares with `exact`(base matrix).
void check_merge(const std::string& matrix,
                 const std::function<std::vector<std::string>(const adapter_folder&, sizes)>& write,
                 const std::function<dense(const dense&, sizes)>& exact) {
  for (const dtype type : {dtype::bf16, dtype::f16, dtype::f32}) {
    const adapter_folder in(type);
    const auto base = opened(in, {});
    const sizes of = sizes_of(base, matrix);
    const auto merged = opened(in, write(in, of));
    const auto* view = merged.find(matrix + ".weight");
    BOOST_TEST((view->type == type && view->shape == base.find(matrix + ".weight")->shape));
    check_nearest(*view, exact(test::dense_of(*base.find(matrix + ".weight")), of));
    for (const auto& other : base.tensors())
      if (other.name != matrix + ".weight")
        BOOST_TEST((test::dense_of(*merged.find(other.name)).values == test::dense_of(other.view).values), other.name);
  }
}

std::vector<test::tensor_plan> pair_of(const std::string& matrix, sizes of, std::int64_t rank,
                                       const std::string& ending = "") {
  return {tensor(matrix + ".lora_A" + ending, {rank, of.inputs}),
          tensor(matrix + ".lora_B" + ending, {of.outputs, rank})};
}

dense lora(const dense& base, const std::string& matrix, sizes of, std::int64_t rank, double scale,
           const std::string& ending = "") {
  const auto pair = pair_of(matrix, of, rank, ending);
  return sum(base, product(dense_of(pair[1]), dense_of(pair[0])), scale);
}

const std::string peft = "base_model.model.";

}  // namespace

BOOST_AUTO_TEST_SUITE(adapter)

BOOST_AUTO_TEST_CASE(lora_of_older_trainers) {
  for (const auto& matrix : {key, wide, tall, std::string("head")})
    check_merge(
        matrix,
        [&](const adapter_folder& in, sizes of) {
          return std::vector{in.pth("a.pth", pair_of(matrix, of, 3)) + ":0.75"};
        },
        [&](const dense& base, sizes of) { return lora(base, matrix, of, 3, 0.75); });
}

BOOST_AUTO_TEST_CASE(lora_of_peft) {
  for (const bool root : {false, true})
    check_merge(
        wide,
        [&](const adapter_folder& in, sizes of) {
          return std::vector{in.peft(R"({"peft_type": "LORA", "r": 4, "lora_alpha": 6, "use_rslora": )" +
                                         std::string(root ? "true" : "false") + "}",
                                     pair_of(peft + wide, of, 4, ".weight"))};
        },
        [&](const dense& base, sizes of) { return lora(base, peft + wide, of, 4, root ? 3.0 : 1.5, ".weight"); });
  const adapter_folder in;
  const auto of = sizes_of(opened(in, {}), key);
  const std::string folder =
      in.peft(R"({"peft_type":"LORA","r":4,"lora_alpha":6})", pair_of(peft + key, of, 4, ".weight"));
  const auto whole = opened(in, {folder}), file = opened(in, {folder + "/adapter_model.safetensors"}),
             scaled = opened(in, {folder + ":1.5"}), other = opened(in, {folder + ":1"});
  const auto matrix = [](const model::checkpoint& merged) {
    return test::dense_of(*merged.find(key + ".weight")).values;
  };
  BOOST_TEST((matrix(whole) == matrix(file)));
  BOOST_TEST((matrix(whole) == matrix(scaled)));
  BOOST_TEST((matrix(whole) != matrix(other)));
}

BOOST_AUTO_TEST_CASE(dora_of_columns) {
  check_merge(
      tall,
      [&](const adapter_folder& in, sizes of) {
        auto tensors = pair_of(tall, of, 2);
        tensors.push_back(tensor(tall + ".lora_M", {1, of.inputs}));
        return std::vector{in.pth("a.pth", tensors) + ":2"};
      },
      [&](const dense& base, sizes of) {
        dense w = lora(base, tall, of, 2, 2);
        const dense m = dense_of(tensor(tall + ".lora_M", {1, of.inputs}));
        for (std::size_t i = 0; i < w.columns; ++i) {
          double square = 0;
          for (std::size_t o = 0; o < w.rows; ++o) square += w.at(o, i) * w.at(o, i);
          for (std::size_t o = 0; o < w.rows; ++o) w.at(o, i) *= m.at(0, i) / (std::sqrt(square) + 1e-6);
        }
        return w;
      });
}

BOOST_AUTO_TEST_CASE(dora_of_rows) {
  const std::string norms = peft + wide + ".lora_magnitude_vector";
  check_merge(
      wide,
      [&](const adapter_folder& in, sizes of) {
        auto tensors = pair_of(peft + wide, of, 2, ".weight");
        tensors.push_back(tensor(norms, {of.outputs}));
        return std::vector{in.peft(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 1, "use_dora": true})", tensors)};
      },
      [&](const dense& base, sizes of) {
        dense w = lora(base, peft + wide, of, 2, 0.5, ".weight");
        const dense m = dense_of(tensor(norms, {of.outputs}));
        for (std::size_t o = 0; o < w.rows; ++o) {
          double square = 0;
          for (std::size_t i = 0; i < w.columns; ++i) square += w.at(o, i) * w.at(o, i);
          for (std::size_t i = 0; i < w.columns; ++i) w.at(o, i) *= m.at(0, o) / std::sqrt(square);
        }
        return w;
      });
}

BOOST_AUTO_TEST_CASE(pissa_with_its_start) {
  const auto start = [](sizes of) {
    return std::vector{tensor(key + ".init_lora_A", {2, of.inputs}), tensor(key + ".init_lora_B", {of.outputs, 2})};
  };
  check_merge(
      key,
      [&](const adapter_folder& in, sizes of) {
        return std::vector{in.pth("a.pth", pair_of(key, of, 2)), in.pth("start.pth", start(of))};
      },
      [&](const dense& base, sizes of) {
        return sum(lora(base, key, of, 2, 1), product(dense_of(start(of)[1]), dense_of(start(of)[0])), -1);
      });
}

namespace {

/// block (a, b) += block G + G, G of the row or the column of blocks.
dense bone(const dense& base, const dense& blocks, std::size_t r, bool by_rows) {
  dense w = base;
  for (std::size_t o = 0; o < w.rows; ++o)
    for (std::size_t i = 0; i < w.columns; ++i) {
      const std::size_t g = (by_rows ? o / r : i / r) * r;
      double change = blocks.at(g + o % r, i % r);
      for (std::size_t k = 0; k < r; ++k) change += base.at(o, i / r * r + k) * blocks.at(g + k, i % r);
      w.at(o, i) += change;
    }
  return w;
}

}  // namespace

BOOST_AUTO_TEST_CASE(bone_by_columns) {
  for (const std::string ending : {".bone", ".disha"})
    for (const auto& matrix : {wide, tall})
      check_merge(
          matrix,
          [&](const adapter_folder& in, sizes of) {
            return std::vector{in.pth("a.pth", {tensor(matrix + ending, {of.inputs / 2, 2, 2})})};
          },
          [&](const dense& base, sizes of) {
            return bone(base, dense_of(tensor(matrix + ending, {of.inputs / 2, 2, 2})), 2, false);
          });
}

BOOST_AUTO_TEST_CASE(bone_by_rows) {
  for (const auto& matrix : {wide, tall}) {
    const std::string name = peft + matrix + ".miss_block";
    check_merge(
        matrix,
        [&](const adapter_folder& in, sizes of) {
          return std::vector{in.peft(R"({"peft_type": "MISS", "r": 4, "init_weights": "bat"})",
                                     {tensor(name, {of.outputs / 4, 4, 4})})};
        },
        [&](const dense& base, sizes of) {
          return bone(base, dense_of(tensor(name, {of.outputs / 4, 4, 4})), 4, true);
        });
  }
}

BOOST_AUTO_TEST_CASE(miss_with_a_rest_and_repeated) {
  const auto expected = [](const dense& base, const dense& g) {
    dense w = base;
    for (std::size_t o = 0; o < w.rows; ++o)
      for (std::size_t i = 0; i < w.columns; ++i) w.at(o, i) += g.at(i % g.rows, o % g.columns);
    return w;
  };
  for (const std::int64_t rank : {2, 3})  // 3 leaves a rest
    check_merge(
        tall,
        [&](const adapter_folder& in, sizes of) {
          return std::vector{in.pth("a.pth", {tensor(tall + ".disha", {rank, of.outputs})})};
        },
        [&](const dense& base, sizes of) {
          return expected(base, dense_of(tensor(tall + ".disha", {rank, of.outputs})));
        });
  const std::string name = peft + wide + ".miss_block";
  check_merge(
      wide,
      [&](const adapter_folder& in, sizes) {
        return std::vector{in.peft(R"({"peft_type": "MISS", "init_weights": "mini"})", {tensor(name, {2, 4})})};
      },
      [&](const dense& base, sizes) {
        return expected(base, dense_of(tensor(name, {2, 4})));
      });
}

BOOST_AUTO_TEST_CASE(whole_tensors_are_replaced_and_adapters_apply_in_order) {
  const adapter_folder in;
  const auto base = opened(in, {});
  const sizes of = sizes_of(base, key);
  const auto fresh = tensor(key + ".weight", {of.outputs, of.inputs});
  const auto vector = tensor("blocks.1.att.x_r", {of.inputs});  // (1, 1, C) in the model
  const std::string replace = in.pth("replace.pth", {fresh, vector}),
                    add = in.pth("add.pth", pair_of(key, of, 2)) + ":1";
  const auto both = opened(in, {replace, add}), reversed = opened(in, {add, replace});
  check_nearest(*both.find(key + ".weight"), lora(dense_of(fresh), key, of, 2, 1));
  check_nearest(*reversed.find(key + ".weight"), dense_of(fresh));
  check_nearest(*both.find("blocks.1.att.x_r"), dense_of(vector));
  BOOST_TEST((both.find("blocks.1.att.x_r")->shape == base.find("blocks.1.att.x_r")->shape));
  BOOST_TEST(both.notes().size() == base.notes().size() + 2);
}

BOOST_AUTO_TEST_CASE(the_identity_follows_the_adapter_and_its_scale) {
  const adapter_folder in;
  const sizes of = sizes_of(opened(in, {}), key);
  const std::string a = in.pth("a.pth", pair_of(key, of, 2)),
                    b = in.pth("b.pth", pair_of(tall, sizes_of(opened(in, {}), tall), 2));
  const auto identity = [&](const std::vector<std::string>& adapters) {
    return model::identity(opened(in, adapters), "a vocabulary");
  };
  BOOST_TEST(identity({a + ":1"}) == identity({a + ":1"}));
  BOOST_TEST(identity({a + ":1"}) != identity({}));
  BOOST_TEST(identity({a + ":1"}) != identity({a + ":2"}));
  BOOST_TEST(identity({a + ":1"}) != identity({b + ":1"}));
}

BOOST_AUTO_TEST_SUITE_END()
