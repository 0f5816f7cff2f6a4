// Shows that files of `skein convert` whose metadata does not fit their tensors are refused by name, and that quantised
// tensors are accepted only where they are matrices.
#include <boost/test/unit_test.hpp>

#include "kernels/weights/weight_format.hpp"
#include "model/model_info.hpp"
#include "tests/model/checkpoint_builders.hpp"
#include "tests/model/opened.hpp"

using namespace skein;

namespace {

const std::string digest = "0123456789abcdef0123456789abcdef", key = "blocks.1.att.key.weight";

using metadata = std::vector<std::pair<std::string, std::string>>;

std::string file_of(const std::vector<test::tensor_plan>& plan, const metadata& texts) {
  std::string more;
  for (const auto& [name, text] : texts) more += (more.empty() ? "" : ",") + ('"' + name + "\":\"" + text + '"');
  std::string header = test::safetensors_header(plan), data;
  header.insert(1, "\"__metadata__\":{" + more + "},");
  for (const auto& tensor : plan) data += tensor.data;
  return test::safetensors_file(header, data);
}

/// A model in which one matrix has codes and scales of int4.
std::vector<test::tensor_plan> quantised_model(const std::string& name = key, const std::string& ending = ".int4") {
  auto plan = test::without(test::rwkv7_plan(test::small_dims(), dtype::f32), name);
  plan.push_back({name + ending, dtype::u8, {8, 4}, {}});
  plan.push_back({name + ".scales", dtype::bf16, {8, 1}, {}});
  return test::filled(std::move(plan));
}

metadata good(const std::string& note = "int4 64 fp32 8x8 " + digest) {
  return {{"skein.version", "1"}, {"skein.dtype", "int4"}, {key, note}};
}

/// A number of 16 bits in the order of bytes in files.
std::string repeated(std::uint16_t bits, std::size_t count) {
  std::string data;
  for (; count > 0; --count) data += {static_cast<char>(bits & 255), static_cast<char>(bits >> 8)};
  return data;
}

std::string refusal(const std::string& file) {
  const auto opened = test::opened(file);
  if (!opened) return opened.error().message;
  const auto info = model::describe(*opened);
  if (!info) return info.error().message;
  const auto weights = model::bind(*opened, *info);
  return weights ? "" : weights.error().message;
}

void expect(const std::string& file, const std::string& reason) {
  const std::string said = refusal(file);
  BOOST_TEST(said.find(reason) != std::string::npos, said << " without " << reason);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hostile_converted)

BOOST_AUTO_TEST_CASE(a_good_file_has_the_matrix) {
  const auto file = test::opened(file_of(quantised_model(), good()));
  BOOST_REQUIRE_MESSAGE(file, (file ? "" : file.error().message));
  const auto* matrix = file->find(key);
  BOOST_REQUIRE(matrix);
  BOOST_TEST((matrix->shape == std::vector<std::int64_t>{8, 8} && matrix->type == dtype::f32));
  BOOST_TEST(kernels::to_string(kernels::format_of(matrix->codes)) == "int4");
  BOOST_TEST(!file->find(key + ".int4"));
  BOOST_TEST(!file->find(key + ".scales"));
  BOOST_TEST(file->dtype() == "int4");
  const auto info = model::describe(*file);
  BOOST_REQUIRE(info);
  const auto weights = model::bind(*file, *info);
  BOOST_REQUIRE(weights);
  BOOST_TEST(kernels::check_element_types(*weights, true).has_value());
  const auto refused = kernels::check_element_types(*weights);
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().message.find("are quantised, which this device cannot use") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(metadata_that_does_not_fit) {
  for (const std::string& note : std::vector<std::string>{
           "", "int4", "int4 64 fp32 8x8", "int4 0 fp32 8x8 " + digest, "int4 65 fp32 8x8 " + digest,
           "int4 -64 fp32 8x8 " + digest, "int4 64 int8 8x8 " + digest, "int4 64 fp32 8 " + digest,
           "int4 64 fp32 0x8 " + digest, "int4 64 fp32 8x99999999999999999999 " + digest, "int4 64 fp32 8x8 0123",
           "int4 64 fp32 8x8 " + std::string(32, 'G'), "int4 64 fp32 8x8 " + digest + " more",
           "bf16 64 fp32 8x8 " + digest})
    expect(file_of(quantised_model(), good(note)), "expected FORMAT GROUP TYPE ROWSxCOLUMNS DIGEST");
  expect(file_of(quantised_model(), good("int4 64 fp32 8x9 " + digest)), "does not fit the codes");
  expect(file_of(quantised_model(), good("int4 64 fp32 9223372036854775807x9223372036854775807 " + digest)),
         "does not fit the codes");
  expect(file_of(quantised_model(), good("int8 64 fp32 8x8 " + digest)), "names no codes and scales");
  expect(file_of(quantised_model(), {{"skein.version", "1"}}), "blocks.1.att.key.weight' is missing");
  expect(file_of(quantised_model(), {{"skein.version", "3"}}), "has version '3'");
  expect(file_of(quantised_model(), {{key, "int4 64 fp32 8x8 " + digest}}), "is missing");
  expect(file_of(quantised_model(), {{"skein.version", "1"}, {key, good().back().second}, {key, good().back().second}}),
         "names no codes and scales");
  expect(file_of(quantised_model(), {{"skein.version", "1"}, {"absent", "bf16 0 fp32 8x8 " + digest}}),
         "names no tensor of the file");
  auto wide = quantised_model();
  for (auto& tensor : wide)
    if (tensor.name == key + ".scales") tensor.shape = {8, 2};
  expect(file_of(test::filled(std::move(wide)), good()), "does not fit the scales");
  auto typed = quantised_model();
  for (auto& tensor : typed)
    if (tensor.name == key + ".scales") tensor.type = dtype::f16;
  typed = test::filled(std::move(typed));
  expect(file_of(typed, good()), "does not fit the scales");  // version 1 has none in fp16
  auto later = good();
  later.front().second = "2";
  const auto file = test::opened(file_of(typed, later));
  BOOST_REQUIRE(file);
  BOOST_TEST((file->find(key)->codes.scale_type == dtype::f16));
  auto floats = test::without(test::rwkv7_plan(test::small_dims(), dtype::f32), key);
  floats.push_back({key + ".fp8", dtype::u8, {8, 8}, {}});
  floats.push_back({key + ".scales", dtype::f16, {8, 1}, {}});
  later.back().second = "fp8 64 fp32 8x8 " + digest;
  expect(file_of(test::filled(std::move(floats)), later), "does not fit the scales");  // no block of ggml has them
}

BOOST_AUTO_TEST_CASE(only_matrices_may_be_quantised) {
  const auto noted = [](const std::string& name) {
    return metadata{{"skein.version", "1"}, {name, "int4 64 fp32 8x8 " + digest}};
  };
  for (const std::string name : {"emb.weight", "blocks.1.att.w1", "blocks.1.att.x_r", "ln_out.weight"})
    expect(file_of(quantised_model(name), noted(name)), "names a tensor that cannot be quantised");
  expect(file_of(quantised_model("blocks.1.att.ln_x.weight"), noted("blocks.1.att.ln_x.weight")),
         "blocks.1.att.ln_x.weight' has shape");
}

// NaN among the codes of fp8 is found like NaN among floats, whatever its sign.
BOOST_AUTO_TEST_CASE(codes_of_nan_are_refused) {
  for (const char code : {'\x7e', '\xfe', '\x7f', '\xff'})
    for (const std::size_t at : {0u, 63u}) {
      auto plan = test::without(test::rwkv7_plan(test::small_dims(), dtype::f32), key);
      plan.push_back({key + ".fp8", dtype::u8, {8, 8}, {}});
      plan.push_back({key + ".scales", dtype::bf16, {8, 1}, {}});
      plan = test::filled(std::move(plan));
      for (auto& tensor : plan) {
        if (tensor.name == key + ".fp8") tensor.data.assign(64, '\x08'), tensor.data[at] = code;
        if (tensor.name == key + ".scales") tensor.data = repeated(0x3f80, 8);
      }
      const auto file = test::opened(file_of(plan, good("fp8 64 fp32 8x8 " + digest)));
      BOOST_REQUIRE_MESSAGE(file, (file ? "" : file.error().message));
      BOOST_TEST(model::identify(*file, "").nonfinite == ((code & 0x7f) == 0x7f ? key : ""));
    }
}

// A row of fp8 has one scale, a power of two: kernels may scale a whole sum by the first one.
BOOST_AUTO_TEST_CASE(other_scales_than_powers_of_two_for_rows_are_refused) {
  constexpr std::size_t rows = 3, groups = 2;
  auto model = test::without(test::rwkv7_plan(test::small_dims(), dtype::f32), key);
  model.push_back({key + ".fp8", dtype::u8, {rows, 65}, {}});
  model.push_back({key + ".scales", dtype::bf16, {rows, groups}, {}});
  model = test::filled(std::move(model));
  const auto refused = [&](std::size_t at, std::uint16_t first, std::uint16_t second,
                           const std::string& note = "fp8 64 fp32 3x65 ") {
    for (auto& tensor : model)
      if (tensor.name == key + ".scales")
        tensor.data = repeated(0x3f80, rows * groups).replace(4 * at, 4, repeated(first, 1) + repeated(second, 1));
    const auto file = test::opened(file_of(model, good(note + digest)));
    return file ? "" : file.error().message;
  };
  const auto refused_both = [&](std::size_t at, int bits) {
    return refused(at, static_cast<std::uint16_t>(bits), static_cast<std::uint16_t>(bits));
  };
  for (std::size_t row = 0; row < rows; ++row) {
    for (const int bits : {0x3f80, 0x0080, 0x7f00, 0x0000, 0x7fc0, 0x7f81, 0xffc0})
      BOOST_TEST(refused_both(row, bits) == "", std::hex << bits);
    const std::string reason = "row " + std::to_string(row) + " of tensor '" + key + ".scales' has no scales of fp8";
    for (const int bits : {0x3f81, 0x3fc0, 0x0040, 0x0001, 0x8000, 0xbf80, 0x7f80, 0xff80})
      BOOST_TEST(refused_both(row, bits).find(reason) != std::string::npos, std::hex << bits);
    BOOST_TEST(refused(row, 0x3f80, 0x4000).find(reason) != std::string::npos);
    BOOST_TEST(refused(row, 0x0000, 0x3f80).find(reason) != std::string::npos);
  }
  for (const std::string group : {"32", "128"})
    BOOST_TEST(refused(0, 0x3f80, 0x3f80, "fp8 " + group + " fp32 3x65 ")
                   .find("'" + key + "' has group size " + group + "; accepted for fp8: 64") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
