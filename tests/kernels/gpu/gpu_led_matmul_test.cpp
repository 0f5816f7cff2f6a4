// Launches of few rows that have the kernel before them as their first blocks, in the emulator: the bits of separate
// launches, in launches of their own and in whole models. The emulator runs the blocks of a small launch together, in
// any order, so a block that does not wait reads what is not there yet.
#include <boost/test/unit_test.hpp>
#include <deque>
#include <optional>

#include "kernels/gpu/fused/led_matmul.hpp"
#include "kernels/gpu/gemm/mma/matmul_mma.hpp"
#include "kernels/gpu/runtime/emulator/launch_count.hpp"
#include "kernels/weights/weight_plan.hpp"
#include "tests/kernels/gpu/for_seeds.hpp"
#include "tests/kernels/gpu/gemm_checks.hpp"
#include "tests/kernels/gpu/model_checks.hpp"
#include "tests/kernels/gpu/time_mix_on_device.hpp"
#include "tests/kernels/random_rwkv7.hpp"

using namespace skein;
using namespace skein::test;
using namespace skein::kernels::gpu;
using values = std::vector<float>;

namespace {

/// A card with tensor cores and without PDL.
struct imposed : imposed_card {
  using imposed_card::imposed_card;
  ~imposed() { forbid_led_matmul(false); }
};

constexpr const char* cards[] = {"a100", "rtx4090", "t4"};

element pick_state(random_numbers& random) { return random.below(2) == 0 ? element::f16 : element::f32; }

/// Up to `rows` runs of one row each, launched for `rows`.
struct decode_rows {
  decode_rows(random_numbers& random, std::uint32_t rows, std::uint32_t slots, const stream& in)
      : upload(rows, rows, rows) {
    const std::uint32_t count = rows - random.below(std::min(rows, 3u)), step = random.below(slots);
    std::vector<kernels::sequence_run> runs;
    for (std::uint32_t i = 0; i < count; ++i) runs.push_back({(i + step) % slots, i, 1});
    require(upload.send_rows({std::vector<token_id>(count, 0), runs}, in));
    batch = upload.on_device();
    batch.room.rows = batch.room.runs = rows;
    used = count;
  }
  batch_upload upload;
  device_batch batch;
  std::uint32_t used = 0;
};

/// Counters that must be 0 again.
struct counters {
  explicit counters(const stream& in) { require(fill_with_zeros(memory.data(), memory.bytes(), in)); }
  void check_zero(const stream& in) const {
    const pinned_buffer<std::uint32_t> now(led_counters);
    require(copy_to_host(now.data(), memory.data(), memory.bytes(), in));
    require(in.synchronize());
    for (const std::uint32_t count : now.all()) BOOST_TEST(count == 0u);
  }
  device_buffer<std::uint32_t> memory{led_counters};
};

void append(values& to, const values& from) { to.insert(to.end(), from.begin(), from.end()); }

/// The used rows of [parts, rows, width].
void append_rows(values& to, const values& from, std::uint32_t width, const decode_rows& rows) {
  const std::size_t part = std::size_t{rows.batch.room.rows} * width;
  for (std::size_t p = 0; p * part < from.size(); ++p)
    to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(p * part),
              from.begin() + static_cast<std::ptrdiff_t>(p * part + std::size_t{rows.used} * width));
}

/// Token shifts of one width, and all that they read and write.
struct shift_case {
  shift_case(random_numbers& random, element type, std::uint32_t width, std::uint32_t shifts, std::uint32_t rows,
             std::uint32_t slots)
      : kept(pick_state(random)) {
    const std::size_t count = std::size_t{rows} * width;
    const auto random_floats = [&](std::size_t size) {
      return memory.emplace_back(random_values(random, static_cast<std::uint32_t>(size), 2), element::f32).floats();
    };
    of.from.x = random_floats(count);
    if (random.below(4) > 0) {
      const std::uint32_t parts = 1 + random.below(4);
      of.from.added = {random_floats(parts * count), width, parts, count, random.below(2) == 0};
      of.sum = memory.emplace_back(values(count), element::f32).floats();
    }
    of.norm = {random_floats(width), random_floats(width)};
    x_prev.emplace(rounded(random_values(random, slots * width), kept), kept);
    of.x_prev = x_prev->data(), of.slot_bytes = width * element_bytes(kept), of.kept_type = kept;
    of.width = of.out_stride = width, of.shifts = shifts;
    for (std::uint32_t s = 0; s < shifts; ++s) {
      of.mix[s] = random_floats(width);
      of.out[s] = outs.emplace_back(values(count), type).data();
    }
  }
  element kept;
  token_shift_parameters of;
  std::optional<device_values> x_prev;
  std::deque<device_values> memory, outs;
};

/// With the same random numbers once in separate launches, once led; body(random, led) returns all results.
template <typename Body>
void compare_led(std::uint64_t count, const Body& body) {
  for_seeds(count, [&](random_numbers& random) {
    const imposed card(cards[random.below(std::size(cards))]);
    const std::uint64_t seed = random.below(1u << 30);
    const auto run = [&](bool led) {
      random_numbers same(seed);
      return body(same, led);
    };
    const values apart = run(false);
    BOOST_TEST(std::ranges::any_of(apart, [](float value) { return value != 0; }));
    BOOST_TEST(same_bits(run(true), apart));
  });
}

}  // namespace

// Two shifted rows, a product of each, a second product in segments.
BOOST_AUTO_TEST_CASE(a_token_shift_leads_products) {
  compare_led(24, [](random_numbers& random, bool led) {
    constexpr std::uint32_t widths[] = {64, 192, 256, 704, 2560, 4160, 6144}, slots = 40;
    const stream in;
    const element type = pick_16_bits(random);
    const std::uint32_t width = widths[random.below(std::size(widths))];
    const std::uint32_t rows = 1 + random.below(width > 1000 ? 9 : led_rows_max);
    const decode_rows decode(random, rows, slots, in);
    const shift_case shift(random, type, width, 1 + random.below(token_shifts_max), rows, slots);
    gemm_case first(random, type, rows, 130, width, {activation_function::relu_squared});
    gemm_case beside(random, type, rows, 66, width, epilogue{});
    gemm_case second(random, type, rows, 100, 130, store_f32);
    const device_values between(values(std::size_t{rows} * padded(130)), type);
    const device_values parts(values(std::size_t{3} * rows * 100), element::f32);
    first.p.in = shift.of.out[0], first.p.out = between.data(), first.p.out_stride = padded(130);
    beside.p.in = shift.of.out[shift.of.shifts - 1];
    second.p.in = between.data();
    if (random.below(2) == 0) {
      second.p.how = store_parts, second.p.segments = 3;
      second.p.out = parts.data(), second.p.out_stride = 100, second.p.part_stride = std::size_t{rows} * 100;
    } else {
      second.p.how = add_f32, second.p.out = parts.data(), second.p.out_stride = 100;
    }
    if (led) {
      const counters counts(in);
      first.p.when = turn::first, second.p.when = turn::second;
      require(led_matmul(in, decode.batch, type, element::f32, shift.of, std::array{first.p, beside.p, second.p},
                         counts.memory.data()));
      counts.check_zero(in);
    } else {
      require(token_shift(in, decode.batch, type, shift.of));
      require(matmul_mma(in, type, std::array{first.p, beside.p}, nullptr, rows));
      require(matmul_mma(in, type, std::array{second.p}, nullptr, rows));
    }
    values all;
    for (const device_values& out : shift.outs) append_rows(all, out.read(in), width, decode);
    append(all, shift.x_prev->read(in));
    if (shift.of.sum)
      for (const device_values& some : shift.memory)
        if (some.data() == shift.of.sum) append_rows(all, some.read(in), width, decode);
    append_rows(all, between.read(in), padded(130), decode);
    append_rows(all, parts.read(in), 100, decode);
    append_rows(all, beside.out_memory.read(in), beside.out_stride, decode);
    return all;
  });
}

BOOST_AUTO_TEST_CASE(time_mixing_leads_a_product) {
  compare_led(16, [](random_numbers& random, bool led) {
    constexpr std::uint32_t slots = 40, outputs = 130;
    const stream in;
    const element type = pick_16_bits(random), state_type = pick_state(random);
    const std::uint32_t rows = 1 + random.below(led_rows_max), heads = 1 + random.below(3);
    const decode_rows decode(random, rows, slots, in);
    time_mix_case given(random, type, heads, rows, slots);
    const time_mix_on_device device(given, random, type, state_type, random.below(3) == 0, slots, in);
    gemm_case product(random, type, rows, outputs, given.width, store_f32);
    const std::uint32_t segments = heads > 1 ? 1 + random.below(2) : 1;
    const device_values parts(values(std::size_t{segments} * rows * outputs), element::f32);
    product.p.how = segments > 1 ? store_parts : add_f32, product.p.segments = segments;
    product.p.in = device.of.y, product.p.out = parts.data(), product.p.out_stride = outputs;
    product.p.part_stride = std::size_t{rows} * outputs;
    if (led) {
      const counters counts(in);
      require(led_matmul(in, decode.batch, type, state_type, device.of, {&product.p, 1}, counts.memory.data()));
      counts.check_zero(in);
    } else {
      require(time_mix(in, decode.batch, type, state_type, device.of));
      require(matmul_mma(in, type, {&product.p, 1}, nullptr, rows));
    }
    values all;
    append_rows(all, device.y(in), given.width, decode);
    append_rows(all, device.v_first(in), given.width, decode);
    append_rows(all, parts.read(in), outputs, decode);
    for (slot_id s = 0; s < slots; ++s) append(all, device.state_of(s, in));
    return all;
  });
}

namespace {

constexpr kernels::model_dims narrow{3, 64, 1, 64, 256, 100, 16, 16, 8, 24};
constexpr kernels::model_dims wide{2, 192, 3, 64, 500, 67, 13, 7, 5, 31};

/// Kernels of a tick outside of the layers and of the head.
constexpr std::uint64_t kernels_beside = 1;

/// `saved`: launches of a layer.
void compare_models(const kernels::model_dims& dims, const gpu_options& options, int sm_count, std::uint64_t saved) {
  const imposed card(("a100:" + std::to_string(sm_count)).c_str());
  const element type = options.matrix_type;
  const random_rwkv7 model(dims, stored_as(type), 5, true);
  const model_room for_all{.rows = led_rows_max + 1, .logit_rows = led_rows_max + 1, .slots = led_rows_max + 2};
  forbid_led_matmul(true);
  model_stages apart(model.weights(), options, for_all);
  forbid_led_matmul(false);
  BOOST_REQUIRE(*has_led_matmul(0, type));
  model_stages led(model.weights(), options, for_all);
  const auto kernels_of = [&](model_stages& on, const std::vector<piece>& rows, values& logits) {
    const std::uint64_t before = emulator::kernels_queued();
    logits = tick(on, dims, rows);
    return emulator::kernels_queued() - before;
  };
  std::uint32_t turn = 0;
  for (const std::uint32_t count : {1u, 3u, 8u, 11u, led_rows_max, led_rows_max + 1, 3u})
    BOOST_TEST_CONTEXT(count << " rows, width " << dims.embd << ", " << sm_count << " SMs") {
      std::vector<piece> rows;
      for (std::uint32_t i = 0; i < count; ++i)
        rows.push_back({(i * 5 + turn) % (led_rows_max + 2), {static_cast<token_id>((i * 11 + turn) % dims.vocab)}});
      values expected, got;
      const std::uint64_t many = kernels_of(apart, rows, expected), few = kernels_of(led, rows, got);
      BOOST_TEST(same_bits(got, expected));
      BOOST_TEST(many - few == (count <= led_rows_max ? saved * dims.layers : 0));
      BOOST_TEST(few >= 3 * dims.layers + kernels_beside);
      ++turn;
    }
  // Longer runs take the launches of their own.
  const std::vector<piece> longer = {{2, random_tokens(7, dims.vocab, 8)}, {9, {1}}};
  BOOST_TEST(same_bits(tick(led, dims, longer), tick(apart, dims, longer)));
  for (slot_id slot = 0; slot < led_rows_max; ++slot) BOOST_TEST(same_bits(state_of(led, slot), state_of(apart, slot)));
  BOOST_TEST(led.status().has_value());
}

}  // namespace

BOOST_AUTO_TEST_CASE(led_launches_change_no_bit_of_a_model) {
  for (const element type : {element::f16, element::bf16})
    for (const element state_type : {element::f16, element::f32}) {
      gpu_options options;
      options.matrix_type = type, options.state_type = state_type;
      compare_models(wide, options, 108, 4);
      if (type == element::f16) compare_models(narrow, options, 2, 4);
    }
}

// Of two kinds of codes in time mixing, its first launch is not led.
BOOST_AUTO_TEST_CASE(led_launches_change_no_bit_of_a_quantised_model) {
  const auto compare = [](element type, const char* name, const char* overrides, std::uint64_t saved) {
    gpu_options options;
    options.matrix_type = type, options.state_type = element::f16;
    const auto plan = kernels::weight_plan::parse(name, overrides, stored_as(type));
    BOOST_REQUIRE(plan.has_value());
    options.formats = *plan;
    BOOST_TEST_CONTEXT(name << ' ' << overrides) { compare_models(wide, options, 108, saved); }
  };
  compare(element::f16, "int8", "", 4);
  compare(element::bf16, "fp8", "", 4);
  compare(element::bf16, "int4", "", 4);
  compare(element::f16, "nf4", "", 4);
  compare(element::bf16, "int4", "att.key=int8-32", 3);
}

BOOST_AUTO_TEST_CASE(only_gpus_without_pdl_have_led_launches) {
  for (const char* const name : {"a100", "rtx3090", "rtx4090", "l4"}) {
    const imposed card(name);
    for (const element type : {element::f16, element::bf16}) BOOST_TEST(*has_led_matmul(0, type));
    BOOST_TEST(!*has_led_matmul(0, element::f32));
    forbid_led_matmul(true);
    BOOST_TEST(!*has_led_matmul(0, element::f16));
  }
  const imposed turing("t4");
  BOOST_TEST(*has_led_matmul(0, element::f16));
  BOOST_TEST(!*has_led_matmul(0, element::bf16));
  const imposed hopper("h100");
  BOOST_TEST(!*has_led_matmul(0, element::f16));
}
