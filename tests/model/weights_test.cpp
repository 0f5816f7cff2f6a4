// bind binds each tensor under its own name with its own shape, and names the tensor that does not fit.
#include <boost/test/unit_test.hpp>
#include <cstring>

#include "model/model_info.hpp"
#include "tests/model/checkpoint_builders.hpp"
#include "tests/model/opened.hpp"

namespace skein::test {
namespace {

const std::vector<tensor_plan> small_model = rwkv7_plan(small_dims(), dtype::bf16);

result<kernels::rwkv7_weights> bound(const model::checkpoint& file) {
  const auto info = model::describe(file);
  if (!info) return info.error();
  const auto weights = model::bind(file, *info);
  if (!weights) return weights.error();
  return std::get<kernels::rwkv7_weights>(*weights);
}

result<kernels::rwkv7_weights> bound(const std::vector<tensor_plan>& plan) {
  const auto file = opened(safetensors_of(filled(plan)));
  if (!file) return file.error();
  return bound(*file);
}

bool holds(const tensor_view& view, const model::checkpoint& file, std::string_view name) {
  return view.data == file.find(name)->data;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(weights)

BOOST_AUTO_TEST_CASE(tensors_are_bound_under_their_names) {
  const auto file = opened(safetensors_of(filled(small_model)));
  BOOST_REQUIRE(file);
  const auto model = bound(*file);
  BOOST_REQUIRE(model);
  BOOST_TEST(model->dims.layers == 2u);
  BOOST_TEST(model->dims.rank_v == 5u);
  BOOST_TEST(holds(model->emb, *file, "emb.weight"));
  BOOST_TEST(holds(model->ln0_bias, *file, "blocks.0.ln0.bias"));
  BOOST_TEST(holds(model->head, *file, "head.weight"));
  const auto& layer = model->layers[1];
  BOOST_TEST(holds(layer.ln1_weight, *file, "blocks.1.ln1.weight"));
  BOOST_TEST(holds(layer.ln2_bias, *file, "blocks.1.ln2.bias"));
  BOOST_TEST(holds(layer.x_r, *file, "blocks.1.att.x_r"));
  BOOST_TEST(holds(layer.x_w, *file, "blocks.1.att.x_w"));
  BOOST_TEST(holds(layer.x_k, *file, "blocks.1.att.x_k"));
  BOOST_TEST(holds(layer.x_v, *file, "blocks.1.att.x_v"));
  BOOST_TEST(holds(layer.x_a, *file, "blocks.1.att.x_a"));
  BOOST_TEST(holds(layer.x_g, *file, "blocks.1.att.x_g"));
  BOOST_TEST(holds(layer.w0, *file, "blocks.1.att.w0"));
  BOOST_TEST(holds(layer.w2, *file, "blocks.1.att.w2"));
  BOOST_TEST(holds(layer.a1, *file, "blocks.1.att.a1"));
  BOOST_TEST(holds(layer.v0, *file, "blocks.1.att.v0"));
  BOOST_TEST(holds(layer.g2, *file, "blocks.1.att.g2"));
  BOOST_TEST(holds(layer.k_k, *file, "blocks.1.att.k_k"));
  BOOST_TEST(holds(layer.k_a, *file, "blocks.1.att.k_a"));
  BOOST_TEST(holds(layer.r_k, *file, "blocks.1.att.r_k"));
  BOOST_TEST(holds(layer.receptance, *file, "blocks.1.att.receptance.weight"));
  BOOST_TEST(holds(layer.key, *file, "blocks.1.att.key.weight"));
  BOOST_TEST(holds(layer.value, *file, "blocks.1.att.value.weight"));
  BOOST_TEST(holds(layer.output, *file, "blocks.1.att.output.weight"));
  BOOST_TEST(holds(layer.ln_x_weight, *file, "blocks.1.att.ln_x.weight"));
  BOOST_TEST(holds(layer.ffn_x_k, *file, "blocks.1.ffn.x_k"));
  BOOST_TEST(holds(layer.ffn_key, *file, "blocks.1.ffn.key.weight"));
  BOOST_TEST(holds(layer.ffn_value, *file, "blocks.1.ffn.value.weight"));
  BOOST_TEST((layer.time_state.data == nullptr));
}

BOOST_AUTO_TEST_CASE(views_have_the_shapes_of_the_contract) {
  const auto model = bound(small_model);
  BOOST_REQUIRE(model);
  using shape = std::vector<std::int64_t>;
  BOOST_TEST(model->layers[0].x_r.shape == shape{8});  // (1, 1, 8) in the file
  BOOST_TEST(model->layers[0].x_r.stride == shape{1});
  BOOST_TEST(model->layers[0].w1.shape == (shape{8, 3}));
  BOOST_TEST(model->layers[0].w1.stride == (shape{3, 1}));
  BOOST_TEST(model->layers[0].r_k.shape == (shape{2, 4}));
}

BOOST_AUTO_TEST_CASE(layer_0_never_has_a_value_residual) {
  auto plan = small_model;
  plan.push_back({"blocks.0.att.v0", dtype::bf16, {1, 1, 8}, {}});
  plan.push_back({"blocks.0.att.v1", dtype::bf16, {3, 3}, {}});  // unused, so its shape does not matter
  for (const auto& variant : {small_model, plan}) {
    const auto model = bound(variant);
    BOOST_REQUIRE(model);
    BOOST_TEST((model->layers[0].v0.data == nullptr));
    BOOST_TEST((model->layers[0].v1.data == nullptr));
    BOOST_TEST((model->layers[1].v1.data != nullptr));
  }
}

BOOST_AUTO_TEST_CASE(a_state_inside_is_bound_in_all_layers_or_refused) {
  auto plan = small_model;
  plan.push_back({"blocks.1.att.time_state", dtype::f32, {2, 4, 4}, {}});
  const auto half = bound(plan);
  BOOST_REQUIRE(!half);
  BOOST_TEST(half.error().message.find("'blocks.0.att.time_state' is missing") != std::string::npos);
  plan.push_back({"blocks.0.att.time_state", dtype::f32, {2, 4, 4}, {}});
  const auto model = bound(plan);
  BOOST_REQUIRE(model);
  BOOST_TEST((model->layers[1].time_state.shape == std::vector<std::int64_t>{2, 4, 4}));
}

BOOST_AUTO_TEST_CASE(every_tensor_is_needed) {
  for (const auto& tensor : small_model) {
    const auto model = bound(without(small_model, tensor.name));
    BOOST_TEST_CONTEXT(tensor.name) {
      BOOST_REQUIRE(!model);
      BOOST_TEST((model.error().kind == error_kind::bad_file));
      BOOST_TEST(model.error().message.find("is missing") != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(every_wrong_shape_is_named) {
  for (const auto& tensor : small_model) {
    auto shape = tensor.shape;
    ++shape.back();
    const auto model = bound(reshaped(small_model, tensor.name, shape));
    BOOST_TEST_CONTEXT(tensor.name) {
      BOOST_REQUIRE(!model);
      BOOST_TEST((model.error().kind == error_kind::bad_file));
      BOOST_TEST(model.error().message.find("expected (") != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_description_of_another_version_does_not_fit) {
  const auto file = opened(safetensors_of(filled(small_model)));
  BOOST_REQUIRE(file);
  auto info = *model::describe(*file);
  info.version = model::rwkv_version::v6;
  const auto model = model::bind(*file, info);
  BOOST_REQUIRE(!model);
  BOOST_TEST((model.error().kind == error_kind::bad_file));
  BOOST_TEST(model.error().message.find("time_maa_x") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::test
