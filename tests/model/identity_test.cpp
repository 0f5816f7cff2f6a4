// A model's identity follows its tensors and vocabulary and nothing else: not the container, the order in the file, or
// how the elements lie in it.
#include <bit>
#include <boost/test/unit_test.hpp>

#include "model/model_info.hpp"
#include "tests/model/checkpoint_builders.hpp"
#include "tests/model/opened.hpp"

namespace skein::test {
namespace {

std::string identity_of(const std::string& bytes, std::string_view vocabulary = "v") {
  const auto file = opened(bytes);
  BOOST_REQUIRE(file);
  return model::identity(*file, vocabulary);
}

/// A 100 x 70 matrix of bf16, more than one buffer of the hash.
std::string matrix() { return filled({{"a", dtype::bf16, {100, 70}, {}}})[0].data; }

std::string matrix_pth(const std::string& data, const std::vector<std::int64_t>& stride) {
  using namespace pickled;
  const auto a = tensor(storage("BFloat16Storage", "0", 7000), 0, {100, 70}, stride);
  return pth_archive(whole(dict(text("a") + a)), {{"0", data}}).file();
}

std::string transposed(const std::string& row_major) {
  std::string out(row_major.size(), '\0');
  for (std::size_t row = 0; row < 100; ++row)
    for (std::size_t column = 0; column < 70; ++column)
      row_major.copy(&out[2 * (column * 100 + row)], 2, 2 * (row * 70 + column));
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(identity)

BOOST_AUTO_TEST_CASE(it_is_the_same_in_every_container_and_order) {
  auto plan = filled(rwkv7_plan(small_dims(), dtype::f16));
  const std::string expected = identity_of(safetensors_of(plan));
  BOOST_TEST(expected.size() == 32u);
  BOOST_TEST(expected.find_first_not_of("0123456789abcdef") == std::string::npos);
  BOOST_TEST(identity_of(pth_of(plan)) == expected);
  std::ranges::reverse(plan);
  BOOST_TEST(identity_of(safetensors_of(plan)) == expected);
  BOOST_TEST(identity_of(pth_of(plan)) == expected);
}

BOOST_AUTO_TEST_CASE(it_is_the_same_for_every_stride) {
  const std::string data = matrix();
  BOOST_TEST(identity_of(matrix_pth(data, {70, 1})) == identity_of(matrix_pth(transposed(data), {1, 100})));
}

BOOST_AUTO_TEST_CASE(it_changes_with_everything_that_makes_a_model) {
  const auto plan = filled(rwkv7_plan(small_dims(), dtype::f16));
  const std::string base = identity_of(safetensors_of(plan));
  BOOST_TEST(identity_of(safetensors_of(plan), "another vocabulary") != base);
  auto changed = plan;
  changed.back().data.back() ^= 1;
  BOOST_TEST(identity_of(safetensors_of(changed)) != base);
  changed = plan;
  changed.back().name += "x";
  BOOST_TEST(identity_of(safetensors_of(changed)) != base);
  changed = plan;
  changed.back().type = dtype::bf16;
  BOOST_TEST(identity_of(safetensors_of(changed)) != base);
  changed = plan;
  std::ranges::reverse(changed.back().shape);
  BOOST_TEST(identity_of(safetensors_of(changed)) != base);
  changed = plan;
  changed.pop_back();
  BOOST_TEST(identity_of(safetensors_of(changed)) != base);
}

/// A tensor of these values in a type that holds them all.
tensor_plan values_in(dtype type, const std::vector<float>& values) {
  std::string data;
  for (const float value : values)
    data += type == dtype::f32    ? little_endian(std::bit_cast<std::uint32_t>(value), 4)
            : type == dtype::bf16 ? little_endian(f32_to_bf16(value), 2)
                                  : little_endian(f32_to_f16(value), 2);
  return {"a", type, {static_cast<std::int64_t>(values.size())}, data};
}

BOOST_AUTO_TEST_CASE(it_is_the_same_in_every_type_that_has_the_values) {
  std::vector<float> coarse, fine;  // with 7 and with 10 bits behind the first; more than one piece
  for (int i = 0; i < 50000; ++i) {
    coarse.push_back(static_cast<float>(i % 251 - 125) / 64);
    fine.push_back(coarse.back());
  }
  fine[40000] = 1 + 1.0f / 1024;
  auto finest = fine;
  finest[40001] = 1 + 1.0f / 4096;
  const auto of = [](dtype type, const std::vector<float>& values) {
    return identity_of(safetensors_of({values_in(type, values)}));
  };
  for (const dtype type : {dtype::bf16, dtype::f16}) BOOST_TEST(of(type, coarse) == of(dtype::f32, coarse));
  BOOST_TEST(of(dtype::f16, fine) == of(dtype::f32, fine));
  BOOST_TEST(of(dtype::f16, fine) != of(dtype::f16, coarse));
  BOOST_TEST(of(dtype::f32, finest) != of(dtype::f32, fine));
  auto other = coarse;
  other[7] = -0.0f;
  coarse[7] = 0.0f;
  BOOST_TEST(of(dtype::f32, other) != of(dtype::f32, coarse));
  const auto former = [](dtype type, const std::vector<float>& values) {
    return model::identify(*opened(safetensors_of({values_in(type, values)})), "v").former_identity;
  };
  BOOST_TEST(former(dtype::bf16, coarse) != former(dtype::f32, coarse));
}

// Among them subnormal numbers of fp16, zeros of both signs and infinity; not NaN, whose bits change when rounded.
BOOST_AUTO_TEST_CASE(every_number_of_fp16_counts_as_the_same_number_of_bf16_or_fp32) {
  for (const std::uint32_t low_bits : {0u, 7u}) {
    std::vector<float> numbers;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
      if ((bits & 7u & ~low_bits) == 0 && (bits & 0x7fffu) <= 0x7c00u)
        numbers.push_back(f16_to_f32(static_cast<std::uint16_t>(bits)));
    const auto of = [&](dtype type) { return identity_of(safetensors_of({values_in(type, numbers)})); };
    BOOST_TEST(of(dtype::f16) == of(dtype::f32));
    if (low_bits == 0) BOOST_TEST(of(dtype::f16) == of(dtype::bf16));
  }
}

BOOST_AUTO_TEST_CASE(tensors_that_nothing_uses_do_not_count) {
  auto plan = filled(rwkv7_plan(small_dims(), dtype::bf16));
  const auto with = opened(safetensors_of(plan));
  const std::size_t all = plan.size();
  std::erase_if(plan, [](const tensor_plan& tensor) {
    return tensor.name.starts_with("blocks.0.att.v") && tensor.name.size() == 15;
  });
  plan.push_back({"blocks.0.att.v0", dtype::bf16, {1}, "ab"});
  const auto other = opened(safetensors_of(plan));
  plan.pop_back();
  BOOST_TEST(plan.size() <= all);
  const auto without = opened(safetensors_of(plan));
  BOOST_TEST(model::identity(*with, "v") == model::identity(*without, "v"));
  BOOST_TEST(model::identity(*other, "v") == model::identity(*without, "v"));
  BOOST_TEST(model::identify(*other, "v").former_identity != model::identify(*without, "v").former_identity);
  BOOST_TEST(model::identify(*without, "v").former_identity == model::identity(*without, "v"));
}

BOOST_AUTO_TEST_CASE(a_tensor_with_nan_or_infinity_is_named) {
  const struct {
    dtype type;
    std::uint64_t largest, infinity, nan;
  } cases[] = {{dtype::bf16, 0x7f7f, 0xff80, 0x7fc0},
               {dtype::f16, 0x7bff, 0xfc00, 0x7e00},
               {dtype::f32, 0x7f7f'ffff, 0xff80'0000, 0x7f80'0001},
               {dtype::f64, 0x7fef'ffff'ffff'ffff, 0xfff0'0000'0000'0000, 0x7ff0'0000'0000'0001}};
  for (const auto& c : cases) {
    const int bytes = static_cast<int>(dtype_bytes(c.type));
    for (const std::size_t at : {0, 1, 12345, 40002}) {  // in the first and the last word, and in a later piece
      const auto found_with = [&](std::uint64_t value) {
        std::string data;
        for (std::size_t i = 0; i < 40003; ++i) data += little_endian(i == at ? value : c.largest, bytes);
        const auto file = opened(safetensors_of({{"a", c.type, {1}, little_endian(0, bytes)},
                                                 {"b", c.type, {40003}, data},
                                                 {"c", dtype::i32, {1}, little_endian(0xffff'ffff, 4)}}));
        BOOST_REQUIRE(file);
        return model::identify(*file, "v").nonfinite;
      };
      BOOST_TEST_CONTEXT(to_string(c.type) << " at " << at) {
        BOOST_TEST(found_with(c.largest) == "");
        BOOST_TEST(found_with(c.infinity) == "b");
        BOOST_TEST(found_with(c.nan) == "b");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(nan_is_found_in_every_stride_and_ignored_where_nothing_reads_it) {
  using namespace pickled;
  const std::string data = patched(matrix(), 2 * 6999, little_endian(0x7fc0, 2));
  for (const auto& stride : {std::vector<std::int64_t>{70, 1}, std::vector<std::int64_t>{1, 100}})
    BOOST_TEST(model::identify(opened(matrix_pth(data, stride)).value(), "").nonfinite == "a");
  const auto file = opened(safetensors_of({{"blocks.0.att.v0", dtype::bf16, {1}, little_endian(0x7fc0, 2)}}));
  BOOST_TEST(model::identify(*file, "").nonfinite == "");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::test
