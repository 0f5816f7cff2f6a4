// Shows that `skein convert` keeps each bit of every model of the oracle folder, in whatever form it was stored, and
// the model's identity; that rounded files give the logits of the original rounded while loading; that codes and scales
// of quantised GGUF files are kept; and that an output file appears complete or not at all.
#include <sys/stat.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <fstream>
#include <limits>
#include <span>
#include <utility>

#include "kernels/weights/weight_format.hpp"
#include "model/model_info.hpp"
#include "tests/cli/run_skein.hpp"
#include "tests/model/gguf_builders.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/thorough.hpp"

using namespace skein;
using test::run_skein;

namespace {

const auto needs_oracle = boost::unit_test::precondition(test::have_oracle);

constexpr const char* models[] = {"tiny-4v0.safetensors", "tiny-4v0-bf16.pth", "tiny-5v2.safetensors",
                                  "tiny-5v2-fp16.pth",    "tiny-6v0-fp16.pth", "tiny-7v0.pth",
                                  "tiny-7v0.safetensors", "tiny-7v0-bf16.pth", "quirk-views.pth",
                                  "quirk-mixed.pth",      "quirk-torch2.pth",  "quirk-metadata.pth"};

std::string oracle_model(const std::string& name) { return test::oracle() / "models" / name; }

void succeed(const std::vector<std::string>& arguments) {
  const auto ended = run_skein(arguments);
  BOOST_REQUIRE_MESSAGE(ended.exit_code == 0, arguments.front() << ": " << ended.err);
}

void check_refused(const std::vector<std::string>& arguments, const std::string& reason) {
  const auto ended = run_skein(arguments);
  BOOST_TEST(ended.exit_code != 0);
  BOOST_TEST(ended.err.find(reason) != std::string::npos, ended.err);
}

struct convert_folder {
  test::temporary_folder folder;

  std::string path(const std::string& name) const { return folder.path() / name; }
  std::string out() const { return path("out.safetensors"); }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& each : std::filesystem::directory_iterator(folder.path())) names.push_back(each.path().filename());
    std::ranges::sort(names);
    return names;
  }
  void convert(const std::string& from, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"convert", from, out()});
    succeed(more);
  }
  std::string logits(const std::string& model, std::vector<std::string> more = {}) const {
    std::ofstream(path("ids")) << "84,104,101,32,99,97,116,10";
    more.insert(more.begin(),
                {"logits", "--model", model, "--tokens-file", path("ids"), "--out", path("logits"), "--device", "cpu"});
    succeed(more);
    return test::content_of(path("logits"));
  }
};

model::checkpoint opened(const std::string& path) {
  auto file = model::checkpoint::open(path);
  BOOST_REQUIRE_MESSAGE(file, path << ": " << (file ? "" : file.error().message));
  return std::move(*file);
}

std::string identity_of(const std::string& path) { return model::identity(opened(path), "a vocabulary"); }

}  // namespace

BOOST_AUTO_TEST_CASE(every_model_keeps_its_bits_and_its_identity, *needs_oracle) {
  for (const std::string name : models) {
    const convert_folder in;
    in.convert(oracle_model(name));
    const auto before = opened(oracle_model(name)), after = opened(in.out());
    BOOST_TEST(after.format() == "safetensors");
    BOOST_TEST(before.tensors().size() == after.tensors().size(), name);
    for (const auto& tensor : before.tensors()) {
      const auto* same = after.find(tensor.name);
      BOOST_REQUIRE_MESSAGE(same, name << ": " << tensor.name);
      BOOST_TEST((same->shape == tensor.view.shape && same->type == tensor.view.type), tensor.name);
    }
    BOOST_TEST(identity_of(in.out()) == identity_of(oracle_model(name)), name);
    BOOST_TEST((in.files() == std::vector<std::string>{"out.safetensors"}));
  }
}

BOOST_AUTO_TEST_CASE(a_rounded_model_answers_like_the_original_rounded_while_loading, *needs_oracle) {
  for (const std::string name : {"tiny-4v0.safetensors", "tiny-5v2.safetensors", "tiny-6v0-fp16.pth", "tiny-7v0.pth"})
    for (const std::string type : {"fp32", "bf16", "fp16"}) {
      const convert_folder in;
      in.convert(oracle_model(name), {"--dtype", type});
      BOOST_TEST((in.logits(in.out()) == in.logits(oracle_model(name), {"--dtype", type})), name << " as " << type);
    }
  const convert_folder in;
  in.convert(oracle_model("tiny-7v0.pth"), {"--weight-format", "ffn.*=bf16"});
  BOOST_TEST((opened(in.out()).find("blocks.3.ffn.key.weight")->type == dtype::bf16));
  BOOST_TEST((opened(in.out()).find("blocks.3.att.key.weight")->type == dtype::f32));
}

BOOST_AUTO_TEST_CASE(tensors_that_no_version_knows_are_kept) {
  const convert_folder in;
  auto plan = test::filled(test::rwkv7_plan(test::small_dims(), dtype::f32));
  for (const dtype type : {dtype::f64, dtype::i8, dtype::u8, dtype::i32, dtype::i64})
    plan.push_back({"other \"" + std::string(to_string(type)) + "\"\\", type, {2, 3}, {}});
  plan.push_back({"scalar", dtype::f32, {}, {}});
  plan = test::filled(std::move(plan));
  test::write_file(in.path("in.pth"), test::pth_of(plan));
  in.convert(in.path("in.pth"));
  BOOST_TEST(opened(in.out()).tensors().size() == plan.size());
  BOOST_TEST(identity_of(in.out()) == identity_of(in.path("in.pth")));
}

BOOST_AUTO_TEST_CASE(an_existing_file_is_replaced_only_on_request, *needs_oracle) {
  const convert_folder in;
  std::ofstream(in.out()) << "mine";
  check_refused({"convert", oracle_model("tiny-7v0.pth"), in.out()}, "out.safetensors: exists; --force replaces it");
  BOOST_TEST(test::content_of(in.out()) == "mine");
  in.convert(oracle_model("tiny-7v0.pth"), {"--force"});
  BOOST_TEST(identity_of(in.out()) == identity_of(oracle_model("tiny-7v0.pth")));
  in.convert(in.out(), {"--force", "--dtype", "bf16"});  // onto itself
  BOOST_TEST((opened(in.out()).find("head.weight")->type == dtype::bf16));
  check_refused({"convert", in.out(), in.folder.path(), "--force"}, "is a folder");
}

BOOST_AUTO_TEST_CASE(the_form_of_the_chat_template_is_kept, *needs_oracle) {
  using model::chat_form;
  const std::pair<const char*, chat_form> templates[] = {{"**Tool Call:**", chat_form::headings},
                                                         {"User: x Assistant:", chat_form::names},
                                                         {"<|im_start|>", chat_form::none}};
  for (const auto& [text, form] : templates)
    for (const std::string type : {"auto", "int8"}) {
      const convert_folder in;
      std::filesystem::create_directory(in.path("model"));
      std::filesystem::copy_file(oracle_model("tiny-7v0.safetensors"), in.path("model/model.safetensors"));
      std::ofstream(in.path("model/chat_template.jinja")) << text;
      const auto ended = run_skein({"convert", in.path("model"), in.out(), "--dtype", type});
      BOOST_REQUIRE_MESSAGE(ended.exit_code == 0, ended.err);
      BOOST_TEST((opened(in.out()).chat() == form), text << " as " << type);
      const bool told = ended.err.find("chat template is left out") != std::string::npos;
      BOOST_TEST(told == (form == chat_form::none), ended.err);
      if (type != "auto") continue;  // a quantised file is not converted again
      in.convert(in.out(), {"--force"});
      BOOST_TEST((opened(in.out()).chat() == form), "again");
    }
}

BOOST_AUTO_TEST_CASE(a_link_is_followed_and_the_mode_is_kept, *needs_oracle) {
  using std::filesystem::perms;
  const convert_folder in;
  std::ofstream(in.path("real")) << "mine";
  std::filesystem::permissions(in.path("real"), perms::owner_read | perms::owner_write);
  std::filesystem::create_symlink("real", in.out());
  check_refused({"convert", oracle_model("tiny-7v0.pth"), in.out()}, "out.safetensors: exists; --force replaces it");
  in.convert(oracle_model("tiny-7v0.pth"), {"--force"});
  BOOST_TEST(std::filesystem::is_symlink(in.out()));
  BOOST_TEST(identity_of(in.path("real")) == identity_of(oracle_model("tiny-7v0.pth")));
  const auto mode = std::filesystem::status(in.path("real")).permissions();
  BOOST_TEST((mode == (perms::owner_read | perms::owner_write)));
}

BOOST_AUTO_TEST_CASE(a_pipe_is_not_replaced, *needs_oracle) {
  const convert_folder in;
  BOOST_REQUIRE(::mkfifo(in.out().c_str(), 0600) == 0);
  check_refused({"convert", oracle_model("tiny-7v0.pth"), in.out(), "--force"}, "is not a regular file");
  BOOST_TEST(std::filesystem::is_fifo(in.out()));
  BOOST_TEST((in.files() == std::vector<std::string>{"out.safetensors"}));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_converted_leaves_no_file, *needs_oracle) {
  const convert_folder in;
  const std::string broken = in.path("broken.safetensors");
  std::filesystem::copy_file(oracle_model("tiny-7v0.safetensors"), broken);
  std::fstream(broken, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-4, std::ios::end)
      .write("\0\0\xc0\x7f", 4);
  check_refused({"convert", broken, in.out()}, "has NaN or infinity");
  check_refused({"convert", in.path("absent.pth"), in.out()}, "absent.pth");
  check_refused({"convert", oracle_model("tiny-7v0.pth"), in.out(), "--weight-format", "ffn.kye=int8"},
                "ffn.kye=int8 matches no matrix of the model");
  check_refused({"convert", oracle_model("state-tiny-7v0.pth"), in.out()}, "' is a tuned state");
  check_refused({"convert", oracle_model("tiny-7v0.pth"), in.path("none/out")}, "cannot write");
  check_refused({"convert", oracle_model("tiny-7v0.pth"), in.out(), "--dtype", "int5"}, "dtype: int5 is not supported");
  BOOST_TEST((in.files() == std::vector<std::string>{"broken.safetensors"}));
  in.convert(broken, {"--allow-nonfinite"});
  BOOST_TEST(identity_of(in.out()) == identity_of(broken));
}

BOOST_AUTO_TEST_CASE(a_type_that_cannot_hold_the_values_is_refused) {
  for (const std::string name : {"blocks.1.ffn.key.weight", "emb.weight", "head.weight"}) {
    const convert_folder in;
    auto plan = test::filled(test::rwkv7_plan(test::small_dims(), dtype::f32));
    const auto beyond = std::ranges::find(plan, name, &test::tensor_plan::name);
    BOOST_REQUIRE(beyond != plan.end());
    const float value = 70000.0f;
    std::memcpy(beyond->data.data() + 4, &value, sizeof value);
    test::write_file(in.path("in.pth"), test::pth_of(plan));
    const std::string why = "tensor " + name + " has values beyond the range of fp16 (65504); accepted: bf16, fp32";
    check_refused({"convert", in.path("in.pth"), in.out(), "--dtype", "fp16"}, why);
    BOOST_TEST((in.files() == std::vector<std::string>{"in.pth"}));
    std::ofstream(in.path("ids")) << "1,2";
    check_refused({"logits", "--model", in.path("in.pth"), "--tokens-file", in.path("ids"), "--out", in.path("out"),
                   "--dtype", "fp16"},
                  why);
    for (const std::string accepted : {"bf16", "fp32"}) in.convert(in.path("in.pth"), {"--force", "--dtype", accepted});
  }
}

BOOST_AUTO_TEST_CASE(a_quantised_file_answers_as_if_it_were_quantised_while_loading, *needs_oracle) {
  const std::string names[] = {"tiny-4v0.safetensors", "tiny-5v2-fp16.pth", "tiny-6v0-fp16.pth", "tiny-7v0.pth",
                               "tiny-7v0-bf16.pth"};
  const std::string types[] = {"int8", "fp8", "int4", "nf4", "int4-32", "nf4-128"};
  const std::size_t step = test::is_nightly() ? 1 : 3;  // two types of each model, and each type of a model
  for (std::size_t n = 0; n < std::size(names); ++n)
    for (std::size_t t = n % step; t < std::size(types); t += step) {
      const std::string &name = names[n], &type = types[t];
      const convert_folder in;
      in.convert(oracle_model(name), {"--dtype", type});
      BOOST_TEST((in.logits(in.out()) == in.logits(oracle_model(name), {"--dtype", type})), name << " as " << type);
      BOOST_TEST(identity_of(in.out()) == identity_of(oracle_model(name)), name << " as " << type);
      BOOST_TEST(std::filesystem::file_size(in.out()) < std::filesystem::file_size(oracle_model(name)));
    }
  const convert_folder in;
  const std::vector<std::string> formats{"--dtype", "nf4", "--weight-format", "ffn.*@0-3=int8,att.key=bf16"};
  in.convert(oracle_model("tiny-7v0.pth"), formats);
  BOOST_TEST((in.logits(in.out()) == in.logits(oracle_model("tiny-7v0.pth"), formats)));
}

// Whatever the numbers of a row are: the opened file refuses other scales, and the same bits come from its original.
BOOST_AUTO_TEST_CASE(fp8_has_one_scale_for_each_row) {
  const convert_folder in;
  const std::string key = "blocks.1.att.key.weight", original = in.path("in.safetensors");
  auto plan = test::filled(test::rwkv7_plan({2, 64, 1, 64, 96, 128, 3, 2, 5, 6}, dtype::f32));
  std::string& data = test::named(plan, key).data;
  std::vector<float> values(64 * 64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 61) * 0.001f - 0.03f;
  const auto row = [&](std::size_t r) { return std::span(values).subspan(r * 64, 64); };
  std::ranges::fill(row(1), 0.0f);
  for (float& w : row(2)) w *= 1e-37f;  // some subnormal
  for (float& w : row(3)) w *= 1e9f;
  std::memcpy(data.data(), values.data(), data.size());
  test::write_file(original, test::safetensors_of(plan));
  in.convert(original, {"--dtype", "fp8"});
  const auto file = opened(in.out());
  BOOST_TEST(kernels::to_string(kernels::format_of(file.find(key)->codes)) == "fp8");
  BOOST_TEST(kernels::to_string(kernels::format_of(file.find("head.weight")->codes)) == "int8");
  for (std::size_t r = 0; r < 64; ++r) {
    std::uint16_t scale;
    std::memcpy(&scale, file.find(key)->codes.scales + r * sizeof scale, sizeof scale);
    BOOST_TEST(scale == kernels::row_scale(kernels::weight_element::fp8, row(r)), "row " << r);
  }
  BOOST_TEST((in.logits(in.out()) == in.logits(original, {"--dtype", "fp8"})));
  in.convert(original, {"--dtype", "fp8", "--weight-format", "head=fp8", "--force"});
  BOOST_TEST(kernels::to_string(kernels::format_of(opened(in.out()).find("head.weight")->codes)) == "fp8");

  row(4)[63] = std::numeric_limits<float>::infinity();
  std::memcpy(data.data(), values.data(), data.size());
  test::write_file(original, test::safetensors_of(plan));
  in.convert(original, {"--dtype", "fp8", "--allow-nonfinite", "--force"});
  BOOST_TEST(
      (in.logits(in.out(), {"--allow-nonfinite"}) == in.logits(original, {"--dtype", "fp8", "--allow-nonfinite"})));
}

BOOST_AUTO_TEST_CASE(a_changed_file_keeps_the_identity_of_the_original, *needs_oracle) {
  const convert_folder in;
  const std::string original = identity_of(oracle_model("tiny-7v0.pth"));
  in.convert(oracle_model("tiny-7v0.pth"), {"--dtype", "fp16"});
  BOOST_TEST(identity_of(in.out()) == original);
  const std::string again = in.path("again.safetensors");
  succeed({"convert", in.out(), again});
  BOOST_TEST(identity_of(again) == original);
  succeed({"convert", in.out(), again, "--dtype", "int4", "--force"});
  BOOST_TEST(identity_of(again) == original);
  check_refused({"convert", again, in.path("more.safetensors")}, "is quantised already");
}

BOOST_AUTO_TEST_CASE(a_quantised_file_has_one_format, *needs_oracle) {
  const convert_folder in;
  in.convert(oracle_model("tiny-7v0.pth"), {"--dtype", "int4-32"});
  std::ofstream(in.path("ids")) << "84,104";
  const auto logits = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all{"logits", "--model", in.out(), "--tokens-file", in.path("ids"), "--out", in.path("x")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  check_refused(logits({"--dtype", "bf16"}), "is quantised already (int4-32); accepted: auto");
  check_refused(logits({"--weight-format", "head=bf16"}), "is quantised already (int4-32); accepted: no patterns");
  succeed(logits({"--dtype", "int4-32"}));
  const auto shown = run_skein({"inspect", in.out()});
  BOOST_TEST(shown.out.find("int4-32 (") != std::string::npos, shown.out);

  std::string other = test::content_of(in.out());  // states another format than its tensors have
  const std::size_t stated = other.find("\"skein.dtype\":\"int4-32\"");
  BOOST_REQUIRE(stated != std::string::npos);
  other.replace(stated, 23, "\"skein.dtype\":\"int4-64\"");
  std::ofstream(in.out(), std::ios::binary) << other;
  check_refused(logits({}), "are quantised as int8-32, but the file says int8");
}

namespace {

/// Bytes of Q8_0 or Q4_0 blocks as a row-major matrix of codes and one of scales.
std::pair<std::string, std::string> divided(const std::string& blocks, bool eight) {
  std::pair<std::string, std::string> parts;
  for (std::size_t at = 0; at < blocks.size(); at += eight ? 34 : 18) {
    parts.second += blocks.substr(at, 2);
    if (eight) {
      parts.first += blocks.substr(at + 2, 32);
      continue;
    }
    const auto code = [&](std::size_t i) {
      const auto byte = static_cast<unsigned char>(blocks[at + 2 + i % 16]);
      return i < 16 ? byte & 15 : byte >> 4;
    };
    for (std::size_t i = 0; i < 32; i += 2) parts.first += static_cast<char>(code(i) | code(i + 1) << 4);
  }
  return parts;
}

std::string bytes_at(const std::byte* data, std::size_t count) { return {reinterpret_cast<const char*>(data), count}; }

}  // namespace

BOOST_AUTO_TEST_CASE(codes_and_scales_of_a_gguf_file_are_kept) {
  for (const std::uint32_t type : {test::ggml_q8_0, test::ggml_q4_0}) {
    const convert_folder in;
    const std::string gguf = in.path("in.gguf"), name = type == test::ggml_q8_0 ? "int8-32" : "int4-32";
    const test::gguf_model_form form{.matrix = type};
    const auto plan = test::gguf_plan_of(test::random_rwkv7({2, 64, 1, 64, 96, 128, 3, 2, 5, 6}), form);
    test::write_file(gguf, test::gguf_model_of(plan, form, 2, 64, 96).file());
    in.convert(gguf);
    const auto made = opened(in.out());
    const auto* key = made.find("blocks.1.att.key.weight");
    BOOST_REQUIRE(key);
    BOOST_TEST(kernels::to_string(kernels::format_of(key->codes)) == name);
    const auto stored = std::ranges::find(plan, "blk.1.time_mix_key.weight", &test::gguf_tensor_plan::name);
    const auto [codes, scales] = divided(stored->data, type == test::ggml_q8_0);
    BOOST_TEST((bytes_at(key->data, codes.size()) == codes));
    BOOST_TEST((bytes_at(key->codes.scales, scales.size()) == scales));
    BOOST_TEST((made.find("emb.weight")->type == dtype::f16));
    BOOST_TEST(identity_of(in.out()) == identity_of(gguf));
    BOOST_TEST((in.logits(in.out()) == in.logits(gguf)));
    check_refused(
        {"logits", "--model", in.out(), "--tokens-file", in.path("ids"), "--out", in.path("x"), "--dtype", "bf16"},
        "is quantised already (" + name + "); accepted: auto");
    in.convert(gguf, {"--dtype", name, "--force"});
    BOOST_TEST((in.logits(in.out()) == in.logits(gguf, {"--dtype", name})));
    in.convert(gguf, {"--weight-format", "att.*=fp16", "--force"});
    BOOST_TEST((opened(in.out()).find("blocks.1.att.key.weight")->type == dtype::f16));
    BOOST_TEST((in.logits(in.out()) == in.logits(gguf, {"--weight-format", "att.*=fp16"})));
    in.convert(gguf, {"--dtype", "fp16", "--force"});
    BOOST_TEST((in.logits(in.out()) == in.logits(gguf, {"--dtype", "fp16"})));
  }
}

BOOST_AUTO_TEST_CASE(an_adapter_is_merged_before_the_conversion, *needs_oracle) {
  const convert_folder in;
  const auto lora = test::filled(
      {{"blocks.2.att.key.lora_A", dtype::bf16, {2, 64}, {}}, {"blocks.2.att.key.lora_B", dtype::bf16, {64, 2}, {}}});
  test::write_file(in.path("lora.pth"), test::pth_of(lora));
  const std::string adapter = in.path("lora.pth") + ":0.5", model = oracle_model("tiny-7v0-bf16.pth");
  in.convert(model, {"--adapter", adapter});
  BOOST_TEST((in.logits(in.out()) == in.logits(model, {"--adapter", adapter})));
  BOOST_TEST((in.logits(in.out()) != in.logits(model)));
  BOOST_TEST(identity_of(in.out()) != identity_of(model));
  in.convert(model, {"--adapter", adapter, "--dtype", "int8", "--force"});
  BOOST_TEST((in.logits(in.out()) == in.logits(model, {"--adapter", adapter, "--dtype", "int8"})));
  std::vector<std::string> again{"inspect", in.out(), "--adapter", adapter};
  check_refused(again, "changes a quantised tensor");
}
