// A model in the form of another program has the tensors, the identity and the logits of the original, bit for bit. The
// original is a trained model of the reference, and one of random numbers whose ranks and heads all differ.
#include <boost/test/unit_test.hpp>

#include "kernels/make_stages.hpp"
#include "model/forward.hpp"
#include "model/model_info.hpp"
#include "tests/model/forms/form_writers.hpp"
#include "tests/model/memory_file.hpp"
#include "tests/support/oracle.hpp"

namespace skein::test {
namespace {

model::checkpoint opened_plan(const plan& tensors) {
  auto file = model::checkpoint::open(memory_file(safetensors_of(tensors)).path());
  BOOST_REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().message));
  return std::move(*file);
}

plan plan_of_oracle(const char* name) {
  const auto file = model::checkpoint::open(oracle() / "models" / name);
  BOOST_REQUIRE(file);
  return plan_of(*file);
}

std::vector<float> logits_of(const model::checkpoint& file) {
  const auto info = model::describe(file);
  BOOST_REQUIRE_MESSAGE(info.has_value(), (info ? "" : info.error().message));
  const auto weights = model::bind(file, *info);
  BOOST_REQUIRE_MESSAGE(weights.has_value(), (weights ? "" : weights.error().message));
  const auto stages = kernels::make_reference_stages(*weights, {.slots = 1, .max_rows = 8, .max_logit_rows = 8});
  BOOST_REQUIRE(stages);
  const std::vector<token_id> tokens{1, 7, 3, 12, 5, 0, 9, 2};
  const kernels::sequence_run runs[] = {{0, 0, static_cast<std::uint32_t>(tokens.size())}};
  const kernels::batch rows{tokens, runs};
  const std::uint32_t wanted[] = {0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<float> logits(tokens.size() * info->vocab);
  (*stages)->clear_state(0);
  model::forward(**stages, info->layers, rows);
  (*stages)->head(rows, wanted, logits);
  return logits;
}

bool same_bits(const std::vector<float>& one, const std::vector<float>& other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size() * sizeof(float)) == 0;
}

void check_same_tensors(const plan& original, const plan& found) {
  BOOST_TEST(original.size() == found.size());
  for (const auto& tensor : original) {
    const auto match = std::ranges::find(found, tensor.name, &tensor_plan::name);
    BOOST_TEST_CONTEXT(tensor.name) {
      BOOST_REQUIRE((match != found.end()));
      BOOST_TEST((match->type == tensor.type));
      BOOST_TEST(match->shape == tensor.shape, boost::test_tools::per_element());
      BOOST_TEST((match->data == tensor.data));
    }
  }
}

void check_forms(const plan& original, const std::vector<model_form>& forms) {
  const auto file = opened_plan(original);
  BOOST_TEST(file.form() == "");
  BOOST_TEST(file.notes().empty());
  const auto logits = logits_of(file);
  for (std::size_t i = 0; i < forms.size(); ++i) {
    BOOST_TEST_CONTEXT("form " << i << ", " << forms[i].name) {
      const auto other = opened_plan(forms[i].write(original));
      BOOST_TEST(other.form() == forms[i].name);
      const plan expected = forms[i].keeps_unused ? original : without_unused(original);
      check_same_tensors(expected, plan_of(other));
      BOOST_TEST(model::identity(other, "v") == model::identity(file, "v"));
      BOOST_TEST(same_bits(logits_of(other), logits));
    }
  }
}

bool mentions(const model::checkpoint& file, std::string_view text) {
  return std::ranges::any_of(file.notes(), [&](const auto& note) { return note.find(text) != std::string::npos; });
}

std::string refusal(const plan& tensors) {
  const auto file = model::checkpoint::open(memory_file(safetensors_of(tensors)).path());
  BOOST_REQUIRE(!file);
  return file.error().message;
}

const plan random_7 = filled(rwkv7_plan(small_dims(), dtype::bf16));

}  // namespace

BOOST_AUTO_TEST_SUITE(forms)

BOOST_AUTO_TEST_CASE(random_model_of_version_7) { check_forms(random_7, forms_of_7()); }

BOOST_AUTO_TEST_CASE(trained_models_of_version_7, *boost::unit_test::precondition(have_oracle)) {
  check_forms(plan_of_oracle("tiny-7v0.safetensors"), forms_of_7());
  check_forms(plan_of_oracle("tiny-7v0-bf16.pth"), forms_of_7());
}

BOOST_AUTO_TEST_CASE(trained_model_of_version_6, *boost::unit_test::precondition(have_oracle)) {
  check_forms(plan_of_oracle("tiny-6v0-fp16.pth"), forms_of_6());
}

BOOST_AUTO_TEST_CASE(trained_model_of_version_5, *boost::unit_test::precondition(have_oracle)) {
  check_forms(plan_of_oracle("tiny-5v2-fp16.pth"), forms_of_5());
}

BOOST_AUTO_TEST_CASE(notes_say_what_was_done) {
  const auto file = opened_plan(forms_of_7()[2].write(random_7));  // fla with fused mixes
  BOOST_TEST(mentions(file, "transposed: att.a1, att.a2, att.g1, att.g2, att.v1, att.v2, att.w1, att.w2 (14 tensors)"));
  BOOST_TEST(mentions(file, "split: attn.x_x (2 tensors)"));
  BOOST_TEST(mentions(file, "absent: blocks.0.att.v0"));
}

BOOST_AUTO_TEST_CASE(hybrid_quantised_and_unknown_models_are_refused_by_name) {
  const plan fla = forms_of_7()[0].write(random_7);
  const auto with = [&](std::string name) {
    plan more = fla;
    more.push_back({std::move(name), dtype::bf16, {2}, "abcd"});
    return refusal(more);
  };
  const auto names = [](const std::string& text, std::string_view part) {
    BOOST_TEST_INFO(text);
    BOOST_TEST((text.find(part) != std::string::npos));
  };
  names(with("model.layers.1.attn.q_proj.weight"), "hybrid of a transformer");
  names(with("model.layers.1.attn.s_proj.weight"), "'model.layers.1.attn.s_proj.weight' is not one of RWKV");
  names(with("model.layers.1.self_attn.q_proj.weight"), "hybrid of a transformer");
  names(with("model.layers.1.attn.k_proj.qweight"), "quantised");
  names(with("model.layers.01.attn.x_r"), "'model.layers.01.attn.x_r' is not one of RWKV");
  plan original = random_7;
  original.push_back({"blocks.1.attn.q_proj.weight", dtype::bf16, {2}, "abcd"});
  names(refusal(original), "hybrid of a transformer");
  const auto alone = [](const char* name) { return refusal({{name, dtype::bf16, {2}, "abcd"}}); };
  names(alone("rwkv.blocks.0.attention.time_mix_key"), "a conversion of RWKV-4 or RWKV-5 for Hugging Face");
  names(alone("rwkv.blocks.0.att.x_r"), "a model for embeddings or for images");
  plan mlx = fla;
  mlx.push_back({"lm_head.scales", dtype::bf16, {2}, "abcd"});
  mlx.push_back({"lm_head.biases", dtype::bf16, {2}, "abcd"});
  names(refusal(mlx), "quantised by MLX");
}

BOOST_AUTO_TEST_CASE(fused_first_norms_are_refused) {
  plan tensors = forms_of_7()[6].write(random_7);
  tensors = without(without(std::move(tensors), "rwkv7.blocks.0.ln0.weight"), "rwkv7.blocks.0.ln0.bias");
  BOOST_TEST((refusal(tensors).find("embedding_layer_norm_fused") != std::string::npos));
}

BOOST_AUTO_TEST_CASE(tensors_of_other_shapes_are_refused) {
  plan fla = forms_of_7()[2].write(random_7);
  auto& mixes = named(fla, "model.layers.1.attn.x_x");
  mixes.shape = {3, 16};
  BOOST_TEST((refusal(fla).find("'model.layers.1.attn.x_x' has shape (3, 16)") != std::string::npos));
  mixes.shape = {6, 2, 4};
  BOOST_TEST((refusal(fla).find("expected 6 rows") != std::string::npos));
  plan flat = forms_of_7()[0].write(random_7);
  named(flat, "model.layers.1.attn.w_lora.lora.0.weight").shape = {24};
  BOOST_TEST((refusal(flat).find("expected a matrix") != std::string::npos));
}

BOOST_AUTO_TEST_CASE(a_name_that_two_tensors_get_is_refused) {
  plan fla = forms_of_7()[2].write(random_7);  // has x_x
  fla.push_back({"model.layers.1.attn.x_r", dtype::bf16, {8}, std::string(16, 'a')});
  BOOST_TEST((refusal(fla).find("'blocks.1.att.x_r' appears twice") != std::string::npos));
}

BOOST_AUTO_TEST_CASE(a_rank_equal_to_the_width_is_original) {
  auto dims = small_dims();
  dims.rank_w = dims.rank_a = dims.rank_v = dims.rank_g = dims.embd;
  const auto file = opened_plan(filled(rwkv7_plan(dims, dtype::bf16)));
  BOOST_TEST(file.form() == "");
  // One pair of another rank tells the orientation of all.
  dims.rank_g = 3;
  check_forms(filled(rwkv7_plan(dims, dtype::bf16)), {forms_of_7().back()});
}

BOOST_AUTO_TEST_CASE(an_initial_state_is_transposed_with_its_model) {
  plan tuned = rwkv7_plan(small_dims(), dtype::bf16);
  for (const char* name : {"blocks.0.att.time_state", "blocks.1.att.time_state"})
    tuned.push_back({name, dtype::f32, {2, 4, 4}, {}});
  check_forms(filled(tuned), {forms_of_7().back()});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::test
