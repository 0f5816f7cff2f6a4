// Files of rwkv.cpp hold the same model as the original checkpoint, in every version that it writes, and files that lie
// about themselves are refused.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "model/files/checkpoint_limits.hpp"
#include "model/model_info.hpp"
#include "tests/model/gguf_builders.hpp"
#include "tests/model/opened.hpp"
#include "tests/support/oracle.hpp"

namespace skein::test {
namespace {

// Types in these files.
enum : std::uint32_t {
  file_f32 = 0,
  file_f16 = 1,
  file_q4_0 = 2,
  file_q4_1 = 3,
  file_q5_0 = 7,
  file_q5_1 = 8,
  file_q8_0 = 9
};

std::string header(std::uint32_t version, std::uint32_t vocab, std::uint32_t embd, std::uint32_t layers) {
  std::string out = little_endian(0x67676d66, 4);
  for (const std::uint32_t number : {version, vocab, embd, layers, 1u}) out += little_endian(number, 4);
  return out;
}

std::string tensor(std::string_view name, const std::vector<std::int64_t>& shape, std::uint32_t type,
                   std::string_view data) {
  std::string out = little_endian(shape.size(), 4) + little_endian(name.size(), 4) + little_endian(type, 4);
  for (std::size_t d = shape.size(); d-- > 0;) out += little_endian(static_cast<std::uint64_t>(shape[d]), 4);
  return out + std::string(name) + std::string(data);
}

std::string bytes_of_floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

void swap_axes(values_of_tensor& of) {
  const auto rows = static_cast<std::size_t>(of.shape[of.shape.size() - 2]);
  const auto columns = static_cast<std::size_t>(of.shape.back());
  std::vector<float> swapped(of.values.size());
  for (std::size_t i = 0; i < swapped.size(); ++i) {
    const std::size_t part = i / (rows * columns) * rows * columns, in = i % (rows * columns);
    swapped[part + in % columns * rows + in / columns] = of.values[i];
  }
  of.values = std::move(swapped);
  std::swap(of.shape[of.shape.size() - 2], of.shape.back());
}

bool ends_with_one_of(const std::string& name, std::initializer_list<const char*> endings) {
  return std::ranges::any_of(endings, [&](const char* each) { return name.ends_with(each); });
}

/// As rwkv.cpp's converter writes a model of this version, in fp32.
std::string converted(const std::vector<values_of_tensor>& model, int version) {
  const auto emb = std::ranges::find(model, "emb.weight", &values_of_tensor::name);
  std::string out =
      header(101, static_cast<std::uint32_t>(emb->shape[0]), static_cast<std::uint32_t>(emb->shape[1]), 2);
  for (values_of_tensor each : model) {
    const std::string& name = each.name;
    if (version == 7 && name.find(".att.x_") != std::string::npos) {
      const std::string block = name.substr(0, name.find("att."));
      if (!name.ends_with("x_r")) continue;
      values_of_tensor mixes{block + "att.x_rwkvag", {6, 1, each.shape.back()}, {}};
      for (const char letter : std::string_view("rwkvag")) {
        const auto mix = std::ranges::find(model, block + "att.x_" + letter, &values_of_tensor::name);
        mixes.values.insert(mixes.values.end(), mix->values.begin(), mix->values.end());
      }
      each = std::move(mixes);
    } else if (version == 7 && ends_with_one_of(name, {".w1", ".w2", ".a1", ".a2", ".v1", ".v2", ".g1", ".g2"})) {
      swap_axes(each);
    } else if (version == 6 && ends_with_one_of(name, {"_maa_w1", "_maa_w2", "_decay_w1", "_decay_w2"})) {
      swap_axes(each);
    } else if (version >= 5 && version <= 6 && name.ends_with("time_faaaa")) {
      each.shape.push_back(1);
    } else if (version == 6 && name.ends_with("time_decay")) {
      each.shape = {2, static_cast<std::int64_t>(each.values.size()) / 2, 1};
    } else if (version <= 5 && name.ends_with("time_decay")) {
      for (float& value : each.values) value = version == 4 ? -std::exp(value) : std::exp(-std::exp(value));
      if (version == 5) each.shape.push_back(1);
    }
    const bool squeezed = version == 7 || name.find(".time_") != std::string::npos;
    if (squeezed && each.shape.size() == 3 && each.shape[0] == 1 && each.shape[1] == 1)
      each.shape = {each.shape.back()};
    out += tensor(each.name, each.shape, file_f32, bytes_of_floats(each.values));
  }
  return out;
}

std::vector<float> numbers(const tensor_view& view) {
  std::vector<float> out(static_cast<std::size_t>(view.elements()));
  copy_to_f32(view, out);
  return out;
}

void check_is(const std::vector<values_of_tensor>& model, const model::checkpoint& file, float tolerance_of_decays) {
  BOOST_TEST(file.tensors().size() == model.size());
  for (const auto& each : model) {
    BOOST_TEST_CONTEXT(each.name) {
      const auto* const found = file.find(each.name);
      BOOST_REQUIRE(found);
      BOOST_TEST(found->shape == each.shape, boost::test_tools::per_element());
      const auto got = numbers(*found);
      BOOST_REQUIRE(got.size() == each.values.size());
      const float permitted = each.name.ends_with("time_decay") ? tolerance_of_decays : 0;
      float worst = 0;
      for (std::size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(got[i] - each.values[i]));
      BOOST_TEST(worst <= permitted);
    }
  }
  const auto info = model::describe(file);
  BOOST_REQUIRE_MESSAGE(info, (info ? "" : info.error().message));
  BOOST_TEST(!!model::bind(file, *info));
}

std::vector<values_of_tensor> of_oracle(const std::string& name) {
  const auto file = model::checkpoint::open(oracle() / "models" / name);
  BOOST_REQUIRE(file);
  std::vector<values_of_tensor> out;
  for (const auto& tensor : file->tensors()) out.push_back({tensor.name, tensor.view.shape, numbers(tensor.view)});
  return out;
}

const std::string good_rwkv_cpp = header(101, 2, 4, 1) + tensor("emb.weight", {2, 4}, file_f32, std::string(32, '\0')) +
                                  tensor("head.weight", {2, 4}, file_f16, std::string(16, '\0'));
constexpr std::size_t first = 24;                         // description of emb.weight
constexpr std::size_t second = first + 12 + 8 + 10 + 32;  // of head.weight

std::string with(std::size_t offset, std::uint64_t value) {
  return patched(good_rwkv_cpp, offset, little_endian(value, 4));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rwkv_cpp_files)

BOOST_AUTO_TEST_CASE(rwkv7_is_the_original) {
  const auto model = random_rwkv7({2, 8, 2, 4, 32, 16, 3, 2, 5, 6});
  const auto file = opened(converted(model, 7));
  BOOST_REQUIRE_MESSAGE(file, (file ? "" : file.error().message));
  check_is(model, *file, 0);
  BOOST_TEST(file->format() == "ggml");
  BOOST_TEST(file->form() == "rwkv.cpp, RWKV-7");
}

BOOST_AUTO_TEST_CASE(rwkv6_is_the_original) {
  const auto model = small_rwkv6();
  const auto file = opened(converted(model, 6));
  BOOST_REQUIRE_MESSAGE(file, (file ? "" : file.error().message));
  check_is(model, *file, 0);
}

BOOST_AUTO_TEST_CASE(trained_models_are_the_original, *boost::unit_test::precondition(have_oracle)) {
  for (const auto& [name, version] : {std::pair{"tiny-4v0.safetensors", 4},
                                      {"tiny-5v2.safetensors", 5},
                                      {"tiny-6v0-fp16.pth", 6},
                                      {"tiny-7v0.safetensors", 7}}) {
    BOOST_TEST_CONTEXT(name) {
      const auto model = of_oracle(name);
      const auto file = opened(converted(model, version));
      BOOST_REQUIRE_MESSAGE(file, (file ? "" : file.error().message));
      check_is(model, *file, version <= 5 ? 2e-3f : 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(quantised_matrices_are_decoded) {
  const auto model = random_rwkv7({1, 32, 1, 32, 64, 4, 1, 1, 1, 1});
  constexpr std::pair<std::uint32_t, std::uint32_t> types[] = {{file_q4_0, ggml_q4_0},
                                                               {file_q4_1, ggml_q4_1},
                                                               {file_q5_0, ggml_q5_0},
                                                               {file_q5_1, ggml_q5_1},
                                                               {file_q8_0, ggml_q8_0}};
  for (const auto& [type, ggml] : types) {
    const auto block = *std::ranges::find(ggml_blocks(), ggml, &ggml_block::type);
    BOOST_TEST_CONTEXT(block.name) {
      const std::string blocks = random_blocks(block, 32, type);
      std::string bytes = converted(model, 7);
      const std::string before = tensor("blocks.0.att.key.weight", {32, 32}, file_f32, "");
      const std::size_t at = bytes.find(before);
      BOOST_REQUIRE(at != std::string::npos);
      bytes.replace(at, before.size() + 4096, tensor("blocks.0.att.key.weight", {32, 32}, type, blocks));
      const auto file = opened(bytes);
      BOOST_REQUIRE_MESSAGE(file, (file ? "" : file.error().message));
      auto expected = block_values(block, blocks);
      for (float& value : expected) value = f16_to_f32(f32_to_f16(value));
      BOOST_TEST((numbers(*file->find("blocks.0.att.key.weight")) == expected));

      const auto old = opened(patched(bytes, 4, little_endian(100, 4)));
      BOOST_REQUIRE(!old);
      BOOST_TEST((old.error().kind == error_kind::unsupported));
      BOOST_TEST(old.error().message.find("version 100 with type") != std::string::npos);
    }
  }
  BOOST_TEST(!!opened(patched(converted(model, 7), 4, little_endian(100, 4))));
}

BOOST_AUTO_TEST_CASE(faulty_files_are_refused) {
  BOOST_REQUIRE(opened(good_rwkv_cpp));
  check_refused({
      {"only the magic number", good_rwkv_cpp.substr(0, 4), "ends inside the rwkv.cpp header"},
      {"version 99", with(4, 99), "version 99 is not supported; accepted: 100, 101"},
      {"no tensors", good_rwkv_cpp.substr(0, 24), "no tensors"},
      {"no dimensions", with(first, 0), "has 0 dimensions"},
      {"2^32 - 1 dimensions", with(first, ~0u), "dimensions; accepted: 1 to 8"},
      {"empty name", with(first + 4, 0), "name is empty or too long"},
      {"name of 2^32 - 1 bytes", with(first + 4, ~0u), "name is empty or too long"},
      {"name beyond the file", with(second + 4, 500), "ends inside the description"},
      {"name not UTF-8", patched(good_rwkv_cpp, first + 20, "\xff"), "not UTF-8"},
      {"type 4", with(first + 8, 4), "type 4 is not supported; accepted: F32"},
      {"type 2^32 - 1", with(first + 8, ~0u), "is not supported"},
      {"row shorter than a block", with(first + 8, file_q8_0), "a row of 4 values"},
      {"dimension 0", with(first + 12, 0), "a dimension is 0"},
      {"dimensions 2^32 - 1", patched(good_rwkv_cpp, first + 12, std::string(8, '\xff')), "overflows"},
      {"dimension 2^31", with(first + 12, 1u << 31), "extend beyond the file"},
      {"last tensor too large", with(second + 12, 5), "extend beyond the file"},
      {"bytes after the last tensor", good_rwkv_cpp + "x", "ends inside the description"},
      {"name twice", good_rwkv_cpp + tensor("emb.weight", {1}, file_f32, "1234"), "'emb.weight' appears twice"},
      {"another number of tokens", with(8, 3), "contradicts the header, which has 3 tokens"},
      {"another width", with(12, 5), "contradicts the header, which has 2 tokens and a width of 5"},
      {"five mixes",
       good_rwkv_cpp + tensor("blocks.0.att.k_k", {4}, file_f32, std::string(16, '\0')) +
           tensor("blocks.0.att.x_rwkvag", {5, 1, 4}, file_f32, std::string(80, '\0')),
       "has not 6 rows"},
  });
}

BOOST_AUTO_TEST_CASE(every_cut_inside_a_tensor_is_refused) {
  const std::string file = converted(random_rwkv7({1, 4, 1, 4, 8, 3, 1, 1, 1, 1}), 7);
  std::size_t refused = 0;
  for (std::size_t length = 1; length < file.size(); ++length) {
    const auto cut = opened(file.substr(0, length));
    if (cut) BOOST_TEST(!model::describe(*cut));  // between two tensors: one is missing
    refused += cut ? 0u : 1u;
  }
  BOOST_TEST(refused > file.size() - 60);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::test
