// The vocabulary of a repository's folder: its own file, or World's if tokenizer.json lists exactly its tokens.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "app/open_model.hpp"
#include "tests/model/checkpoint_builders.hpp"
#include "tests/support/oracle.hpp"

namespace skein::test {
namespace {

namespace fs = std::filesystem;
constexpr const char* world_name = "rwkv_vocab_v20230424.txt";

/// The World vocabulary as tokenizer.json of conversions: every byte is a character of GPT-2's alphabet.
std::string tokenizer_json(const tokenizer::vocabulary& world, std::uint32_t tokens) {
  std::string characters[256];
  unsigned next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool itself = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
    const unsigned code = itself ? byte : next++;
    if (code == '"' || code == '\\') characters[byte] = "\\";
    if (code < 0x80)
      characters[byte] += static_cast<char>(code);
    else
      characters[byte] = {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
  }
  std::string text = R"({"decoder":{"type":"ByteLevel"},"model":{"type":"WordLevel","vocab":{"<|endoftext|>":0)";
  for (std::uint32_t id = 1; id < tokens; ++id) {
    text += ",\"";
    for (const char byte : world.text(static_cast<token_id>(id))) text += characters[static_cast<unsigned char>(byte)];
    text += "\":" + std::to_string(id);
  }
  return text + "}}}";
}

/// A model of the World vocabulary in a folder of its own; the vocabulary is in another folder of data.
struct model_folder {
  model_folder() {
    kernels::model_dims dims = small_dims();
    dims.vocab = 65536;
    fs::create_directory(path());
    write_file(path() / "model.safetensors", safetensors_of(filled(rwkv7_plan(dims, dtype::bf16))));
    setenv("SKEIN_DATA_DIR", oracle().c_str(), 1);
  }
  [[nodiscard]] fs::path path() const { return folder.path() / "rwkv7-2.9b"; }
  [[nodiscard]] result<std::shared_ptr<const tokenizer::vocabulary>> vocabulary() const {
    const auto model = cli::open_model(path());
    BOOST_REQUIRE_MESSAGE(model.has_value(), (model ? "" : model.error().message));
    return cli::open_vocabulary("", *model);
  }
  temporary_folder folder;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(model_folders, *boost::unit_test::precondition(have_oracle))

BOOST_AUTO_TEST_CASE(a_file_that_shrinks_while_it_is_loaded_is_refused) {
  for (const bool refuse_nonfinite : {false, true}) {
    const model_folder in;
    const auto file = in.path() / "model.safetensors";
    const auto model = cli::open_model(in.path());
    BOOST_REQUIRE(model.has_value());
    fs::resize_file(file, fs::file_size(file) / 2);
    const auto engine = cli::open_engine(*model, {.device = "cpu", .refuse_nonfinite = refuse_nonfinite});
    BOOST_REQUIRE(!engine.has_value());
    BOOST_TEST((engine.error().kind == error_kind::io));
    BOOST_TEST(engine.error().message.starts_with(file.string() + ": the file changed"), engine.error().message);
  }
}

BOOST_AUTO_TEST_CASE(world_is_used_if_the_tokenizer_lists_it) {
  const model_folder m;
  setenv("SKEIN_DATA_DIR", m.folder.path().c_str(), 1);  // the list is enough: no file of the vocabulary is installed
  const auto world = tokenizer::vocabulary::load(oracle() / world_name);
  BOOST_REQUIRE(world);
  const std::uint32_t tokens = (*world)->size();
  const std::string listed = tokenizer_json(**world, tokens);
  const auto refused = [&](std::string text) {
    write_file(m.path() / "tokenizer.json", text);
    const auto none = m.vocabulary();
    BOOST_REQUIRE(!none);
    BOOST_TEST((none.error().kind == error_kind::unsupported));
    BOOST_TEST((none.error().message.find("tokenizer.json: is not") != std::string::npos));
  };
  write_file(m.path() / "tokenizer.json", listed);
  const auto found = m.vocabulary();
  BOOST_REQUIRE_MESSAGE(found.has_value(), (found ? "" : found.error().message));
  BOOST_TEST((*found)->hash() == (*world)->hash());
  BOOST_TEST((*found)->size() == tokens);
  BOOST_TEST((*found)->end() == (*world)->end());
  const auto one_file = cli::open_model(m.path() / "model.safetensors");  // beside the list, not in a folder with it
  BOOST_REQUIRE(one_file);
  BOOST_TEST((cli::open_vocabulary("", *one_file).value()->hash() == (*world)->hash()));
  std::string trie = listed;
  trie.replace(trie.find("WordLevel"), 9, "RwkvTrie");
  write_file(m.path() / "tokenizer.json", trie);
  BOOST_TEST((m.vocabulary() && (*m.vocabulary())->hash() == (*world)->hash()));

  std::string swapped = listed;
  swapped.replace(swapped.find("\":300,"), 6, "\":301,");
  refused(swapped);
  refused(listed.substr(0, listed.size() - 3) + ",\"<|im_start|>\":65530}}}");
  refused(tokenizer_json(**world, tokens - 1));
  refused("{\"model\":{\"type\":\"BPE\",\"vocab\":{}}}");
}

BOOST_AUTO_TEST_CASE(a_model_without_one_of_its_tensors_is_not_opened) {
  const temporary_folder folder;
  const auto path = folder.path() / "model.safetensors";
  auto plan = rwkv7_plan(small_dims(), dtype::bf16);
  std::erase_if(plan, [](const auto& tensor) { return tensor.name == "blocks.1.att.x_w"; });
  write_file(path, safetensors_of(filled(plan)));
  const auto model = cli::open_model(path);
  BOOST_REQUIRE(!model);
  BOOST_TEST((model.error().message.find("tensor 'blocks.1.att.x_w' is missing") != std::string::npos));
}

BOOST_AUTO_TEST_CASE(a_chat_template_tells_the_form_of_chats) {
  using model::chat_form;
  const model_folder m;
  const auto form = [&] { return cli::open_model(m.path())->file.chat(); };
  BOOST_TEST((form() == chat_form::none));
  const auto config = m.path() / "tokenizer_config.json";
  const auto configured = [&](const std::string& text) {
    write_file(config, text);
    return form();
  };
  BOOST_TEST((configured(R"({"chat_template":"{{ '**Tool Call:**' }}"})") == chat_form::headings));
  BOOST_TEST((configured(R"({"chat_template":"{{ 'User: ' }}\n\n{{ 'Assistant:' }}"})") == chat_form::names));
  BOOST_TEST((configured(R"({"chat_template":[{"name":"default","template":"User: Assistant:"},
    {"name":"tool_use","template":"**Tool Call:**"}]})") == chat_form::headings));
  BOOST_TEST((configured(R"({"chat_template":"{{ '<|im_start|>' }}"})") == chat_form::unknown));
  BOOST_TEST(cli::open_model(m.path())->file.notes().back().starts_with("left out: the chat template"));
  for (const std::string none :
       {R"({"chat_template":null})", R"({"chat_template":[1,{}]})", R"({"x":"**Tool Call:**"})", "[]", "{", ""})
    BOOST_TEST((configured(none) == chat_form::none), none);
  BOOST_TEST((configured(std::string(2u << 20, ' ') + "**Tool Call:**") == chat_form::none));  // too long to be one
  write_file(m.path() / "chat_template.jinja", "**Tool Call:**");
  BOOST_TEST((form() == chat_form::headings));
}

BOOST_AUTO_TEST_CASE(a_vocabulary_in_the_folder_comes_first) {
  const model_folder m;
  write_file(m.path() / "tokenizer.json", "{}");
  const fs::path own = m.path() / "rwkv_vocab_v20260603.txt";
  fs::copy_file(oracle() / world_name, own);
  std::ofstream(own, std::ios::app) << "65530 '<|im_start|>' 12\n";
  const auto newer = m.vocabulary();
  BOOST_REQUIRE_MESSAGE(newer.has_value(), (newer ? "" : newer.error().message));
  BOOST_TEST((*newer)->size() == 65531u);
  fs::copy_file(oracle() / world_name, m.path() / world_name);
  const auto world = m.vocabulary();
  BOOST_REQUIRE(world);
  BOOST_TEST((*world)->name() == world_name);
}

BOOST_AUTO_TEST_CASE(a_model_of_the_pile_is_refused_by_its_tokenizer) {
  kernels::model_dims dims = small_dims();
  dims.vocab = 50277;
  const temporary_folder folder;
  const auto path = folder.path() / "pile.safetensors";
  write_file(path, safetensors_of(filled(rwkv7_plan(dims, dtype::bf16))));
  const auto model = cli::open_model(path);
  BOOST_REQUIRE(model);
  const auto refused = cli::open_vocabulary("", *model);
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().kind == error_kind::unsupported));
  BOOST_TEST(
      refused.error().message ==
      "vocab: " + path.string() +
          " has the 50277 tokens of the Pile's 20B tokenizer, which is not supported; use a model with the World "
          "vocabulary, or pass --vocab FILE with the tokens");
  BOOST_TEST(!!cli::open_vocabulary("bytes", *model));
}

BOOST_AUTO_TEST_CASE(a_folder_without_tokenizer_uses_world) {
  const model_folder m;
  const auto found = m.vocabulary();
  BOOST_REQUIRE(found);
  BOOST_TEST((*found)->name() == world_name);
  const fs::path beside = m.folder.path() / "rwkv7-2.9b.vocab.txt";  // not "rwkv7-2.vocab.txt"
  fs::copy_file(oracle() / world_name, beside);
  BOOST_TEST((*m.vocabulary())->name() == "rwkv7-2.9b.vocab.txt");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::test
