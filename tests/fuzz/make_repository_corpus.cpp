// Writes small good JSON files of repositories into the folder given: what the repository fuzzer starts from.
#include <filesystem>

#include "tests/model/checkpoint_builders.hpp"

int main(int argc, char** argv) {
  using skein::test::write_file;
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  write_file(folder / "index.json", R"({"metadata":{"total_size":64},"weight_map":{"a.weight":"model-1.safetensors",
    "b.weight":"model-2.safetensors","c":"model-1.safetensors"}})");
  write_file(folder / "config.json", R"({"model_type":"rwkv7","hidden_size":64,"num_hidden_layers":2,"attn":null,
    "norm_eps":1e-05,"norm_bias":true,"tie_word_embeddings":false,"quantization":{},"value_dim":[64,64]})");
  write_file(folder / "tokenizer.json", R"({"decoder":{"type":"ByteLevel"},"model":{"type":"WordLevel",
    "vocab":{"<|endoftext|>":0,"\u0120a":5,"\u00ff":6,"b":7}}})");
  write_file(folder / "trie.json", R"({"decoder":{"type":"ByteLevel"},"model":{"type":"RwkvTrie",
    "vocab":{"0":[],"5":" a","6":[255]}}})");
  return 0;
}
