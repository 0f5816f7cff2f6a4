// Shows that the tools compute what the reference computes and that their files fit together; by running the built
// program on the small trained models of the oracle folder and comparing with its stored answers.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <fstream>

#include "tests/cli/golden_logits.hpp"
#include "tests/cli/run_skein.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;
using test::floats;
using test::golden_logits;
using test::golden_tokens;
using test::relative_error;
using test::run_skein;

namespace {

const auto needs_oracle = boost::unit_test::precondition(test::have_oracle);

std::string tiny() { return test::oracle() / "models/tiny-7v0.pth"; }

test::outcome succeed(const std::vector<std::string>& arguments, const std::string& input = {}) {
  auto ended = run_skein(arguments, input);
  BOOST_REQUIRE_MESSAGE(ended.exit_code == 0, arguments.front() << ": " << ended.err);
  return ended;
}

/// A folder with ids in files, to run `logits` in.
struct logits_folder {
  test::temporary_folder folder;

  std::string path(const std::string& name) const { return folder.path() / name; }
  std::vector<float> run(const std::string& ids, std::vector<std::string> more) const {
    std::ofstream(path("ids")) << ids;
    std::vector<std::string> arguments{"logits", "--model", tiny(), "--tokens-file", path("ids"), "--out", path("out")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    succeed(arguments);
    return floats(path("out"));
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_model_with_nan_is_refused_unless_it_is_allowed, *needs_oracle) {
  const test::temporary_folder folder;
  const auto broken = folder.path() / "broken.safetensors";
  std::filesystem::copy_file(test::oracle() / "models/tiny-7v0.safetensors", broken);
  std::fstream(broken, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-4, std::ios::end)
      .write("\0\0\xc0\x7f", 4);
  std::vector<std::string> generate{"generate", "--model", broken, "--prompt", "The ", "--max-tokens", "1"};
  const auto refused = run_skein(generate);
  BOOST_TEST(refused.exit_code != 0);
  BOOST_TEST(refused.err.find("has NaN or infinity") != std::string::npos, refused.err);
  generate.push_back("--allow-nonfinite");
  const auto allowed = run_skein(generate);
  BOOST_TEST(allowed.exit_code != 0);
  BOOST_TEST(allowed.err.find("computed a logit that is NaN or infinite") != std::string::npos, allowed.err);
}

BOOST_AUTO_TEST_CASE(the_demo_model_is_the_default, *needs_oracle) {
  const test::temporary_folder data;
  std::filesystem::create_directory(data.path() / "demo");
  std::filesystem::copy_file(test::oracle() / "models/tiny-7v0.safetensors",
                             data.path() / "demo/skein-demo.safetensors");
  const std::vector<std::pair<std::string, std::string>> there{{"SKEIN_DATA_DIR", data.path()}};
  const auto described = run_skein({"inspect"}, {}, there);
  BOOST_TEST(described.exit_code == 0);
  BOOST_TEST(described.out.find("demo/skein-demo.safetensors") != std::string::npos, described.out);
  const std::vector<std::string> greedy{"generate", "--prompt", "The ", "--temperature", "0", "--max-tokens", "8"};
  const auto by_default = run_skein(greedy, {}, there);
  auto named = greedy;
  named.insert(named.end(), {"--model", tiny()});
  BOOST_TEST(by_default.out == succeed(named).out);
  BOOST_TEST(!by_default.out.empty());
}

BOOST_AUTO_TEST_CASE(a_vocabulary_of_the_models_name_comes_before_others, *needs_oracle) {
  const test::temporary_folder folder;
  std::filesystem::copy_file(test::oracle() / "models/tiny-7v0.safetensors", folder.path() / "m.safetensors");
  std::ofstream(folder.path() / "m.vocab.txt") << "1 'a' 1\n2 'b' 1\n";
  const auto refused = run_skein({"generate", "--model", folder.path() / "m.safetensors", "--prompt", "a"});
  BOOST_TEST(refused.exit_code == 65);
  BOOST_TEST(refused.err.find("m.vocab.txt: byte 0 has no single-byte token") != std::string::npos, refused.err);
}

BOOST_AUTO_TEST_CASE(logits_agree_with_the_reference, *needs_oracle) {
  const logits_folder in;
  BOOST_TEST(relative_error(in.run(golden_tokens("tiny-7v0"), {}), golden_logits("tiny-7v0")) < 1e-5);
  const std::string tuned = test::oracle() / "models/state-tiny-7v0.pth";
  BOOST_TEST(relative_error(in.run(golden_tokens("state-tiny-7v0"), {"--state-in", tuned}),
                            golden_logits("state-tiny-7v0")) < 1e-5);
}

BOOST_AUTO_TEST_CASE(logits_are_the_same_bits_in_any_chunking, *needs_oracle) {
  const logits_folder in;
  const auto whole = in.run("84,104,101,32,99,97,116,10\n", {});
  BOOST_TEST(whole.size() == 8 * 256u);
  BOOST_TEST((in.run("84,104,101,32,99,97,116,10", {"--chunk", "1"}) == whole));
  BOOST_TEST((in.run("84,104,101,32,99,97,116,10", {"--chunk", "3"}) == whole));
}

BOOST_AUTO_TEST_CASE(a_state_goes_out_and_comes_back, *needs_oracle) {
  const logits_folder in;
  const auto whole = in.run("84,104,101,32,99,97,116", {});
  in.run("84,104,101", {"--state-out", in.path("state.safetensors")});
  const auto rest = in.run("32,99,97,116", {"--state-in", in.path("state.safetensors")});
  BOOST_TEST((rest == std::vector<float>(whole.begin() + 3 * 256, whole.end())));
}

BOOST_AUTO_TEST_CASE(logits_do_not_replace_their_inputs, *needs_oracle) {
  const logits_folder in;
  namespace fs = std::filesystem;
  fs::create_directory(in.path("folder"));
  const std::string model = in.path("folder/model.pth"), ids = in.path("ids"), state = in.path("state.safetensors");
  fs::copy_file(tiny(), model);
  fs::create_symlink("folder/model.pth", in.path("link"));
  std::ofstream(in.path("folder/notes")) << "mine";
  in.run("1,2", {"--state-out", state});
  const auto before = test::content_of(model), state_before = test::content_of(state);
  const auto refuse = [&](const std::string& named, std::vector<std::string> more, const std::string& why) {
    more.insert(more.begin(), {"logits", "--model", named, "--tokens-file", ids});
    const auto ended = run_skein(more);
    BOOST_TEST(ended.exit_code == 64);
    BOOST_TEST(ended.err.find(why) != std::string::npos, ended.err);
    BOOST_TEST(test::content_of(ids) == "1,2");
    BOOST_TEST((test::content_of(model) == before));
    BOOST_TEST((test::content_of(state) == state_before));
  };
  const std::string out = in.path("out"), fresh = in.path("fresh");
  refuse(model, {"--out", model}, "belongs to the model; give another file");
  refuse(model, {"--out", in.path("link")}, "belongs to the model");
  refuse(in.path("folder"), {"--out", in.path("link")}, "belongs to the model");
  refuse(in.path("folder"), {"--out", in.path("folder/notes")}, "belongs to the model");
  refuse(model, {"--out", ids}, "belongs to the file of the tokens");
  refuse(model, {"--out", state, "--state-in", state}, "belongs to the state to begin with");
  refuse(model, {"--out", out, "--state-out", model}, "state-out: ");
  refuse(model, {"--out", out, "--state-out", ids}, "belongs to the file of the tokens");
  refuse(model, {"--out", fresh, "--state-out", fresh}, "belongs to the state to write");
  BOOST_TEST(!fs::exists(fresh));
  in.run("1,2", {"--state-in", state, "--state-out", state});
  BOOST_TEST((test::content_of(state) != state_before));
}

BOOST_AUTO_TEST_CASE(logits_that_fail_leave_no_file, *needs_oracle) {
  const logits_folder in;
  std::ofstream(in.path("ids")) << "1,2";
  std::ofstream(in.path("out")) << "mine";
  const auto ended = run_skein({"logits", "--model", tiny(), "--tokens-file", in.path("ids"), "--out", in.path("out"),
                                "--state-out", in.path("none/state")});
  BOOST_TEST(ended.exit_code == 74);
  BOOST_TEST(test::content_of(in.path("out")) == "mine");
  for (const auto& each : std::filesystem::directory_iterator(in.folder.path()))
    BOOST_TEST((each.path().filename() == "ids" || each.path().filename() == "out"), each.path());
}

BOOST_AUTO_TEST_CASE(a_tuned_state_changes_the_answer, *needs_oracle) {
  const logits_folder in;
  const auto plain = in.run("84", {});
  const auto tuned = in.run("84", {"--state-in", test::oracle() / "models/state-tiny-7v0.pth"});
  BOOST_TEST(relative_error(tuned, plain) > 1e-3);
}

BOOST_AUTO_TEST_CASE(a_foreign_state_is_refused, *needs_oracle) {
  const logits_folder in;
  std::ofstream(in.path("ids")) << "1";
  for (const char* name : {"models/state-gen-7.pth", "models/tiny-7v0.safetensors"}) {
    const auto ended = run_skein({"logits", "--model", tiny(), "--tokens-file", in.path("ids"), "--out", in.path("out"),
                                  "--state-in", test::oracle() / name});
    BOOST_TEST(ended.exit_code == 65, name << ": " << ended.err);
  }
}

BOOST_AUTO_TEST_CASE(a_state_of_more_layers_is_refused, *needs_oracle) {
  const logits_folder in;
  const std::string state = in.path("state.safetensors"), more = in.path("more.safetensors");
  in.run("1,2", {"--state-out", state});
  // One more array, with the name of a layer that the model has not.
  std::string bytes = test::content_of(state);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto data = std::to_string(bytes.size() - 8 - header), end = std::to_string(bytes.size() - 8 - header + 4);
  std::string json = bytes.substr(8, header);
  json.erase(json.rfind('}'));
  json += ",\"blocks.77.att.x_prev\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[" + data + ',' + end + "]}}";
  json.resize((json.size() + 7) / 8 * 8, ' ');
  header = json.size();
  std::ofstream(more, std::ios::binary) << std::string(reinterpret_cast<const char*>(&header), sizeof header) << json
                                        << bytes.substr(8 + bytes.size() - 8 - std::stoull(data))
                                        << std::string(4, '\0');
  const auto ended = run_skein(
      {"logits", "--model", tiny(), "--tokens-file", in.path("ids"), "--out", in.path("out"), "--state-in", more});
  BOOST_TEST(ended.exit_code == 65);
  BOOST_TEST(ended.err.find("'blocks.77.att.x_prev' is not in a state of the model") != std::string::npos, ended.err);
}

BOOST_AUTO_TEST_CASE(the_ending_pth_may_be_left_out, *needs_oracle) {
  const std::string path = test::oracle() / "models/tiny-7v0";
  BOOST_TEST(succeed({"inspect", path}).out.find("version      7\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(both_formats_have_one_identity, *needs_oracle) {
  const auto identity = [](const std::string& path) {
    const auto text = succeed({"inspect", path}).out;
    return text.substr(text.find("identity"));
  };
  BOOST_TEST(identity(tiny()) == identity(test::oracle() / "models/tiny-7v0.safetensors"));
  BOOST_TEST(identity(tiny()) == identity(test::oracle() / "models/tiny-7v0-bf16.pth"));  // the same values
  BOOST_TEST(identity(test::oracle() / "models/tiny-5v2.safetensors") !=
             identity(test::oracle() / "models/tiny-5v2-fp16.pth"));
}

BOOST_AUTO_TEST_CASE(greedy_text_and_ids_are_one_thing, *needs_oracle) {
  const std::vector<std::string> greedy{"generate",     "--model", tiny(),          "--prompt", "The cat ",
                                        "--max-tokens", "24",      "--temperature", "0"};
  const auto text = succeed(greedy).out;
  auto with_ids = greedy;
  with_ids.push_back("--show-tokens");
  const auto ids = succeed(with_ids).out;
  BOOST_TEST(text.size() > 0u);
  BOOST_TEST(succeed({"tokenize", "--vocab", "bytes", "--ids"}, ids).out == text);
  BOOST_TEST(succeed({"tokenize", "--vocab", "bytes"}, text).out == ids);
}

BOOST_AUTO_TEST_CASE(a_seed_repeats_and_another_differs, *needs_oracle) {
  const auto with_seed = [](const char* seed) {
    return succeed({"generate", "--model", tiny(), "--prompt", "The ", "--max-tokens", "40", "--seed", seed,
                    "--show-tokens"})
        .out;
  };
  BOOST_TEST(with_seed("1") == with_seed("1"));
  BOOST_TEST(with_seed("1") != with_seed("2"));
}

BOOST_AUTO_TEST_CASE(a_prompt_from_a_file_is_the_prompt, *needs_oracle) {
  const test::temporary_folder folder;
  const std::string file = folder.path() / "prompt";
  std::ofstream(file) << "The cat ";
  const auto run = [](const std::string& flag, const std::string& value) {
    return succeed({"generate", "--model", tiny(), flag, value, "--max-tokens", "8", "--temperature", "0"}).out;
  };
  BOOST_TEST(run("--prompt-file", file) == run("--prompt", "The cat "));
  BOOST_TEST(run("--tokens", "84,104,101,32,99,97,116,32") == run("--prompt", "The cat "));
}

BOOST_AUTO_TEST_CASE(a_score_is_the_reference_s, *needs_oracle) {
  const auto golden = test::golden_text("tiny-7v0");
  BOOST_REQUIRE(golden.log_probabilities.size() + 1 == golden.text.size());
  double sum = 0;
  for (const double each : golden.log_probabilities) sum += each;
  const double bits = -sum / std::log(2.0) / static_cast<double>(golden.log_probabilities.size());
  const test::temporary_folder folder;
  const std::string file = folder.path() / "text";
  std::ofstream(file, std::ios::binary) << golden.text;
  const auto bits_of = [&](const std::vector<std::string>& more, const std::string& input) {
    std::vector<std::string> arguments{"score", "--model", tiny(), "--dtype", "fp32", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto text = succeed(arguments, input).out, name = std::string("\"bits_per_byte\":");
    return std::stod(text.substr(text.find(name) + name.size()));
  };
  BOOST_TEST(bits_of({file}, "") == bits, boost::test_tools::tolerance(1e-5));
  for (const char* chunk : {"1", "7", "299", "300"})  // the last token of a chunk is scored too
    BOOST_TEST(bits_of({"--chunk", chunk}, golden.text) == bits, boost::test_tools::tolerance(1e-5));

  const auto plain = succeed({"score", "--model", tiny(), file}).out;
  BOOST_TEST(plain.starts_with("tokens           299\nbytes            299\nbits_per_byte "), plain);
  BOOST_TEST(run_skein({"score", "--model", tiny()}, "a").exit_code == 64);
}

BOOST_AUTO_TEST_CASE(tokenize_takes_any_bytes) {
  const std::string bytes("a\0\xff\n", 4);
  BOOST_TEST(succeed({"tokenize", "--vocab", "bytes"}, bytes).out == "97,0,255,10\n");
  BOOST_TEST(succeed({"tokenize", "--vocab", "bytes", "--ids"}, "97,0,255,10\n").out == bytes);
  BOOST_TEST(succeed({"tokenize", "--vocab", "bytes"}, "").out == "\n");
}

BOOST_AUTO_TEST_CASE(the_world_vocabulary_is_found_in_the_data_folder, *needs_oracle) {
  const auto ended = run_skein({"tokenize"}, "Hello world", {{"SKEIN_DATA_DIR", test::oracle()}});
  BOOST_TEST(ended.exit_code == 0, ended.err);
  BOOST_TEST(ended.out == "33155,40213\n");
}

BOOST_AUTO_TEST_CASE(the_bench_counts_quantised_weights_as_they_are_in_memory, *needs_oracle) {
  const test::temporary_folder folder;
  const std::string file = folder.path() / "figures.json";
  succeed({"bench", "engine", "--model", tiny(), "--device", "cpu", "--dtype", "nf4", "--batches", "1", "--seconds",
           "0", "--json", file});
  const std::string json = test::content_of(file), key = "\"weight_bytes\":";
  const std::size_t of_engine = json.find(key), of_case = json.find(key, of_engine + 1);
  BOOST_REQUIRE(of_case != std::string::npos);
  const auto bytes = [&](std::size_t at) { return std::stoul(json.substr(at + key.size())); };
  BOOST_TEST(bytes(of_case) > bytes(of_engine));  // one row of the embedding table
  BOOST_TEST(bytes(of_case) < bytes(of_engine) + 1000);
}

// What it says of speed is the machine's business; that every case is there, and how it is told, is ours.
BOOST_AUTO_TEST_CASE(the_bench_tells_every_case, *needs_oracle) {
  const test::temporary_folder folder;
  const std::string file = folder.path() / "figures.json";
  const auto ended = succeed({"bench", "engine", "--model", tiny(), "--device", "cpu", "--batches", "1,3", "--prefill",
                              "2x5", "--seconds", "0", "--json", file});
  const std::string json = test::content_of(file);
  for (const char* piece :
       {R"("kind":"decode","sequences":1,"tokens":1)", R"("kind":"decode","sequences":3,"tokens":1)",
        R"("kind":"prefill","sequences":2,"tokens":5)", R"("state_type":"fp32")", R"("open_s":)", R"("load_s":)"})
    BOOST_TEST(json.find(piece) != std::string::npos, json << " lacks " << piece);
  for (const auto& text : {ended.out, ended.err})
    for (const char* piece : {"decode        1x1", "decode        3x1", "prefill       2x5"})
      BOOST_TEST(text.find(piece) != std::string::npos, text << " lacks " << piece);
}
