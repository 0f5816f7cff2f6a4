// Shows that what arrives on the device is what the file holds, rounded and padded, whatever the sizes, types and
// strides of its tensors; with pieces so small that the ring of pinned memory goes round many times.
#include "kernels/gpu/model/upload/weight_upload.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <new>
#include <utility>

#include "kernels/gpu/model/upload/encode_panel.hpp"
#include "kernels/gpu/model/upload/encode_row.hpp"
#include "kernels/weights/file_blocks.hpp"
#include "tests/kernels/gpu/device_values.hpp"
#include "tests/support/failing_new.hpp"

using namespace skein;
using namespace skein::test;
using kernels::weight_element, kernels::weight_format;
using kernels::gpu::weight_upload;

namespace {

struct placed {
  std::vector<std::byte> source;
  tensor_view view;
  element type;
  std::uint32_t height, width;
  std::vector<float> expected;  // [height, width]
};

placed random_tensor(random_numbers& random) {
  constexpr dtype sources[] = {dtype::f32, dtype::bf16, dtype::f16};
  constexpr element targets[] = {element::f32, element::f16, element::bf16};
  const std::uint32_t rows = 1 + random.below(70), columns = 1 + random.below(60);
  placed p;
  p.type = targets[random.below(3)];
  const dtype source = sources[random.below(3)];
  p.source = encode(random_values(random, std::size_t{rows} * columns), source);
  p.view = view_of(p.source, source, {rows, columns});
  if (random.below(3) == 0) {
    p.view.shape = {columns, rows};
    p.view.stride = {1, columns};
  }
  p.height = static_cast<std::uint32_t>(p.view.shape[0]) + random.below(3) * 20;
  p.width = static_cast<std::uint32_t>(p.view.shape[1]) + random.below(3);
  std::vector<float> values(std::size_t{rows} * columns);
  copy_to_f32(p.view, values);
  values = rounded(values, p.type);
  p.expected.assign(std::size_t{p.height} * p.width, 0.0f);
  for (std::int64_t r = 0; r < p.view.shape[0]; ++r)
    std::copy_n(values.begin() + r * p.view.shape[1], p.view.shape[1], p.expected.begin() + r * p.width);
  return p;
}

struct seen {
  std::uint64_t last = 0, total = 0;
  bool rising = true;
  static void report(void* context, std::uint64_t done, std::uint64_t total) {
    auto& s = *static_cast<seen*>(context);
    s.rising = s.rising && done >= s.last;
    s.last = done, s.total = total;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_arrives_is_what_was_sent) {
  random_numbers random(7);
  // The smaller pieces have no room for most rows.
  for (const auto& [threads, piece_bytes] :
       std::initializer_list<std::pair<std::uint32_t, std::size_t>>{{1, 512}, {2, 512}, {5, 512}, {1, 16}, {5, 64}}) {
    std::vector<placed> tensors;
    std::vector<device_values> places;
    std::uint64_t total = 0;
    for (int i = 0; i < 40; ++i) {
      tensors.push_back(random_tensor(random));
      const auto& p = tensors.back();
      places.emplace_back(std::vector<float>(p.expected.size(), 3.0f), p.type);
      total += p.source.size();
    }
    seen progress;
    weight_upload upload({&seen::report, &progress}, total, {.threads = threads, .piece_bytes = piece_bytes});
    for (std::size_t i = 0; i < tensors.size(); ++i)
      upload.add(static_cast<std::byte*>(places[i].data()), tensors[i].view, tensors[i].type, tensors[i].height,
                 tensors[i].width);
    upload.run();
    const kernels::gpu::stream in;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      BOOST_TEST_CONTEXT("tensor " << i << ", " << threads << " threads, pieces of " << piece_bytes) {
        BOOST_TEST((places[i].read(in) == tensors[i].expected));
      }
    BOOST_TEST(progress.rising);
    BOOST_TEST(progress.last == total);
    BOOST_TEST(progress.total == total);
  }
}

BOOST_AUTO_TEST_CASE(what_is_beyond_an_fp16_becomes_its_largest_value) {
  const std::vector<float> values{65536, -1e9f, 1, -65536};
  const auto bytes = encode(values, dtype::f32);
  const device_values place(std::vector<float>(values.size()), element::f16);
  weight_upload upload({}, bytes.size());
  upload.add(static_cast<std::byte*>(place.data()), view_of(bytes, dtype::f32, {2, 2}), element::f16, 2, 2);
  upload.run();
  const kernels::gpu::stream in;
  BOOST_TEST((place.read(in) == std::vector<float>{65504, -65504, 1, -65504}));
}

BOOST_AUTO_TEST_CASE(groups_whose_scale_is_too_large_are_counted) {
  const auto count = [](float largest, element type) {
    const std::vector<float> row(64, largest);
    const auto bytes = encode(row, dtype::f32);
    const weight_format format{weight_element::int8, 32};
    std::vector<std::byte> panel(kernels::gpu::coded_bytes(format, 16, 64));
    std::vector<float> scratch;
    return kernels::gpu::encode_panel(view_of(bytes, dtype::f32, {1, 64}), type, format, 64, panel.data(), scratch);
  };
  BOOST_TEST(count(127 * 145.0f, element::f16) == 0u);
  BOOST_TEST(count(127 * 147.0f, element::f16) == 2u);
  BOOST_TEST(count(127 * 16384.0f, element::bf16) == 0u);
  BOOST_TEST(count(127 * 17000.0f, element::bf16) == 2u);
  BOOST_TEST(count(127 * 17000.0f, element::f32) == 0u);
}

// Which a checkpoint in bf16 meets on a GPU without bf16, so it is said.
BOOST_AUTO_TEST_CASE(a_bf16_beyond_fp16_is_refused) {
  const auto outcome = [](const std::vector<float>& values, bool in_turn) {
    const auto bytes = encode(values, dtype::bf16);
    tensor_view view = view_of(bytes, dtype::bf16, {2, 2});
    if (!in_turn) view.stride = {1, 2};
    const device_values place(std::vector<float>(values.size()), element::f16);
    weight_upload upload({}, bytes.size());
    upload.add(static_cast<std::byte*>(place.data()), view, element::f16, 2, 2);
    try {
      upload.run();
    } catch (const kernels::gpu::device_failure& failure) {
      BOOST_TEST((failure.why().kind == error_kind::unsupported));
      return failure.why().message;
    }
    return std::string();
  };
  for (const bool in_turn : {true, false}) {
    BOOST_TEST(outcome({65280, -65280, 1, 0}, in_turn).empty());
    BOOST_TEST(outcome({65536, -65536, 1, 0}, in_turn).starts_with("2 weights"));
    BOOST_TEST(outcome({0, std::numeric_limits<float>::infinity(), 1, 0}, in_turn).starts_with("1 weights"));
  }
}

BOOST_AUTO_TEST_CASE(fp8_rows_arrive_with_their_scales) {
  constexpr std::uint32_t outputs = 70, inputs = 200, height = 128, width = 256;
  random_numbers random(9);
  for (const auto& [threads, piece_bytes] :
       std::initializer_list<std::pair<std::uint32_t, std::size_t>>{{1, 1024}, {3, 1024}, {3, 200}}) {
    const auto bytes = encode(random_values(random, outputs * inputs), dtype::f32);
    const tensor_view view = view_of(bytes, dtype::f32, {outputs, inputs});
    const device_values codes(std::vector<float>(height * width / 4, 3.0f), element::f32),
        scales(std::vector<float>(outputs, 3.0f), element::f32);
    weight_upload upload({}, bytes.size(), {.threads = threads, .piece_bytes = piece_bytes});
    upload.add_rows(static_cast<std::byte*>(codes.data()), static_cast<std::byte*>(scales.data()), view, height, width);
    upload.run();
    const kernels::gpu::stream in;
    kernels::gpu::pinned_buffer<std::byte> arrived(std::size_t{height} * width);
    require(kernels::gpu::copy_to_host(arrived.data(), codes.data(), arrived.size(), in));
    const std::vector<float> of_rows = scales.read(in);
    std::vector<std::byte> expected(width);
    std::vector<float> scratch;
    for (std::uint32_t o = 0; o < height; ++o) {
      std::ranges::fill(expected, std::byte{});
      if (o < outputs) BOOST_REQUIRE(kernels::gpu::encode_fp8_row(view, o, expected, scratch) == of_rows[o]);
      BOOST_REQUIRE(std::ranges::equal(arrived.all().subspan(std::size_t{o} * width, width), expected));
    }
  }
}

// As those of a feed-forward layer of 254,208 inputs are beside the pieces of the program.
BOOST_AUTO_TEST_CASE(panels_longer_than_a_piece_arrive) {
  using namespace kernels::gpu;
  constexpr std::uint32_t outputs = 150, inputs = 200, height = 192, width = 256;
  constexpr weight_format format{weight_element::int8, 64};
  random_numbers random(15);
  const auto bytes = encode(random_values(random, outputs * inputs), dtype::f32);
  const tensor_view view = view_of(bytes, dtype::f32, {outputs, inputs});
  const std::size_t panel_bytes = coded_bytes(format, panel_outputs, width);
  const std::size_t total = height / panel_outputs * panel_bytes;
  const device_values place(std::vector<float>(total / sizeof(float), 3.0f), element::f32);
  weight_upload upload({}, bytes.size(), {.threads = 3, .piece_bytes = panel_bytes - 1});
  upload.add_coded(static_cast<std::byte*>(place.data()), view, element::bf16, format, height, width);
  upload.run();
  const stream in;
  pinned_buffer<std::byte> arrived(total);
  require(copy_to_host(arrived.data(), place.data(), total, in));
  require(in.synchronize());
  std::vector<std::byte> expected(panel_bytes);
  std::vector<float> scratch;
  for (std::uint32_t first = 0; first < height; first += panel_outputs) {
    const std::int64_t rows = std::clamp<std::int64_t>(std::int64_t{outputs} - first, 0, panel_outputs);
    BOOST_REQUIRE(encode_panel(kernels::rows_of(view, first, rows), element::bf16, format, width, expected.data(),
                               scratch) == 0u);
    BOOST_TEST(std::ranges::equal(arrived.all().subspan(first / panel_outputs * panel_bytes, panel_bytes), expected));
  }
}

BOOST_AUTO_TEST_CASE(a_thread_that_finds_no_memory_ends_the_upload) {
  constexpr std::uint32_t rows = 40, columns = 20'000;
  const std::vector<std::byte> bytes(std::size_t{rows} * columns * sizeof(float));
  const device_values place(std::vector<float>(std::size_t{rows} * columns), element::bf16);
  weight_upload upload({}, bytes.size(), {.threads = 3, .piece_bytes = 1 << 16});
  upload.add(static_cast<std::byte*>(place.data()), view_of(bytes, dtype::f32, {rows, columns}), element::bf16, rows,
             columns);
  {
    const failing_new_elsewhere lack(columns * sizeof(float));  // a row as numbers of 32 bits
    BOOST_CHECK_THROW(upload.run(), std::bad_alloc);
  }
}

BOOST_AUTO_TEST_CASE(a_scale_that_cannot_be_decoded_is_refused) {
  const std::vector<float> row(64, 127 * 17000.0f);
  const auto bytes = encode(row, dtype::f32);
  const weight_format format{weight_element::int4, 64};
  const kernels::gpu::device_buffer<std::byte> place(kernels::gpu::coded_bytes(format, 64, 64));
  weight_upload upload({}, bytes.size());
  upload.add_coded(place.data(), view_of(bytes, dtype::f32, {1, 64}), element::bf16, format, 64, 64);
  BOOST_CHECK_EXCEPTION(upload.run(), kernels::gpu::device_failure, [](const kernels::gpu::device_failure& failure) {
    return failure.why().message == "1 groups of quantised weights have a scale above 16384";
  });
}

BOOST_AUTO_TEST_CASE(nothing_to_send_is_nothing_to_wait_for) {
  weight_upload upload({}, 0);
  upload.run();
}

/// Code and scale of one weight in an encoded panel.
std::pair<int, std::uint16_t> in_panel(weight_format format, const std::vector<std::byte>& panel, std::uint32_t output,
                                       std::uint32_t input) {
  using namespace kernels::gpu;
  const std::byte* const block = panel.data() + std::size_t{input / block_inputs} * block_bytes(format);
  const std::uint32_t within = input % block_inputs;
  const code_place at = place_of_code(format.element, output, within);
  int code = std::to_integer<int>(block[at.byte]);
  if (format.element == weight_element::int8) {
    code -= 128;
  } else {
    code = (code >> at.bit & 15) - 8;
  }
  std::uint16_t scale;
  std::memcpy(&scale, block + place_of_scale(format, output, within), sizeof scale);
  return {code, scale};
}

BOOST_AUTO_TEST_CASE(codes_and_scales_of_a_file_are_kept) {
  constexpr std::uint32_t outputs = 11, inputs = 96, width = 128;
  random_numbers random(3);
  for (const code_type type : {code_type::int8, code_type::int4}) {
    const weight_format format{type == code_type::int8 ? weight_element::int8 : weight_element::int4, 32};
    std::vector<std::byte> elements(outputs * inputs * 2),
        blocks(outputs * inputs / 32 * (type == code_type::int8 ? 34 : 18));
    tensor_view view = view_of(elements, dtype::f16, {outputs, inputs});
    view.blocks = {type, blocks.data()};
    for (std::size_t at = 0; at < blocks.size(); at += view.blocks.bytes()) {
      const std::uint16_t scale = f32_to_f16(random.value() / 100);
      std::memcpy(&blocks[at], &scale, sizeof scale);
      for (std::size_t i = 2; i < view.blocks.bytes(); ++i) blocks[at + i] = static_cast<std::byte>(random.below(256));
    }
    for (const element to : {element::f16, element::bf16}) {
      std::vector<std::byte> panel(kernels::gpu::coded_bytes(format, kernels::gpu::panel_outputs, width));
      std::vector<float> scratch;
      BOOST_TEST(kernels::gpu::encode_panel(view, to, format, width, panel.data(), scratch) == 0u);
      std::size_t wrong = 0;
      for (std::uint32_t o = 0; o < outputs; ++o) {
        for (std::uint32_t i = 0; i < inputs; ++i) {
          const std::byte* const block = &blocks[(o * inputs + i) / 32 * view.blocks.bytes()];
          std::uint16_t stored;
          std::memcpy(&stored, block, sizeof stored);
          const auto byte = std::to_integer<std::uint8_t>(block[2 + (type == code_type::int8 ? i % 32 : i % 16)]);
          const int code = type == code_type::int8 ? static_cast<std::int8_t>(byte)
                           : i % 32 < 16           ? (byte & 15) - 8
                                                   : (byte >> 4) - 8;
          const auto found = in_panel(format, panel, o, i);
          const float scale = f16_to_f32(stored);
          wrong += found.first != code;
          wrong += to == element::f16 ? f16_to_f32(found.second) != 256 * scale : found.second != f32_to_bf16(scale);
        }
      }
      BOOST_TEST(wrong == 0u);
      for (const std::uint32_t o : {0u, outputs})  // what the file does not have
        BOOST_TEST(in_panel(format, panel, o, o == 0 ? inputs : 0).second == 0);
    }
  }
}

namespace {

/// A matrix as `skein convert` stores it.
struct stored_codes {
  std::vector<std::byte> codes, scales;
  tensor_view view;

  stored_codes(const tensor_view& from, weight_format format) {
    const auto rows = static_cast<std::size_t>(from.shape[0]), columns = static_cast<std::size_t>(from.shape[1]);
    std::vector<float> values(rows * columns);
    copy_to_f32(from, values);
    view = from;
    view.stride = {from.shape[1], 1};
    view.codes.type = format.element == weight_element::int8   ? code_type::int8
                      : format.element == weight_element::fp8  ? code_type::fp8
                      : format.element == weight_element::int4 ? code_type::int4
                                                               : code_type::nf4;
    view.codes.group = format.group;
    const std::size_t row_bytes = view.codes.row_bytes(columns);
    codes.assign(rows * row_bytes, std::byte{});
    for (std::size_t r = 0; r < rows; ++r) {
      const std::uint16_t of_row = row_scale(format.element, std::span(values).subspan(r * columns, columns));
      for (std::size_t begin = 0; begin < columns; begin += format.group) {
        std::array<std::uint8_t, 128> of_group;
        const std::size_t count = std::min<std::size_t>(format.group, columns - begin);
        const std::uint16_t scale =
            quantise_group(format.element, std::span(values).subspan(r * columns + begin, count),
                           std::span(of_group).first(count), of_row);
        for (const int shift : {0, 8}) scales.push_back(static_cast<std::byte>(scale >> shift & 255));
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t at = begin + i;
          if (kernels::code_bits(format.element) == 8)
            codes[r * row_bytes + at] = static_cast<std::byte>(of_group[i]);
          else
            codes[r * row_bytes + at / 2] |= static_cast<std::byte>(of_group[i] << (at % 2 * 4));
        }
      }
    }
    view.data = codes.data(), view.codes.scales = scales.data();
  }
};

}  // namespace

// Whatever the height and width, also of a group that the row does not fill: its weights beyond the row meet inputs
// that are 0, so their codes do not count.
BOOST_AUTO_TEST_CASE(codes_of_a_file_become_the_panels_of_its_original) {
  random_numbers random(11);
  for (const auto code : {weight_element::int8, weight_element::fp8, weight_element::int4, weight_element::nf4})
    for (const std::uint16_t group : std::initializer_list<std::uint16_t>{32, 64, 128})
      for (const element type : {element::f16, element::bf16}) {
        const weight_format format{code, group};
        const std::uint32_t rows = 1 + random.below(40), columns = 128 * (1 + random.below(3));
        const auto source = encode(random_values(random, std::size_t{rows} * columns), dtype::bf16);
        const tensor_view original = view_of(source, dtype::bf16, {rows, columns});
        const stored_codes stored(original, format);
        for (std::uint32_t first = 0; first < rows; first += 16) {
          const std::int64_t count = std::min(16u, rows - first);
          std::vector<std::byte> expected(kernels::gpu::coded_bytes(format, 16, columns)), got(expected.size());
          std::vector<float> scratch;
          BOOST_TEST(kernels::gpu::encode_panel(kernels::rows_of(original, first, count), type, format, columns,
                                                expected.data(), scratch) == 0u);
          BOOST_TEST(kernels::gpu::encode_panel(kernels::rows_of(stored.view, first, count), type, format, columns,
                                                got.data(), scratch) == 0u);
          BOOST_TEST((got == expected));
        }
      }
}

// Of the original and of the file of its conversion; also where inputs pad the row. A code of NaN, which only another
// program writes, makes the row NaN.
BOOST_AUTO_TEST_CASE(rows_of_fp8_have_one_scale) {
  constexpr std::uint32_t rows = 7, columns = 100, width = 256;
  constexpr weight_format format{weight_element::fp8, 64};
  random_numbers random(14);
  std::vector<float> values = random_values(random, rows * columns);
  const auto row = [&](std::uint32_t r) { return std::span(values).subspan(r * columns, columns); };
  std::ranges::fill(row(1), 0.0f);
  for (float& w : row(2)) w *= 1e-36f;
  row(3)[99] = 448 * 32;  // the largest for fp16
  row(4)[99] = std::numeric_limits<float>::infinity();
  std::ranges::fill(row(5).first(64), 0.0f);
  const auto source = encode(values, dtype::f32);
  const tensor_view original = view_of(source, dtype::f32, {rows, columns});
  stored_codes stored(original, format);
  std::vector<float> expected;
  for (std::uint32_t r = 0; r < rows; ++r) expected.push_back(bf16_to_f32(row_scale(format.element, row(r))));
  BOOST_TEST(expected[2] == 0x1p-116f);
  const auto check = [&](const tensor_view& from, element type) {
    std::vector<std::byte> panel(kernels::gpu::coded_bytes(format, kernels::gpu::panel_outputs, width));
    std::vector<float> scratch;
    BOOST_TEST(kernels::gpu::encode_panel(from, type, format, width, panel.data(), scratch) == 0u);
    std::size_t wrong = 0;
    for (std::uint32_t r = 0; r < kernels::gpu::panel_outputs; ++r)
      for (std::uint32_t i = 0; i < width; ++i) {
        const std::uint16_t bits = in_panel(format, panel, r, i).second;
        const float scale = type == element::f16 ? f16_to_f32(bits) / 256 : bf16_to_f32(bits);
        const float of_row = r >= rows ? 0 : type == element::f16 && r == 2 ? 0 : expected[r];
        wrong += std::isnan(of_row) ? !std::isnan(scale) : scale != of_row;
      }
    BOOST_TEST(wrong == 0u);
    return panel;
  };
  for (const element type : {element::f16, element::bf16})
    BOOST_TEST((check(stored.view, type) == check(original, type)));
  stored.codes[6 * columns + 99] = std::byte{0xff};
  expected[6] = std::numeric_limits<float>::quiet_NaN();
  for (const element type : {element::f16, element::bf16}) check(stored.view, type);
}

// fp16 has scales that bf16 would round.
BOOST_AUTO_TEST_CASE(scales_in_fp16_are_kept) {
  random_numbers random(13);
  const weight_format format{weight_element::int8, 32};
  const auto source = encode(random_values(random, 4 * 128), dtype::f32);
  stored_codes stored(view_of(source, dtype::f32, {4, 128}), format);
  stored.view.codes.scale_type = dtype::f16;
  for (std::size_t i = 0; i < 16; ++i) {
    const auto scale = static_cast<std::uint16_t>(0x2c01 + 5 * i);  // about 0.0625
    std::memcpy(&stored.scales[2 * i], &scale, sizeof scale);
  }
  std::vector<std::byte> panel(kernels::gpu::coded_bytes(format, kernels::gpu::panel_outputs, 128));
  std::vector<float> scratch;
  BOOST_TEST(kernels::gpu::encode_panel(stored.view, element::f16, format, 128, panel.data(), scratch) == 0u);
  for (std::uint32_t i = 0; i < 16; ++i)
    BOOST_TEST(f16_to_f32(in_panel(format, panel, i / 4, 32 * (i % 4)).second) ==
               256 * f16_to_f32(static_cast<std::uint16_t>(0x2c01 + 5 * i)));
}

BOOST_AUTO_TEST_CASE(a_row_of_codes_may_end_inside_a_group) {
  random_numbers random(12);
  const weight_format format{weight_element::int4, 64};
  const auto source = encode(random_values(random, 3 * 101), dtype::f32);
  const stored_codes stored(view_of(source, dtype::f32, {3, 101}), format);
  std::array<std::uint8_t, 64> codes;
  static_cast<void>(kernels::read_group(stored.view, 2, 64, codes));
  for (std::size_t i = 37; i < 64; ++i) BOOST_TEST(codes[i] == 8);  // 0
}
