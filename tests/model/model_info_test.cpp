// describe reads all sizes from tensor shapes and refuses impossible ones. Rows change one tensor of a small model.
#include <boost/test/unit_test.hpp>

#include <fstream>

#include "model/model_info.hpp"
#include "tests/model/checkpoint_builders.hpp"
#include "tests/model/opened.hpp"
#include "tests/support/oracle.hpp"

namespace skein::test {
namespace {

const std::vector<tensor_plan> small = rwkv7_plan(small_dims(), dtype::bf16);

result<model::model_info> described(const std::vector<tensor_plan>& plan) {
  const auto file = opened(safetensors_of(filled(plan)));
  if (!file) return file.error();
  return model::describe(*file);
}

void check_reason(const std::vector<tensor_plan>& plan, std::string_view tensor, std::string_view reason) {
  const auto info = described(plan);
  BOOST_REQUIRE(!info);
  BOOST_TEST_CONTEXT(info.error().message) {
    BOOST_TEST((info.error().kind == error_kind::bad_file));
    BOOST_TEST(info.error().message.find("tensor '" + std::string(tensor) + "'") != std::string::npos);
    BOOST_TEST(info.error().message.find(reason) != std::string::npos);
  }
}

std::vector<tensor_plan> v5_plan(const std::vector<std::int64_t>& decay_shape) {
  std::vector<tensor_plan> plan;
  const auto add = [&](const char* name, std::vector<std::int64_t> shape) {
    plan.push_back({name, dtype::f16, std::move(shape), {}});
  };
  add("emb.weight", {16, 8});
  add("blocks.0.att.time_decay", decay_shape);
  add("blocks.0.att.key.weight", {8, 8});
  add("blocks.0.att.ln_x.weight", {8});
  add("blocks.0.ffn.key.weight", {28, 8});
  add("head.weight", {16, 8});
  return plan;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(model_info)

BOOST_AUTO_TEST_CASE(a_small_model_is_described) {
  const auto info = described(small);
  BOOST_REQUIRE(info);
  BOOST_TEST(to_string(info->version) == "7");
  BOOST_TEST(info->layers == 2u);
  BOOST_TEST(info->embd == 8u);
  BOOST_TEST(info->att == 8u);
  BOOST_TEST(info->ffn == 32u);
  BOOST_TEST(info->heads == 2u);
  BOOST_TEST(info->head_size == 4u);
  BOOST_TEST(info->vocab == 16u);
  BOOST_TEST(info->rank_w == 3u);
  BOOST_TEST(info->rank_a == 2u);
  BOOST_TEST(info->rank_v == 5u);
  BOOST_TEST(info->rank_g == 6u);
  BOOST_TEST(to_string(info->matrix_type) == "bf16");
  BOOST_TEST(info->state.floats() == 2u * (8 + 8 + 2 * 4 * 4));
}

BOOST_AUTO_TEST_CASE(most_matrix_elements_name_the_type) {
  auto mixed = small;
  for (auto& tensor : mixed)
    if (tensor.shape.size() != 2) tensor.type = dtype::f32;
  named(mixed, "blocks.0.att.w1").type = dtype::f16;
  const auto info = described(mixed);
  BOOST_REQUIRE(info);
  BOOST_TEST(to_string(info->matrix_type) == "bf16");
}

BOOST_AUTO_TEST_CASE(a_state_inside_is_seen_but_is_no_parameter) {
  auto tuned = small;
  for (const char* name : {"blocks.0.att.time_state", "blocks.1.att.time_state"})
    tuned.push_back({name, dtype::f32, {2, 4, 4}, {}});
  const auto plain = described(small), info = described(tuned);
  BOOST_REQUIRE((plain && info));
  BOOST_TEST(info->has_time_state);
  BOOST_TEST(info->parameters == plain->parameters);
}

// Files of full size that take no room on the disk: a header before one large hole.
BOOST_AUTO_TEST_CASE(released_models_have_their_published_number_of_parameters) {
  struct released {
    const char* name;
    kernels::model_dims dims;
    std::uint64_t parameters;
  };
  const temporary_folder folder;
  for (const auto& [name, dims, parameters] : std::initializer_list<released>{
           {"0.1b", {12, 768, 12, 64, 4 * 768, 65536, 64, 64, 32, 128}, 191'034'624},
           {"0.4b", {24, 1024, 16, 64, 4 * 1024, 65536, 64, 64, 32, 128}, 450'767'872},
           {"1.5b", {24, 2048, 32, 64, 4 * 2048, 65536, 96, 96, 64, 256}, 1'527'404'544},
           {"2.9b", {32, 2560, 40, 64, 4 * 2560, 65536, 96, 96, 64, 320}, 2'947'735'040},
           {"7.2b", {32, 4096, 64, 64, 4 * 4096, 65536, 128, 128, 96, 480}, 7'199'141'888},
           {"13.3b", {61, 4096, 64, 64, 4 * 4096, 65536, 128, 128, 96, 480}, 13'237'526'528}}) {
    BOOST_TEST_CONTEXT(name) {
      const auto plan = rwkv7_plan(dims, dtype::bf16);
      const std::string header = safetensors_header(plan);
      const auto path = folder.path() / name;
      write_file(path, safetensors_file(header, ""));
      std::filesystem::resize_file(path, 8 + header.size() + 2 * parameters);
      const auto file = model::checkpoint::open(path);
      BOOST_REQUIRE(file);
      const auto info = model::describe(*file);
      BOOST_REQUIRE(info);
      BOOST_TEST(info->parameters == parameters);
      BOOST_TEST(info->layers == dims.layers);
      BOOST_TEST(info->heads == dims.heads);
      BOOST_TEST(info->rank_g == dims.rank_g);
      BOOST_TEST(!!model::bind(*file, *info));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_shape_of_the_decay_parts_5_1_from_5_2) {
  struct row {
    std::vector<std::int64_t> decay;
    const char* version;
  };
  for (const auto& [decay, version] : {row{{2}, "5.1"}, {{2, 1, 1}, "5.1"}, {{2, 4}, "5.2"}}) {
    const auto info = described(v5_plan(decay));
    BOOST_REQUIRE(info);
    BOOST_TEST(to_string(info->version) == version);
    BOOST_TEST(info->heads == 2u);
    BOOST_TEST(info->head_size == 4u);
  }
}

BOOST_AUTO_TEST_CASE(tensors_of_two_versions_are_refused) {
  auto mixed = small;
  mixed.push_back({"blocks.1.att.time_maa_x", dtype::bf16, {1, 1, 8}, {}});
  check_reason(mixed, "blocks.1.att.time_maa_x", "belongs to RWKV-6, but the other tensors are those of RWKV-7");
  for (const auto& [name, reason] : {std::pair{"blocks.0.ffn.s_emb.weight", "RWKV-7a"},
                                     {"blocks.1.qkv.qq.weight", "RWKV-7b"},
                                     {"blocks.1.ffn.enn.weight", "RWKV-8"}}) {
    auto variant = small;
    variant.push_back({name, dtype::bf16, {16, 8}, {}});
    const auto info = described(variant);
    BOOST_REQUIRE_MESSAGE(!info, name);
    BOOST_TEST((info.error().kind == error_kind::unsupported));
    BOOST_TEST(info.error().message.find(reason) != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(missing_tensors_are_named) {
  for (const char* name : {"emb.weight", "head.weight", "blocks.0.att.w1", "blocks.0.att.a1", "blocks.0.att.g1",
                           "blocks.1.att.v1", "blocks.1.att.key.weight", "blocks.1.ffn.key.weight"})
    check_reason(without(small, name), name, "is missing");
  check_reason(without(small, "blocks.0.att.r_k"), "blocks.0.att.r_k", "is missing");
}

BOOST_AUTO_TEST_CASE(impossible_sizes_are_refused) {
  check_reason(reshaped(small, "emb.weight", {(1 << 20) + 1, 1}), "emb.weight", "1048576 at most");
  check_reason(reshaped(small, "emb.weight", {1, 65537}), "emb.weight", "65536 at most");
  check_reason(reshaped(small, "emb.weight", {128}), "emb.weight", "matrix");
  check_reason(reshaped(small, "emb.weight", {}), "emb.weight", "matrix");
  check_reason(reshaped(small, "head.weight", {16, 9}), "head.weight", "(16, 9), expected (16, 8)");
  check_reason(reshaped(small, "blocks.0.att.r_k", {3, 4}), "blocks.0.att.r_k", "3 heads");
  check_reason(reshaped(small, "blocks.0.att.r_k", {2, 5}), "blocks.0.att.r_k", "(2, 5), expected (2, 4)");
  check_reason(reshaped(small, "blocks.0.att.r_k", {4097, 1}), "blocks.0.att.r_k", "4096 at most");
  check_reason(reshaped(small, "blocks.0.att.r_k", {1, 1, 8}), "blocks.0.att.r_k", "matrix");
  check_reason(reshaped(small, "blocks.0.att.key.weight", {4, 8}), "blocks.0.att.r_k", "(2, 4), expected (2, 2)");
  check_reason(reshaped(small, "blocks.1.att.key.weight", {4, 8}), "blocks.1.att.key.weight", "expected (8, 8)");
  check_reason(reshaped(small, "blocks.1.ffn.key.weight", {31, 8}), "blocks.1.ffn.key.weight", "expected (32, 8)");
  check_reason(reshaped(small, "blocks.0.att.w1", {8}), "blocks.0.att.w1", "matrix");
}

BOOST_AUTO_TEST_CASE(layer_numbers_are_bounded) {
  for (const char* name : {"blocks.1024.x", "blocks.4294967295.x", "blocks.99999999999999999999.x"}) {
    auto plan = small;
    plan.push_back({name, dtype::bf16, {1}, {}});
    check_reason(plan, "blocks.*", "1024 layers");
  }
  auto gap = small;
  gap.push_back({"blocks.7.att.x_r", dtype::bf16, {1, 1, 8}, {}});
  check_reason(gap, "blocks.2.att.key.weight", "is missing");
}

BOOST_AUTO_TEST_CASE(integer_weights_are_refused) {
  auto plan = small;
  named(plan, "head.weight").type = dtype::i8;
  check_reason(plan, "head.weight", "has type int8, expected a floating-point type");
}

BOOST_AUTO_TEST_CASE(a_prefix_of_all_names_is_dropped) {
  const auto plain = opened(safetensors_of(filled(small)));
  BOOST_REQUIRE(plain);
  for (const std::string prefix :
       {"module.", "_orig_mod.", "_forward_module.", "rwkv7.", "model.", "module._orig_mod."}) {
    auto plan = filled(small);
    for (auto& tensor : plan) tensor.name = prefix + tensor.name;
    for (const auto& bytes : {safetensors_of(plan), pth_of(plan)}) {
      const auto file = opened(bytes);
      BOOST_TEST_CONTEXT(prefix) {
        BOOST_REQUIRE(file);
        BOOST_TEST(model::describe(*file).has_value());
        BOOST_TEST(model::identity(*file, "v") == model::identity(*plain, "v"));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(other_prefixes_and_second_copies_are_left_alone) {
  auto plan = small;
  plan.insert(plan.begin(), {"model.emb.weight", dtype::bf16, {1}, {}});
  const auto file = opened(safetensors_of(filled(plan)));
  BOOST_REQUIRE(file);
  BOOST_TEST((file->find("model.emb.weight") != nullptr));
  BOOST_TEST(model::describe(*file).has_value());
  plan = small;
  for (auto& tensor : plan) tensor.name = "other." + tensor.name;
  const auto unknown = described(plan);
  BOOST_REQUIRE(!unknown);
  BOOST_TEST((unknown.error().kind == error_kind::unsupported));
  BOOST_TEST(unknown.error().message.find("such as 'other.") != std::string::npos);
  auto without = small;
  std::erase_if(without, [](const auto& tensor) { return tensor.name == "emb.weight"; });
  check_reason(without, "emb.weight", "is missing");
}

BOOST_AUTO_TEST_CASE(adapters_beside_the_weights_are_named) {
  for (const std::string name : {"blocks.0.att.key.lora_A", "base_model.model.blocks.1.ffn.key.lora_B.default.weight",
                                 "blocks.0.att.key.bone", "blocks.0.att.key.disha", "blocks.0.att.key.lora.0"}) {
    auto plan = small;
    plan.push_back({name, dtype::bf16, {2, 8}, {}});
    check_reason(plan, name, "belongs to an adapter, which is no model: pass it with --adapter");
    check_reason({plan.back()}, name, "belongs to an adapter");
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::test
