// Writes small good GGUF files into the folder given: what the GGUF fuzzer starts from.
#include <filesystem>

#include "tests/model/gguf_builders.hpp"

int main(int argc, char** argv) {
  using namespace skein;
  using namespace skein::test;
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);

  const kernels::model_dims one_layer{1, 4, 1, 4, 8, 3, 1, 1, 1, 1}, wide{1, 32, 1, 32, 32, 3, 1, 1, 1, 1};
  const auto seven = [](const kernels::model_dims& dims, const gguf_model_form& form) {
    return gguf_model_of(gguf_plan_of(random_rwkv7(dims), form), form, 1, dims.embd, dims.ffn);
  };
  auto plain = seven(one_layer, {.head_size = 4});
  add_vocabulary(plain, {"a", R"(\x00)", R"(\t)", R"(it\'s)", R"(\xe4\xbd\xa0)"}, 2);
  write_file(folder / "rwkv7.gguf", plain.file());
  for (const auto& block : ggml_blocks())
    if (block.values == 32)
      write_file(folder / (std::string(block.name) + ".gguf"),
                 seven(wide, {.matrix = block.type, .head_size = 32}).file());
  write_file(folder / "aligned.gguf", seven(one_layer, {.matrix = ggml_bf16, .head_size = 4}).alignment(8).file());
  // Whole models with blocks of 256 values are too large to mutate often.
  gguf_builder blocks;
  blocks.pair("general.architecture", gguf::text("rwkv7"));
  for (const auto& block : ggml_blocks())
    if (block.values == 256)
      blocks.tensor({"blk." + std::to_string(block.type) + ".time_mix_key.weight",
                     {2, 256},
                     block.type,
                     random_blocks(block, 2, block.type)});
  write_file(folder / "blocks.gguf", blocks.file());
  for (const bool fused : {false, true}) {
    const gguf_model_form form{.seven = false, .head_size = 4, .rescale_every = 2, .fused = fused};
    write_file(folder / (fused ? "rwkv6.gguf" : "rwkv6_old.gguf"),
               gguf_model_of(gguf_plan_of(small_rwkv6(), form), form, 4, 8, 28).file());
  }
  return 0;
}
