// Shows that what arrives on the device is what the file holds, rounded and padded, whatever the sizes, types and
// strides of its tensors; with pieces so small that the ring of pinned memory goes round many times.
#include "kernels/gpu/model/weight_upload.hpp"

#include <boost/test/unit_test.hpp>
#include <limits>

#include "tests/kernels/gpu/device_values.hpp"

using namespace skein;
using namespace skein::test;
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
  for (const std::uint32_t threads : {1u, 2u, 5u}) {
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
    weight_upload upload({&seen::report, &progress}, total, {.threads = threads, .piece_bytes = 512});
    for (std::size_t i = 0; i < tensors.size(); ++i)
      upload.add(static_cast<std::byte*>(places[i].data()), tensors[i].view, tensors[i].type, tensors[i].height,
                 tensors[i].width);
    upload.run();
    const kernels::gpu::stream in;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      BOOST_TEST_CONTEXT("tensor " << i << ", " << threads << " threads") {
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

BOOST_AUTO_TEST_CASE(nothing_to_send_is_nothing_to_wait_for) {
  weight_upload upload({}, 0);
  upload.run();
}
