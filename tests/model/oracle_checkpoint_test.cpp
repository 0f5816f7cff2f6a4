// The reference's model files: every form of one model holds the same tensors, and each file is told for what it is.
#include <boost/test/unit_test.hpp>

#include "model/model_info.hpp"
#include "tests/support/oracle.hpp"

namespace skein::test {
namespace {

result<model::checkpoint> open_model(const std::string& name) {
  return model::checkpoint::open(oracle() / "models" / name);
}

std::vector<float> values(const tensor_view& view) {
  std::vector<float> out(static_cast<std::size_t>(view.elements()));
  copy_to_f32(view, out);
  return out;
}

void check_same_tensors(const model::checkpoint& one, const model::checkpoint& other) {
  BOOST_TEST(one.tensors().size() == other.tensors().size());
  for (const auto& [name, view, digest, stored] : one.tensors()) {
    const tensor_view* match = other.find(name);
    BOOST_TEST_CONTEXT(name) {
      BOOST_REQUIRE(match);
      BOOST_TEST(view.shape == match->shape);
      BOOST_TEST((values(view) == values(*match)));
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(oracle_checkpoints, *boost::unit_test::precondition(have_oracle))

BOOST_AUTO_TEST_CASE(all_layouts_of_one_model_are_equal) {
  const auto base = open_model("quirk-base.safetensors");
  BOOST_REQUIRE(base);
  for (const char* quirk : {"metadata", "parameters", "views", "mixed", "torch2"}) {
    BOOST_TEST_CONTEXT(quirk) {
      const auto file = open_model("quirk-" + std::string(quirk) + ".pth");
      BOOST_REQUIRE(file);
      check_same_tensors(*base, *file);
      const auto info = model::describe(*file);
      BOOST_REQUIRE(info);
      BOOST_TEST(!!model::bind(*file, *info));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_format_before_torch_1_6_is_refused_clearly) {
  const auto file = open_model("quirk-legacy.pth");
  BOOST_REQUIRE(!file);
  BOOST_TEST((file.error().kind == error_kind::bad_file));
  BOOST_TEST(file.error().message.find("torch before 1.6") != std::string::npos);
  BOOST_TEST(file.error().message.find("quirk-legacy.pth") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(all_files_of_the_tiny_model_are_equal) {
  const auto base = open_model("tiny-7v0.safetensors");
  BOOST_REQUIRE(base);
  for (const char* name : {"tiny-7v0.pth", "tiny-7v0-bf16.pth"}) {
    const auto file = open_model(name);
    BOOST_REQUIRE(file);
    check_same_tensors(*base, *file);
  }
}

BOOST_AUTO_TEST_CASE(the_identity_does_not_depend_on_the_container) {
  const auto pth = open_model("tiny-7v0.pth"), safetensors = open_model("tiny-7v0.safetensors");
  BOOST_REQUIRE((pth && safetensors));
  BOOST_TEST(model::identity(*pth, "v") == model::identity(*safetensors, "v"));
  const auto base = open_model("quirk-base.safetensors"), views = open_model("quirk-views.pth");
  BOOST_REQUIRE((base && views));
  BOOST_TEST(model::identity(*base, "v") == model::identity(*views, "v"));
}

BOOST_AUTO_TEST_CASE(each_file_is_described) {
  using model::rwkv_version;
  struct expected {
    const char* file;
    rwkv_version version;
    std::uint32_t layers, embd, ffn, heads, head_size;
    dtype type;
  };
  for (const auto& [name, version, layers, embd, ffn, heads, head_size, type] :
       std::initializer_list<expected>{{"tiny-4v0.safetensors", rwkv_version::v4, 4, 128, 256, 0, 0, dtype::f32},
                                       {"tiny-4v0-bf16.pth", rwkv_version::v4, 4, 128, 256, 0, 0, dtype::bf16},
                                       {"tiny-5v2.safetensors", rwkv_version::v5_2, 12, 64, 256, 8, 8, dtype::f32},
                                       {"tiny-5v2-fp16.pth", rwkv_version::v5_2, 12, 64, 256, 8, 8, dtype::f16},
                                       {"tiny-6v0-fp16.pth", rwkv_version::v6, 12, 128, 448, 16, 8, dtype::f16},
                                       {"tiny-7v0.safetensors", rwkv_version::v7, 12, 64, 256, 1, 64, dtype::f32},
                                       {"tiny-7v0-bf16.pth", rwkv_version::v7, 12, 64, 256, 1, 64, dtype::bf16},
                                       {"quirk-mixed.pth", rwkv_version::v7, 2, 64, 128, 1, 64, dtype::bf16}}) {
    BOOST_TEST_CONTEXT(name) {
      const auto file = open_model(name);
      BOOST_REQUIRE(file);
      const auto info = model::describe(*file);
      BOOST_REQUIRE(info);
      BOOST_TEST(to_string(info->version) == to_string(version));
      BOOST_TEST(info->layers == layers);
      BOOST_TEST(info->embd == embd);
      BOOST_TEST(info->ffn == ffn);
      BOOST_TEST(info->heads == heads);
      BOOST_TEST(info->head_size == head_size);
      BOOST_TEST(info->vocab == 256u);
      BOOST_TEST(to_string(info->matrix_type) == to_string(type));
      BOOST_TEST(!info->has_time_state);
      BOOST_TEST(!!model::bind(*file, *info));
    }
  }
}

BOOST_AUTO_TEST_CASE(tuned_states_are_laid_out_for_their_model) {
  for (const auto& [model_name, state_name] :
       {std::pair{"tiny-7v0.pth", "state-tiny-7v0.pth"}, {"tiny-6v0-fp16.pth", "state-tiny-6v0.pth"}}) {
    const auto file = open_model(model_name);
    BOOST_REQUIRE(file);
    const auto info = model::describe(*file);
    BOOST_REQUIRE(info);
    const auto state = model::load_tuned_state(oracle() / "models" / state_name, *info);
    BOOST_REQUIRE(state);
    BOOST_TEST(state->size() == info->state.floats());
    const auto tuned = open_model(state_name);
    BOOST_REQUIRE(tuned);
    const auto last = info->layers - 1;
    const auto expected = values(*tuned->find("blocks." + std::to_string(last) + ".att.time_state"));
    BOOST_TEST(std::equal(expected.begin(), expected.end(), state->begin() + static_cast<long>(info->state.wkv(last))));
    BOOST_TEST((*state)[info->state.ffn_x_prev(last)] == 0.0f);
  }
}

BOOST_AUTO_TEST_CASE(a_tuned_state_of_another_model_is_refused_with_both_shapes) {
  const auto file = open_model("tiny-7v0.pth");
  BOOST_REQUIRE(file);
  const auto info = model::describe(*file);
  BOOST_REQUIRE(info);
  const auto state = model::load_tuned_state(oracle() / "models" / "state-tiny-6v0.pth", *info);
  BOOST_REQUIRE(!state);
  BOOST_TEST((state.error().kind == error_kind::bad_file));
  BOOST_TEST(state.error().message.find("(16, 8, 8)") != std::string::npos);
  BOOST_TEST(state.error().message.find("(1, 64, 64)") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::test
