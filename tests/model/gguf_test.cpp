// GGUF files as llama.cpp writes them hold the same model as the original checkpoint: names, shapes, orientation, the
// tensors that are fused, scaled or invented there, quantised matrices, and the vocabulary.
#include <bit>
#include <boost/test/unit_test.hpp>
#include <map>

#include "model/model_info.hpp"
#include "tests/model/gguf_builders.hpp"
#include "tests/model/opened.hpp"
#include "tests/support/oracle.hpp"

namespace skein::test {
namespace {

std::vector<float> floats(const tensor_view& view) {
  std::vector<float> out(static_cast<std::size_t>(view.elements()));
  copy_to_f32(view, out);
  return out;
}

/// Sizes that differ from each other; heads of 4.
const kernels::model_dims sizes{2, 8, 2, 4, 32, 16, 3, 2, 5, 6};

void check_same(const std::vector<values_of_tensor>& original, const model::checkpoint& file) {
  BOOST_TEST(file.tensors().size() == original.size());
  for (const auto& tensor : original) {
    BOOST_TEST_CONTEXT(tensor.name) {
      const auto* const found = file.find(tensor.name);
      BOOST_REQUIRE(found);
      BOOST_TEST(found->shape == tensor.shape, boost::test_tools::per_element());
      BOOST_TEST(floats(*found) == tensor.values, boost::test_tools::per_element());
    }
  }
  const auto info = model::describe(file);
  BOOST_REQUIRE_MESSAGE(info, (info ? "" : info.error().message));
  BOOST_TEST(!!model::bind(file, *info));
}

std::string refusal(const gguf_builder& file) {
  const auto found = opened(file.file());
  return found ? "" : found.error().message;
}

gguf_builder rwkv7_file(const gguf_model_form& form = {.head_size = 4}) {
  return gguf_model_of(gguf_plan_of(random_rwkv7(sizes), form), form, 2, 8, 32);
}

/// What the oracle's model has, as floats.
std::vector<values_of_tensor> values_of_oracle(const std::string& name) {
  const auto file = model::checkpoint::open(oracle() / "models" / name);
  BOOST_REQUIRE(file);
  std::vector<values_of_tensor> out;
  for (const auto& tensor : file->tensors()) out.push_back({tensor.name, tensor.view.shape, floats(tensor.view)});
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gguf_models)

BOOST_AUTO_TEST_CASE(rwkv7_in_16_and_32_bits_is_the_original) {
  const auto original = random_rwkv7(sizes);
  for (const std::uint32_t type : {ggml_f32, ggml_f16, ggml_bf16}) {
    for (const bool dummies : {true, false}) {
      BOOST_TEST_CONTEXT("type " << type << ", dummies " << dummies) {
        const gguf_model_form form{.matrix = type, .head_size = 4, .dummies = dummies};
        const auto file = opened(gguf_model_of(gguf_plan_of(original, form), form, 2, 8, 32).file());
        BOOST_REQUIRE_MESSAGE(file, (file ? "" : file.error().message));
        check_same(original, *file);
        BOOST_TEST(file->format() == "gguf");
        BOOST_TEST(file->form() == "llama.cpp, rwkv7");
        BOOST_TEST(to_string(model::describe(*file)->version) == "7");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(rwkv6_in_16_and_32_bits_is_the_original) {
  const auto original = small_rwkv6();
  for (const std::uint32_t type : {ggml_f32, ggml_f16, ggml_bf16}) {
    for (const std::uint32_t every : {0u, 1u, 2u, 6u}) {
      for (const bool fused : {true, false}) {
        BOOST_TEST_CONTEXT("type " << type << ", rescaled every " << every << ", fused " << fused) {
          const gguf_model_form form{
              .seven = false, .matrix = type, .head_size = 4, .rescale_every = every, .fused = fused};
          const auto file = opened(gguf_model_of(gguf_plan_of(original, form), form, 4, 8, 28).file());
          BOOST_REQUIRE_MESSAGE(file, (file ? "" : file.error().message));
          check_same(original, *file);
          BOOST_TEST(to_string(model::describe(*file)->version) == "6");
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(trained_models_are_the_original, *boost::unit_test::precondition(have_oracle)) {
  for (const std::uint32_t type : {ggml_f32, ggml_f16, ggml_bf16}) {
    BOOST_TEST_CONTEXT("type " << type) {
      const auto seven = values_of_oracle("tiny-7v0.safetensors");
      const gguf_model_form form{.matrix = type};
      const auto file = opened(gguf_model_of(gguf_plan_of(seven, form), form, 12, 64, 256).file());
      BOOST_REQUIRE_MESSAGE(file, (file ? "" : file.error().message));
      BOOST_TEST(model::describe(*file)->head_size == 64u);
      for (const auto& tensor : seven) {
        if (tensor.name.starts_with("blocks.0.att.v")) continue;  // unused, and replaced by llama.cpp
        const auto* const found = file->find(tensor.name);
        BOOST_REQUIRE(found);
        auto expected = tensor.values;
        if (found->type == dtype::f16)  // a few of its weights are smaller than fp16's smallest normal numbers
          for (float& value : expected) value = f16_to_f32(f32_to_f16(value));
        BOOST_TEST_CONTEXT(tensor.name) BOOST_TEST((floats(*found) == expected));
      }
      if (type != ggml_bf16) {  // its weights have 11 bits
        const auto six = values_of_oracle("tiny-6v0-fp16.pth");
        const gguf_model_form six_form{.seven = false, .matrix = type, .head_size = 8};
        const auto six_file = opened(gguf_model_of(gguf_plan_of(six, six_form), six_form, 12, 128, 448).file());
        BOOST_REQUIRE_MESSAGE(six_file, (six_file ? "" : six_file.error().message));
        for (const auto& tensor : six) {
          const auto* const found = six_file->find(tensor.name);
          BOOST_TEST_CONTEXT(tensor.name) BOOST_TEST((found && floats(*found) == tensor.values));
        }
      }
    }
  }
}

// llama.cpp stores vectors and low-rank factors as F32 in every file, and drops what layer 0 does not use.
BOOST_AUTO_TEST_CASE(a_file_with_the_bits_of_the_original_has_its_identity) {
  const auto original = random_rwkv7(sizes);
  for (const dtype type : {dtype::bf16, dtype::f16, dtype::f32}) {
    std::vector<tensor_plan> pth;
    for (const auto& tensor : original) {
      std::string data;
      for (const float value : tensor.values)
        data += type == dtype::f32    ? little_endian(std::bit_cast<std::uint32_t>(value), 4)
                : type == dtype::bf16 ? little_endian(f32_to_bf16(value), 2)
                                      : little_endian(f32_to_f16(value), 2);
      pth.push_back({tensor.name, type, tensor.shape, data});
    }
    pth.push_back({"blocks.0.att.v0", type, {1, 1, 2}, std::string(2 * dtype_bytes(type), 'u')});
    for (const std::uint32_t matrix : {ggml_f32, ggml_f16, ggml_bf16}) {
      const gguf_model_form form{.matrix = matrix, .head_size = 4};
      const auto file = opened(gguf_model_of(gguf_plan_of(original, form), form, 2, 8, 32).file());
      BOOST_REQUIRE(file);
      BOOST_TEST(model::identity(*file, "v") == model::identity(*opened(pth_of(pth)), "v"));
    }
  }
}

BOOST_AUTO_TEST_CASE(quantised_matrices_are_decoded_and_rounded_once) {
  kernels::model_dims dims{2, 256, 1, 256, 512, 3, 3, 2, 5, 6};
  const auto original = random_rwkv7(dims);
  for (const auto& block : ggml_blocks()) {
    BOOST_TEST_CONTEXT(block.name) {
      const gguf_model_form form{.matrix = block.type, .head_size = 256};
      const auto plan = gguf_plan_of(original, form);
      const auto file = opened(gguf_model_of(plan, form, 2, 256, 512).file());
      BOOST_REQUIRE_MESSAGE(file, (file ? "" : file.error().message));
      std::size_t decoded = 0;
      const std::map<std::string, std::string> names = {
          {"token_embd.weight", "emb.weight"},
          {"output.weight", "head.weight"},
          {"blk.0.time_mix_key.weight", "blocks.0.att.key.weight"},
          {"blk.1.time_mix_value.weight", "blocks.1.att.value.weight"},
          {"blk.1.channel_mix_key.weight", "blocks.1.ffn.key.weight"},
          {"blk.0.channel_mix_value.weight", "blocks.0.ffn.value.weight"}};
      for (const auto& tensor : plan) {
        const auto name = names.find(tensor.name);
        if (name == names.end()) continue;
        BOOST_TEST(tensor.type == block.type);
        const auto* const found = file->find(name->second);
        BOOST_REQUIRE(found);
        BOOST_TEST((found->type == dtype::f16));
        auto expected = block_values(block, tensor.data);
        for (float& value : expected) value = f16_to_f32(f32_to_f16(value));
        BOOST_TEST_CONTEXT(tensor.name) BOOST_TEST((floats(*found) == expected));
        ++decoded;
      }
      BOOST_TEST(decoded == names.size());
      const auto info = model::describe(*file);
      BOOST_REQUIRE(info);
      BOOST_TEST(!!model::bind(*file, *info));
      BOOST_TEST(model::identify(*file, "").nonfinite == "");
      bool noted = false;
      for (const auto& note : file->notes()) noted = noted || note.find(block.name) != std::string::npos;
      BOOST_TEST(noted);
    }
  }
}

BOOST_AUTO_TEST_CASE(quantised_rwkv6_matrices_are_multiplied_back) {
  // 2 layers, each halved again: a block of Q8_0 in both scaled matrices of the second.
  const gguf_model_form form{.seven = false, .head_size = 4, .rescale_every = 1};
  auto plan = gguf_plan_of(small_rwkv6(), form);
  const auto& block = ggml_blocks().front();
  for (auto& tensor : plan) {
    if (tensor.name != "blk.3.time_mix_output.weight") continue;
    tensor.type = block.type;
    tensor.shape = {2, 32};
    tensor.data = random_blocks(block, 2, 5);
    const auto file = opened(gguf_model_of(plan, form, 4, 8, 28).file());
    BOOST_REQUIRE(file);
    auto expected = block_values(block, tensor.data);
    for (float& value : expected) value = f16_to_f32(f32_to_f16(value)) * 8;
    BOOST_TEST(floats(*file->find("blocks.3.att.output.weight")) == expected, boost::test_tools::per_element());
    return;
  }
  BOOST_FAIL("no such tensor");
}

BOOST_AUTO_TEST_CASE(a_scale_of_infinity_is_found) {
  const gguf_model_form form{.head_size = 4};
  auto plan = gguf_plan_of(random_rwkv7({2, 32, 8, 4, 32, 16, 3, 2, 5, 6}), form);
  for (auto& tensor : plan) {
    if (tensor.name != "output.weight") continue;
    tensor.type = ggml_q4_0;
    tensor.data = random_blocks(ggml_blocks()[1], 16, 5);
    tensor.data.replace(18, 2, std::string("\x00\x7c", 2));
  }
  const auto file = opened(gguf_model_of(plan, form, 2, 32, 32).file());
  BOOST_REQUIRE(file);
  BOOST_TEST(model::identify(*file, "").nonfinite == "head.weight");
}

BOOST_AUTO_TEST_CASE(versions_2_and_3_and_any_alignment_are_read) {
  const auto original = random_rwkv7(sizes);
  const gguf_model_form form{.head_size = 4};
  const auto plan = gguf_plan_of(original, form);
  for (const std::uint32_t version : {2u, 3u}) {
    const auto file = opened(gguf_model_of(plan, form, 2, 8, 32).version(version).file());
    BOOST_REQUIRE(file);
    check_same(original, *file);
  }
  for (const std::uint32_t alignment : {1u, 8u, 64u, 4096u}) {
    const auto file = opened(gguf_model_of(plan, form, 2, 8, 32).alignment(alignment).file());
    BOOST_REQUIRE(file);
    check_same(original, *file);
  }
}

BOOST_AUTO_TEST_CASE(other_architectures_are_refused_by_name) {
  const auto with = [](std::string_view name) {
    return refusal(gguf_builder().pair("general.architecture", gguf::text(name)).tensor({"a", {1}, 0, "1234"}));
  };
  BOOST_TEST(with("arwkv7").find("'arwkv7' (a Qwen model with RWKV attention) is not supported") != std::string::npos);
  BOOST_TEST(with("rwkv6qwen2").find("'rwkv6qwen2' (a Qwen model") != std::string::npos);
  BOOST_TEST(with("llama").find("architecture 'llama' is not supported; accepted: rwkv6, rwkv7") != std::string::npos);
  BOOST_TEST(refusal(gguf_builder().tensor({"a", {1}, 0, "1234"})).find("general.architecture is missing") !=
             std::string::npos);
  BOOST_TEST(refusal(rwkv7_file().pair("split.count", gguf::number(3))).find("in 3 files") != std::string::npos);
  BOOST_TEST(refusal(rwkv7_file().pair("rwkv7.token_shift_count", gguf::number(1))).find("token_shift_count: 1") !=
             std::string::npos);
  BOOST_TEST(!!opened(rwkv7_file().pair("rwkv7.token_shift_count", gguf::number(2)).file()));
  const auto adapter = gguf_builder().pair("general.type", gguf::text("adapter")).tensor({"a", {1}, 0, "1234"});
  BOOST_TEST(refusal(adapter).find("type 'adapter' is not supported") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_template_that_is_not_used_is_noted) {
  const auto noted = [](std::string_view chat) {
    const auto file = opened(rwkv7_file().pair("tokenizer.chat_template", gguf::text(chat)).file());
    BOOST_REQUIRE(file);
    return std::ranges::any_of(file->notes(), [](const auto& note) { return note.find("chat_template") != note.npos; });
  };
  BOOST_TEST(!noted("rwkv-world"));
  BOOST_TEST(!noted("{{ 'User: ' + message['content'] }}{{ 'Assistant:' }}"));
  BOOST_TEST(noted("{{ bos_token }}"));
}

BOOST_AUTO_TEST_CASE(templates_are_recognised_by_their_text) {
  using model::chat_form;
  const auto is = [](std::string_view chat, chat_form form) {
    BOOST_TEST_INFO(chat);
    BOOST_TEST((opened(rwkv7_file().pair("tokenizer.chat_template", gguf::text(chat)).file())->chat() == form));
  };
  is("", chat_form::none);
  is("rwkv-world", chat_form::names);
  is("{{ '<|rwkv_tokenizer_end_of_text|>' }}{% if message['role'] == 'user' %}{{'User: ' + message['content'] + "
     "'\\n\\n'}}"
     "{% endif %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}",
     chat_form::names);
  is("{{ '**Tool Call:**' }}", chat_form::headings);
  is("{{ '\\x16User: ' }}{{ '\\x16Assistant:' }}", chat_form::unknown);
  is("{{'<|im_start|>' + message['role']}} User: Assistant:", chat_form::unknown);
  is("{{'USER: ' + message['content']}}{{ 'ASSISTANT:' }}", chat_form::unknown);
  BOOST_TEST((opened(rwkv7_file().file())->chat() == chat_form::none));
}

BOOST_AUTO_TEST_CASE(names_say_how_models_answer) {
  for (const auto name : {"rwkv7-g1h-1.5b-20260710-ctx8192", "rwkv7-g1k-7.2b-20260930-ctx25600", "rwkv7a-g2-0.4b",
                          "RWKV7-G1k-7.2B", "rwkv7-world-0.1b-20260701-ctx4096"})
    BOOST_TEST(model::answers_as_bot(name), name);
  for (const auto name : {"", "-", "rwkv7-g1g-1.5b-20260801-ctx8192", "rwkv7-g1-0.4b-20250324-ctx4096",
                          "rwkv7-g0a-7.2b", "rwkv7-world-0.1b-20260630-ctx4096", "mine-20261001",
                          "RWKV-x060-World-3B-v2.1-20240417-ctx4096", "rwkv7-g1hx-1.5b", "rwkv7-gpu-1.5b"})
    BOOST_TEST(!model::answers_as_bot(name), name);
}

BOOST_AUTO_TEST_CASE(keys_that_contradict_the_tensors_are_refused) {
  const gguf_model_form form{.head_size = 4};
  const auto plan = gguf_plan_of(random_rwkv7(sizes), form);
  BOOST_TEST(refusal(gguf_model_of(plan, form, 3, 8, 32)).find("rwkv7.block_count is 3, the tensors have 2") !=
             std::string::npos);
  BOOST_TEST(refusal(gguf_model_of(plan, form, 2, 9, 32)).find("embedding_length is 9") != std::string::npos);
  BOOST_TEST(refusal(gguf_model_of(plan, form, 2, 8, 33)).find("feed_forward_length is 33") != std::string::npos);
  const gguf_model_form five{.head_size = 5};
  BOOST_TEST(refusal(gguf_model_of(plan, five, 2, 8, 32)).find("multiple of the head size") != std::string::npos);
  auto unknown = plan;
  unknown.push_back({"blk.1.ffn_gate.weight", {8}, ggml_f32, std::string(32, '\0')});
  BOOST_TEST(refusal(gguf_model_of(unknown, form, 2, 8, 32))
                 .find("'blk.1.ffn_gate.weight' is unknown in architecture rwkv7") != std::string::npos);
  for (auto& tensor : unknown)
    if (tensor.name == "blk.1.time_mix_lerp_fused.weight") tensor.shape = {4, 1, 1, 12};
  BOOST_TEST(refusal(gguf_model_of(unknown, form, 2, 8, 32)).find("has not the 6 rows") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_vocabulary_is_read_as_a_vocabulary_file) {
  auto file = rwkv7_file();
  add_vocabulary(
      file, {R"(\x00)", R"(\t)", R"(\n)", R"(\r\n)", R"(\')", R"(\\)", "it's", R"(\xe4\xBD\xa0)", "\"", " a b"}, 3);
  const auto found = opened(file.file());
  BOOST_REQUIRE(found);
  BOOST_TEST(found->vocabulary() ==
             "1 b'\\x00' 1\n2 b'\\x09' 1\n3 b'\\x0a' 1\n4 b'\\x0d\\x0a' 2\n5 b'\\x27' 1\n6 b'\\x5c' 1\n"
             "7 b'it\\x27s' 4\n8 b'\\xe4\\xbd\\xa0' 3\n9 b'\"' 1\n10 b' a b' 4\n");
  BOOST_TEST(found->foreign_vocabulary() == "");
}

BOOST_AUTO_TEST_CASE(a_vocabulary_without_types_leaves_out_what_is_named_unused) {
  auto file = rwkv7_file();
  file.pair("tokenizer.ggml.model", gguf::text("rwkv"))
      .pair("tokenizer.ggml.tokens", gguf::texts({"<s>", "a", "[PAD2]", "[PAD1]"}));
  const auto found = opened(file.file());
  BOOST_REQUIRE(found);
  BOOST_TEST(found->vocabulary() == "1 b'a' 1\n3 b'[PAD1]' 6\n");
}

BOOST_AUTO_TEST_CASE(bad_tokens_are_refused) {
  for (const char* token : {"\\", "\\x", "\\x1", "\\x1g", ""}) {
    auto file = rwkv7_file();
    add_vocabulary(file, {"a", token});
    BOOST_TEST(refusal(file).find("token 2 has no valid text") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(another_tokenizer_is_named) {
  const auto found = opened(rwkv7_file().pair("tokenizer.ggml.model", gguf::text("gpt2")).file());
  BOOST_REQUIRE(found);
  BOOST_TEST(found->vocabulary() == "");
  BOOST_TEST(found->foreign_vocabulary() == "'gpt2'");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::test
