// Matrices that a GGUF file has in Q8_0 and Q4_0 run as int8 and int4 with the codes and scales of the file, and other
// quantised types in the format of about the same size.
#include <boost/test/unit_test.hpp>

#include "kernels/weights/file_blocks.hpp"
#include "model/model_info.hpp"
#include "model/stored_formats.hpp"
#include "tests/model/gguf_builders.hpp"
#include "tests/model/opened.hpp"

namespace skein::test {
namespace {

using kernels::stored_in, kernels::weight_element, kernels::weight_format, kernels::weight_plan;

const kernels::model_dims wide_sizes{2, 64, 1, 64, 96, 40, 3, 2, 5, 6};
const kernels::model_dims wide{2, 256, 1, 256, 512, 3, 3, 2, 5, 6};  // whole blocks of 256

std::vector<gguf_tensor_plan> plan_in(std::uint32_t type, const kernels::model_dims& dims) {
  return gguf_plan_of(random_rwkv7(dims), {.matrix = type, .head_size = dims.head_size});
}

model::checkpoint opened_plan(const std::vector<gguf_tensor_plan>& plan, const kernels::model_dims& dims) {
  auto file = opened(gguf_model_of(plan, {.head_size = dims.head_size}, 2, dims.embd, dims.ffn).file());
  BOOST_REQUIRE_MESSAGE(file, (file ? "" : file.error().message));
  return std::move(*file);
}

gguf_tensor_plan& named(std::vector<gguf_tensor_plan>& plan, std::string_view name) {
  const auto found = std::ranges::find(plan, name, &gguf_tensor_plan::name);
  BOOST_REQUIRE((found != plan.end()));
  return *found;
}

/// Changes the type of one matrix, and with it its values.
void retype(std::vector<gguf_tensor_plan>& plan, std::string_view name, const char* type) {
  auto& tensor = named(plan, name);
  const auto block = std::ranges::find(ggml_blocks(), std::string_view(type), &ggml_block::name);
  BOOST_REQUIRE((block != ggml_blocks().end()));
  tensor.type = block->type;
  tensor.data = random_blocks(*block, tensor.shape[0] * tensor.shape[1] / block->values, 3);
}

/// The weights of a matrix as its codes and scales give them.
std::vector<float> weights_of(const tensor_view& view, weight_element element) {
  std::vector<float> weights;
  for (std::int64_t output = 0; output < view.shape[0]; ++output) {
    for (std::int64_t input = 0; input < view.shape[1]; input += 32) {
      std::uint8_t codes[32];
      const float scale =
          kernels::read_block(view, static_cast<std::size_t>(output), static_cast<std::size_t>(input), codes);
      for (const std::uint8_t code : codes) weights.push_back(kernels::dequantise(element, code, scale));
    }
  }
  return weights;
}

/// The format that a plan with these rules gives a matrix.
std::string format_of(const model::stored_formats& in_file, std::string_view name, std::uint32_t layer,
                      std::string_view overrides = "") {
  const auto plan = weight_plan::of_file(in_file.name, in_file.rules, overrides, dtype::f16);
  BOOST_REQUIRE(plan);
  return to_string(plan->of({.name = name, .shape = {}}, layer));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gguf_formats)

BOOST_AUTO_TEST_CASE(codes_and_scales_are_those_of_the_file) {
  for (const char* type : {"Q8_0", "Q4_0"}) {
    const auto block = std::ranges::find(ggml_blocks(), std::string_view(type), &ggml_block::name);
    const weight_format format{block->type == ggml_q8_0 ? weight_element::int8 : weight_element::int4, 32};
    const auto plan = plan_in(block->type, wide_sizes);
    const auto file = opened_plan(plan, wide_sizes);
    const auto info = model::describe(file);
    const auto weights = model::bind(file, *info);
    BOOST_REQUIRE(weights);
    const auto& bound = std::get<kernels::rwkv7_weights>(*weights);
    const std::pair<const char*, const tensor_view*> matrices[] = {
        {"output.weight", &bound.head},
        {"blk.0.time_mix_key.weight", &bound.layers[0].key},
        {"blk.1.time_mix_output.weight", &bound.layers[1].output},
        {"blk.1.channel_mix_key.weight", &bound.layers[1].ffn_key},
        {"blk.0.channel_mix_value.weight", &bound.layers[0].ffn_value}};
    for (const auto& [name, view] : matrices) {
      BOOST_TEST_CONTEXT(type << ' ' << name) {
        BOOST_REQUIRE(stored_in(format, *view));
        BOOST_TEST(!stored_in({format.element, 64}, *view));
        BOOST_TEST(!stored_in({weight_element::nf4, 32}, *view));
        const auto stored = std::ranges::find(plan, std::string_view(name), &gguf_tensor_plan::name);
        BOOST_TEST((weights_of(*view, format.element) == block_values(*block, stored->data)));
        const auto rows = kernels::rows_of(*view, 3, 2);
        const auto all = weights_of(*view, format.element), some = weights_of(rows, format.element);
        BOOST_TEST(std::ranges::equal(
            some, std::span(all).subspan(static_cast<std::size_t>(3 * view->shape[1]), some.size())));
      }
    }
    const auto in_file = model::formats_in_file(file);
    BOOST_TEST(in_file.name == to_string(format) + " (" + type + ')');
    BOOST_TEST(format_of(in_file, "head.weight", 0) == to_string(format));
    BOOST_TEST(format_of(in_file, "ffn.key.weight", 1) == to_string(format));
    BOOST_TEST(format_of(in_file, "emb.weight", 0) == "fp16");
  }
}

BOOST_AUTO_TEST_CASE(other_types_run_in_the_format_of_about_their_size) {
  for (const auto& block : ggml_blocks()) {
    const std::string_view type = block.name;
    const bool eight = type == "Q8_0", larger = type.starts_with("Q5") || type.starts_with("Q6");
    const std::string expected = eight ? "int8-32" : larger ? "int8" : "int4-32";
    const auto in_file = model::formats_in_file(opened_plan(plan_in(block.type, wide), wide));
    BOOST_TEST(in_file.name == expected + " (" + block.name + ')');
    BOOST_TEST(format_of(in_file, "att.value.weight", 1) == expected);
  }
  for (const std::uint32_t type : {ggml_f32, ggml_f16, ggml_bf16}) {
    const auto in_file = model::formats_in_file(opened_plan(plan_in(type, wide_sizes), wide_sizes));
    BOOST_TEST(in_file.name == "");
    BOOST_TEST(in_file.rules.empty());
  }
}

BOOST_AUTO_TEST_CASE(each_matrix_of_a_mixed_file_has_its_own_format) {
  auto plan = plan_in(ggml_q4_0, wide);
  retype(plan, "blk.1.channel_mix_value.weight", "Q6_K");
  retype(plan, "output.weight", "Q8_0");
  auto& plain = named(plan, "blk.0.time_mix_value.weight");
  plain.type = ggml_f16;
  plain.data.assign(plain.shape[0] * plain.shape[1] * 2, '\1');
  const auto in_file = model::formats_in_file(opened_plan(plan, wide));
  BOOST_TEST(in_file.name == "int4-32 (Q4_0, Q6_K, Q8_0)");
  BOOST_TEST(format_of(in_file, "ffn.value.weight", 0) == "int4-32");
  BOOST_TEST(format_of(in_file, "ffn.value.weight", 1) == "int8");
  BOOST_TEST(format_of(in_file, "head.weight", 0) == "int8-32");
  BOOST_TEST(format_of(in_file, "att.value.weight", 0) == "fp16");
  BOOST_TEST(format_of(in_file, "att.value.weight", 1) == "int4-32");
  BOOST_TEST(format_of(in_file, "head.weight", 0, "head=fp16,att.key@0=nf4") == "fp16");
  BOOST_TEST(format_of(in_file, "att.key.weight", 0, "head=fp16,att.key@0=nf4") == "nf4");
  BOOST_TEST(format_of(in_file, "att.key.weight", 1, "head=fp16,att.key@0=nf4") == "int4-32");
}

BOOST_AUTO_TEST_CASE(a_code_that_our_int8_does_not_have_is_quantised_again) {
  auto plan = plan_in(ggml_q8_0, wide_sizes);
  named(plan, "output.weight").data[34 * 7 + 2 + 31] = '\x80';
  const auto file = opened_plan(plan, wide_sizes);
  BOOST_TEST(!stored_in({weight_element::int8, 32}, *file.find("head.weight")));
  BOOST_TEST(stored_in({weight_element::int8, 32}, *file.find("blocks.0.att.key.weight")));
}

BOOST_AUTO_TEST_CASE(scales_of_rwkv6_are_multiplied_back) {
  const gguf_model_form form{.seven = false, .head_size = 4, .rescale_every = 1};
  auto plan = gguf_plan_of(small_rwkv6(), form);
  auto& tensor = named(plan, "blk.3.time_mix_output.weight");
  const auto& block = ggml_blocks().front();
  tensor.type = block.type, tensor.shape = {2, 32}, tensor.data = random_blocks(block, 2, 5);
  const auto file = opened(gguf_model_of(plan, form, 4, 8, 28).file());
  BOOST_REQUIRE(file);
  auto expected = block_values(block, tensor.data);
  for (float& value : expected) value *= 8;
  BOOST_TEST((weights_of(*file->find("blocks.3.att.output.weight"), weight_element::int8) == expected));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::test
