// Folders of repositories: one file, shards with an index, config.json. Indices and configurations that contradict the
// files, or that point elsewhere, are refused.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>

#include "model/model_info.hpp"
#include "model/repository/tokenizer_json.hpp"
#include "tests/model/forms/form_writers.hpp"
#include "tests/support/oracle.hpp"

namespace skein::test {
namespace {

namespace fs = std::filesystem;

const plan original = filled(rwkv7_plan(small_dims(), dtype::bf16));

std::string index_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string text;
  for (const auto& [tensor, file] : entries) (text += text.empty() ? "" : ",") += "\"" + tensor + "\":\"" + file + "\"";
  return "{\"metadata\":{\"total_size\":1},\"weight_map\":{" + text + "}}";
}

/// A folder with fla's names in two shards.
struct repository {
  repository() : tensors(forms_of_7()[0].write(original)) {
    const auto middle = tensors.begin() + static_cast<std::ptrdiff_t>(tensors.size() / 2);
    const plan parts[] = {{tensors.begin(), middle}, {middle, tensors.end()}};
    for (int i = 0; i < 2; ++i) {
      const std::string name = "model-" + std::to_string(i) + ".safetensors";
      for (const auto& tensor : parts[i]) entries.emplace_back(tensor.name, name);
      write_file(path() / name, safetensors_of(parts[i]));
    }
    write_index();
  }
  void write_index() const { write_file(path() / "model.safetensors.index.json", index_of(entries)); }
  void configure(const std::string& text) const { write_file(path() / "config.json", text); }
  [[nodiscard]] const fs::path& path() const { return folder.path(); }

  temporary_folder folder;
  plan tensors;
  std::vector<std::pair<std::string, std::string>> entries;
};

std::string refusal(const fs::path& path, error_kind kind = error_kind::bad_file) {
  const auto file = model::checkpoint::open(path);
  if (!file) {
    BOOST_TEST_INFO(file.error().message);
    BOOST_TEST((file.error().kind == kind));
    return file.error().message;
  }
  const auto info = model::describe(*file);
  BOOST_REQUIRE(!info);
  BOOST_TEST((info.error().kind == kind));
  return info.error().message;
}

void check_names(const std::string& message, std::string_view part) {
  BOOST_TEST_INFO(message);
  BOOST_TEST((message.find(part) != std::string::npos));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(repositories)

BOOST_AUTO_TEST_CASE(shards_and_single_files_are_one_model) {
  const repository shards;
  shards.configure(R"({"model_type":"rwkv7","hidden_size":8,"num_hidden_layers":2,"head_dim":4,"num_heads":2,
    "intermediate_size":32,"vocab_size":16,"decay_low_rank_dim":3,"gate_low_rank_dim":6,"a_low_rank_dim":2,
    "v_low_rank_dim":5,"attn":null,"tie_word_embeddings":false,"norm_eps":1e-05,"norm_bias":true})");
  const auto file = model::checkpoint::open(shards.path());
  BOOST_REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().message));
  BOOST_TEST(file->form() == "Hugging Face, fla");
  BOOST_TEST(file->is_folder());
  BOOST_TEST(file->name() == shards.path().filename().string());
  BOOST_TEST(file->path() == shards.path());
  BOOST_TEST(!!model::describe(*file));
  BOOST_TEST(model::checkpoint::open(shards.path() / "")->path() == shards.path());

  const temporary_folder single;
  write_file(single.path() / "model.safetensors", safetensors_of(shards.tensors));
  const auto one = model::checkpoint::open(single.path());
  BOOST_REQUIRE(one);
  BOOST_TEST(one->file_bytes() == fs::file_size(single.path() / "model.safetensors"));
  BOOST_TEST(model::identity(*one, "v") == model::identity(*file, "v"));
  const auto direct = model::checkpoint::open(single.path() / "model.safetensors");
  BOOST_REQUIRE(direct);
  BOOST_TEST(!direct->is_folder());
  BOOST_TEST(direct->name() == "model");
}

BOOST_AUTO_TEST_CASE(folders_without_one_model_are_refused) {
  const temporary_folder folder;
  check_names(refusal(folder.path(), error_kind::missing_file), "the folder has no model file");
  write_file(folder.path() / "a.pth", pth_of(original));
  BOOST_TEST(!!model::checkpoint::open(folder.path()));
  write_file(folder.path() / "b.safetensors", safetensors_of(original));
  check_names(refusal(folder.path(), error_kind::conflict), "several model files (a.pth, b.safetensors)");
}

BOOST_AUTO_TEST_CASE(indices_that_contradict_their_files_are_refused) {
  const auto broken = [](const std::function<void(repository&)>& change, std::string_view part,
                         error_kind kind = error_kind::bad_file) {
    repository r;
    change(r);
    r.write_index();
    check_names(refusal(r.path(), kind), part);
  };
  broken([](auto& r) { r.entries.pop_back(); }, "but not in the index");
  broken([](auto& r) { r.entries.emplace_back("more", "model-1.safetensors"); }, "tensor 'more' is not in 'model-1");
  broken([](auto& r) { std::swap(r.entries.front().second, r.entries.back().second); }, ", not in 'model-");
  broken([](auto& r) { r.entries.push_back(r.entries.front()); }, "appears twice");
  broken([](auto& r) { r.entries.emplace_back("more", "model-2.safetensors"); },
         "index.json: weight_map: the file 'model-2.safetensors' is missing", error_kind::missing_file);
  broken([](auto& r) { r.entries.clear(); }, "lists no tensors");
  for (const char* file : {"../model-0.safetensors", "/etc/passwd", "..", ".", "", "a/b", ".hidden", "a\\u0000b"})
    broken([&](auto& r) { r.entries.front().second = file; }, "accepted: the name of a file in the folder");
  broken([](auto& r) { r.entries.front().second = std::string(256, 'a'); }, "accepted: the name of a file");
  broken([](auto& r) { r.entries.front().first = std::string(513, 'a'); }, "empty or too long");
  broken(
      [](auto& r) {
        for (int i = 0; i < 300; ++i) r.entries.emplace_back("t" + std::to_string(i), "f" + std::to_string(i));
      },
      "more than 256 files");
  broken(
      [](auto& r) {
        for (int i = 0; i < 17000; ++i) r.entries.emplace_back("t" + std::to_string(i), "f");
      },
      "more than 16384 tensors");
}

BOOST_AUTO_TEST_CASE(a_tensor_in_two_shards_is_refused) {
  const repository r;
  write_file(r.path() / "model-1.safetensors", safetensors_of(r.tensors));
  check_names(refusal(r.path()), "is in 'model-1.safetensors', not in 'model-0.safetensors'");
}

BOOST_AUTO_TEST_CASE(damaged_shards_are_named) {
  const repository r;
  write_file(r.path() / "model-1.safetensors", "not a model");
  check_names(refusal(r.path()), "model-1.safetensors: at byte 0");
}

BOOST_AUTO_TEST_CASE(damaged_indices_are_refused) {
  const repository r;
  const auto refused = [&](const std::string& text, std::string_view part) {
    write_file(r.path() / "model.safetensors.index.json", text);
    check_names(refusal(r.path()), part);
  };
  refused("{", "not valid JSON");
  refused("[]", "has no object \"weight_map\"");
  refused("{\"weight_map\":[]}", "has no object \"weight_map\"");
  refused("{\"weight_map\":{\"a\":1}}", "is not a text");
  refused(std::string(100000, '['), "not valid JSON");
  refused("{\"weight_map\":{\"a\":" + std::string(5000, '[') + std::string(5000, ']') + "}}", "not valid JSON");
  refused("{\"a\":\"\xff\"}", "not valid JSON");
  refused(std::string(3u << 20, ' '), "at most 2097152 are accepted");
}

BOOST_AUTO_TEST_CASE(configurations_are_checked) {
  const repository r;
  const auto refused = [&](const std::string& text, std::string_view part, error_kind kind) {
    r.configure(text);
    check_names(refusal(r.path(), kind), part);
  };
  constexpr auto bad = error_kind::bad_file, unsupported = error_kind::unsupported;
  refused("{\"hidden_size\":16}", "config.json: hidden_size is 16, but the tensors have 8", bad);
  refused("{\"num_hidden_layers\":3}", "num_hidden_layers is 3, but the tensors have 2", bad);
  refused("{\"head_dim\":8}", "head_dim is 8, but the tensors have 4", bad);
  refused("{\"gate_low_rank_dim\":7}", "gate_low_rank_dim is 7", bad);
  refused("{\"hidden_size\":-8}", "hidden_size is not a non-negative integer", bad);
  refused("{\"hidden_size\":\"8\"}", "hidden_size is not a non-negative integer", bad);
  refused("[]", "is not an object", bad);
  refused("{\"hidden_size\":8", "not valid JSON", bad);
  refused("{\"a\":" + std::string(5000, '[') + std::string(5000, ']') + "}", "not valid JSON", bad);
  refused(std::string(2u << 20, ' '), "are accepted", bad);
  refused("{\"attn\":{\"layers\":[1]}}", "config.json: attn: layers with softmax attention", unsupported);
  refused("{\"tie_word_embeddings\":true}", "tie_word_embeddings: embeddings that are also the head", unsupported);
  refused("{\"quantization\":{\"bits\":4}}", "quantised weights", unsupported);
  refused("{\"quantization\":\"rwkv_w4\"}", "quantised weights", unsupported);
  refused("{\"norm_eps\":1e-6}", "norm_eps", unsupported);
  refused("{\"norm_bias\":false}", "norms without a bias", unsupported);
  refused("{\"use_deep_embed\":true}", "RWKV-7a", unsupported);
  r.configure("{\"hidden_size\":null,\"attn\":null,\"tie_word_embeddings\":false,\"quantization\":{}}");
  const auto file = model::checkpoint::open(r.path());
  BOOST_REQUIRE(file);
  BOOST_TEST(!!model::describe(*file));
}

BOOST_AUTO_TEST_CASE(tokenizers_of_bytes_are_read) {
  const temporary_folder folder;
  const fs::path path = folder.path() / "tokenizer.json";
  // Space is the character 0x120 of the alphabet, the byte 0xff itself, 0x00 the character 0x100.
  write_file(path,
             "{\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"WordLevel\",\"vocab\":{"
             "\"<|endoftext|>\":0,\"\\u0120a\":5,\"\xc3\xbf\":6,\"\\u0100\":7,\"\\ue000rwkv_reserved_9\":9}}}");
  const auto tokens = model::read_tokenizer_json(path);
  BOOST_REQUIRE(tokens);
  BOOST_REQUIRE(tokens->size() == 4u);
  BOOST_TEST((*tokens)[1].id == 5u);
  BOOST_TEST((*tokens)[1].bytes == " a");
  BOOST_TEST((*tokens)[2].bytes == "\xff");
  BOOST_TEST((*tokens)[3].bytes == std::string(1, '\0'));
  write_file(path,
             R"({"decoder":{"type":"ByteLevel"},"model":{"type":"RwkvTrie","vocab":{"0":[],"5":" a","6":[255]}}})");
  const auto by_id = model::read_tokenizer_json(path);
  BOOST_REQUIRE(by_id);
  BOOST_REQUIRE(by_id->size() == 3u);
  BOOST_TEST((*by_id)[1].id == 5u);
  BOOST_TEST((*by_id)[1].bytes == " a");
  BOOST_TEST((*by_id)[2].bytes == "\xff");
  for (const char* other : {"{\"model\":{\"type\":\"BPE\",\"vocab\":{}},\"decoder\":{\"type\":\"ByteLevel\"}}",
                            "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{}},\"decoder\":null}", "{}", "[]"}) {
    write_file(path, other);
    const auto refused = model::read_tokenizer_json(path);
    BOOST_REQUIRE(!refused);
    BOOST_TEST((refused.error().kind == error_kind::unsupported));
    check_names(refused.error().message, "tokenizer.json: is not a conversion of the World vocabulary: model.type is ");
  }
  for (const char* damaged : {"{", R"({"decoder":{"type":"ByteLevel"},"model":{"type":"RwkvTrie","vocab":{"x":"a"}}})",
                              R"({"decoder":{"type":"ByteLevel"},"model":{"type":"RwkvTrie","vocab":{"5":[256]}}})",
                              R"({"decoder":{"type":"ByteLevel"},"model":{"type":"RwkvTrie","vocab":{"5":null}}})",
                              "{\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"WordLevel\",\"vocab\":{"
                              "\"a\":-1}}}"}) {
    write_file(path, damaged);
    const auto refused = model::read_tokenizer_json(path);
    BOOST_REQUIRE(!refused);
    BOOST_TEST((refused.error().kind == error_kind::bad_file));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::test
