// Shows that adapters which do not fit the model, are damaged or want what is not supported are refused with the name
// of the tensor or field, and that nothing in them makes the merge allocate or compute without bound.
#include <bit>
#include <boost/test/unit_test.hpp>
#include <limits>

#include "tests/model/adapter_fixture.hpp"

using namespace skein;
using test::adapter_folder;
using test::tensor;

namespace {

const std::string adapted = "blocks.1.att.key";
constexpr std::int64_t C = 8;

void check_refused(const result<model::checkpoint>& opened, const std::string& reason) {
  BOOST_REQUIRE_MESSAGE(!opened, "accepted: " << reason);
  BOOST_TEST(opened.error().message.find(reason) != std::string::npos, opened.error().message << " without " << reason);
}

struct refused_file {
  std::vector<test::tensor_plan> tensors;
  const char* reason;
};

std::vector<test::tensor_plan> pair(const std::string& matrix, std::int64_t in = C, std::int64_t out = C) {
  return {tensor(matrix + ".lora_A", {2, in}), tensor(matrix + ".lora_B", {out, 2})};
}

std::vector<test::tensor_plan> start_of(const std::string& matrix) {
  return {tensor(matrix + ".init_lora_A", {2, C}), tensor(matrix + ".init_lora_B", {C, 2})};
}

test::tensor_plan with_nan(test::tensor_plan plan) {
  plan.data.replace(4, 4,
                    test::little_endian(std::bit_cast<std::uint32_t>(std::numeric_limits<float>::quiet_NaN()), 4));
  return plan;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hostile_adapter)

BOOST_AUTO_TEST_CASE(tensors_that_do_not_fit) {
  const adapter_folder in;
  const refused_file files[] = {
      {pair("blocks.9.att.key"), "tensor 'blocks.9.att.key.lora_A' fits no tensor of"},
      {pair("blocks.1.att.what"), "blocks.1.att.what.lora_A' fits no tensor of"},
      {pair(adapted, C + 1), "blocks.1.att.key.lora_A' has shape (2, 9); the tensor 'blocks.1.att.key.weight' (8, 8)"},
      {pair(adapted, C, C + 1), "needs (r, 8) and (8, r)"},
      {pair("blocks.1.att.k_k"), "needs a matrix in the model"},
      {{pair(adapted)[0]}, "blocks.1.att.key.lora_B' is missing"},
      {{pair(adapted)[1]}, "blocks.1.att.key.lora_A' is missing"},
      {{tensor(adapted + ".lora_M", {1, C})}, "blocks.1.att.key.lora_A' is missing"},
      {{tensor(adapted + ".init_lora_A", {2, C})}, "blocks.1.att.key.init_lora_B' is missing"},
      {start_of(adapted),
       "blocks.1.att.key.init_lora_A' is the start of a PiSSA adapter; pass the file with the trained"},
      {{pair(adapted)[0], pair(adapted)[1], tensor(adapted + ".lora_M", {1, C + 1})}, "has shape (1, 9), expected (8)"},
      {{tensor(adapted + ".lora_A", {2, C}), tensor(adapted + ".lora_B", {C, 3})},
       "expected (r, inputs) and (outputs, r)"},
      {{tensor(adapted + ".lora_A", {4096, C}), tensor(adapted + ".lora_B", {C, 4096})}, "ranks may be 2048 at most"},
      {{tensor(adapted + ".lora_A", {2, C}), tensor(adapted + ".lora_A.weight", {2, C})}, "is there twice"},
      {{tensor(adapted + ".bone", {3, 3, 3})}, "where r divides both sides"},
      {{tensor(adapted + ".bone", {2, 2, 2})}, "needs (8 / r, r, r)"},
      {{tensor(adapted + ".miss_block", {2, 2, 2})}, "needs (8 / r, r, r)"},
      {{tensor(adapted + ".bone", {4, 2, 3})}, "expected (n, r, r) or (r, outputs)"},
      {{tensor(adapted + ".disha", {2, 4})}, "needs (r, 8)"},
      {{tensor(adapted + ".what", {C, C})}, "blocks.1.att.key.what' fits no tensor of"},
      {{tensor("blocks.0.att.time_state", {2, 4, 4})}, "time_state' fits no tensor of"},
      {{tensor(adapted + ".weight", {C, C + 1})}, "needs (8, 8)"},
      {{with_nan(pair(adapted)[0]), pair(adapted)[1]}, "NaN or infinity"},
      {{pair(adapted)[0], with_nan(pair(adapted)[1])}, "NaN or infinity"},
      {{with_nan(tensor(adapted + ".weight", {C, C}))}, "NaN or infinity"},
      {{{adapted + ".weight", dtype::i8, {C, C}, std::string(C * C, '\0')}}, "has type int8"}};
  for (const auto& file : files) {
    check_refused(in.open({in.pth("a.pth", file.tensors) + ":1"}), file.reason);
    check_refused(in.open({in.pth("a.pth", file.tensors) + ":1"}), "a.pth");
  }
}

BOOST_AUTO_TEST_CASE(pissa_whose_files_do_not_belong_together) {
  const adapter_folder in;
  const std::string other = "blocks.0.att.key";
  const auto trained = in.pth("a.pth", pair(adapted)), start = in.pth("start.pth", start_of(other));
  check_refused(in.open({trained, start}), "a.pth does not say how to scale what it adds");
  check_refused(in.open({trained + ":1", start}), "start.pth: tensor 'blocks.0.att.key.init_lora_A' is the start of");
  BOOST_TEST(!!in.open({trained, in.pth("start.pth", start_of(adapted))}));
}

BOOST_AUTO_TEST_CASE(files_that_are_none) {
  const adapter_folder in;
  check_refused(in.open({in.path("absent.pth")}), "absent.pth");
  check_refused(in.open({in.path("")}), "has no adapter_model.safetensors");
  test::write_file(in.path("text"), "not an adapter at all");
  check_refused(in.open({in.path("text")}), "neither");
  check_refused(in.open({in.pth("a.pth", pair(adapted))}), "does not say how to scale what it adds; pass FILE:SCALE");
  check_refused(in.open({in.pth("a.pth", pair(adapted)) + ":1e9"}), "out of range");
  check_refused(in.open({in.pth("a.pth", pair(adapted)) + ":nan"}), "the scale nan is out of range");
  check_refused(in.open({in.pth("a.pth", pair(adapted)) + ":1,5"}), "the scale '1,5' of ");
  check_refused(in.open({in.pth("a.pth", pair(adapted)) + ":"}), "the scale '' of ");
  check_refused(in.open({""}), "is not FILE or FILE:SCALE");
  const std::string whole = test::safetensors_of(pair(adapted));
  for (const std::size_t cut : {9u, 40u, 200u, static_cast<unsigned>(whole.size()) - 1}) {
    test::write_file(in.path("cut.safetensors"), whole.substr(0, cut));
    check_refused(in.open({in.path("cut.safetensors:1")}), "cut.safetensors: at byte");
  }
}

BOOST_AUTO_TEST_CASE(a_view_that_repeats_one_element_for_ever) {
  const adapter_folder in;
  using namespace test::pickled;
  const auto huge = [](const char* name, std::vector<std::int64_t> shape) {
    return text(name) + test::pickled::tensor(storage("FloatStorage", "0", 1), 0, shape, {0, 0});
  };
  const std::string pickle = whole(
      dict(huge("blocks.1.att.key.lora_A", {2, std::int64_t{1} << 40}) + huge("blocks.1.att.key.lora_B", {8, 2})));
  test::write_file(in.path("a.pth"), test::pth_archive(pickle, {{"0", std::string(4, '\0')}}).file());
  check_refused(in.open({in.path("a.pth:1")}), "reach beyond the 1 elements of its storage");
}

BOOST_AUTO_TEST_CASE(configurations_of_peft) {
  const adapter_folder in;
  const std::pair<const char*, const char*> configs[] = {
      {"", "adapter_config.json"},
      {"[1]", "is not a JSON object"},
      {R"({"peft_type": "LORA")", "is not a JSON object"},
      {R"({"r": 2, "lora_alpha": 4})", "peft_type is"},
      {R"({"peft_type": "PREFIX_TUNING"})", "peft_type is 'PREFIX_TUNING'; accepted: LORA, MISS, BONE"},
      {R"({"peft_type": 3})", "peft_type is not a text"},
      {R"({"peft_type": "LORA", "r": 2})", "lora_alpha is missing"},
      {R"({"peft_type": "LORA", "r": 2, "lora_alpha": "4"})", "lora_alpha is not a number"},
      {R"({"peft_type": "LORA", "r": 2.5, "lora_alpha": 4})", "r is not a rank"},
      {R"({"peft_type": "LORA", "r": 3, "lora_alpha": 4})", "has rank 2, but adapter_config.json says 3"},
      {R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "use_rslora": 1})", "use_rslora is not true or false"},
      {R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "use_dora": true})", "lora_magnitude_vector' is missing"},
      {R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "alpha_pattern": {"key": 1}})", "alpha_pattern"},
      {R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "fan_in_fan_out": true})", "fan_in_fan_out"},
      {R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "init_lora_weights": "pissa"})",
       "init_lora_weights is 'pissa'"},
      {R"({"peft_type": "MISS", "init_weights": "what"})", "init_weights is 'what'"},
      {R"({"peft_type": "MISS"})", "is of LoRA, but adapter_config.json names another peft_type"}};
  for (const auto& [config, reason] : configs) check_refused(in.open({in.peft(config, pair(adapted))}), reason);
  in.peft("{}", pair(adapted));
  std::filesystem::remove(in.path("peft/adapter_config.json"));
  check_refused(in.open({in.path("peft")}), "adapter_config.json");
}

BOOST_AUTO_TEST_SUITE_END()
