// Products with quantised matrices in the emulator: the bits of the same product with the decoded matrix.
#include <boost/test/unit_test.hpp>
#include <deque>

#include "kernels/gpu/device/nf4_pairs.cuh"
#include "kernels/gpu/gemm/mma/matmul_mma.hpp"
#include "kernels/weights/e4m3.hpp"
#include "tests/kernels/gpu/coded_case.hpp"
#include "tests/kernels/gpu/for_seeds.hpp"
#include "tests/kernels/gpu/gemm_checks.hpp"
#include "tests/kernels/gpu/late_inputs.hpp"
#include "tests/kernels/gpu/low_rank_case.hpp"

using namespace skein;
using namespace skein::test;
using namespace skein::kernels::gpu;
using values = std::vector<float>;

namespace {

constexpr weight_element elements[] = {weight_element::int8, weight_element::fp8, weight_element::int4,
                                       weight_element::nf4};

weight_format pick_format(random_numbers& random) {
  constexpr std::uint16_t groups[] = {32, 64, 128};
  return {elements[random.below(std::size(elements))], groups[random.below(3)]};
}

/// Few rows most of the time, because many take long.
std::uint32_t pick_rows(random_numbers& random) {
  return 1 + random.below(random.below(4) == 0 ? 80 : random.below(2) == 0 ? 40 : 9);
}

void compare(std::deque<coded_case>& cases, element type, std::uint32_t rows, const matmul_functions& by,
             const stream& in) {
  const row_count count(rows);
  std::vector<gemm> coded, plain;
  for (const coded_case& c : cases) coded.push_back(c.p), plain.push_back(c.plain.p);
  require(by.run(in, type, coded, count.data(), rows));
  require(by.run(in, type, plain, count.data(), rows));
  for (const coded_case& c : cases) {
    c.plain.check_result(in);
    BOOST_TEST(same_bits(c.out_memory.read(in), c.plain.out_memory.read(in)));
  }
}

void compare_random(const matmul_functions& by, random_numbers& random, element type) {
  const stream in;
  const std::uint32_t rows = pick_rows(random);
  std::deque<coded_case> cases;
  for (std::uint32_t i = 1 + random.below(3); i > 0; --i)
    cases.emplace_back(random, type, rows, 1 + random.below(150), 1 + random.below(400), pick_epilogue(random),
                       pick_format(random));
  compare(cases, type, rows, by, in);
}

}  // namespace

BOOST_AUTO_TEST_CASE(codes_have_places_of_their_own_within_their_block) {
  for (const weight_element e : elements)
    for (const std::uint16_t group : {std::uint16_t{32}, std::uint16_t{64}, std::uint16_t{128}}) {
      const weight_format f{e, group};
      std::vector<unsigned> taken(block_bytes(f) * 8);
      for (std::uint32_t o = 0; o < panel_outputs; ++o)
        for (std::uint32_t i = 0; i < block_inputs; ++i) {
          const code_place at = place_of_code(e, o, i);
          const bool has_sign = e == weight_element::fp8;
          for (std::uint32_t bit = 0; bit < code_bits(e) - has_sign; ++bit) ++taken[at.byte * 8 + at.bit + bit];
          if (has_sign) ++taken[byte_of_sign(at.byte) * 8 + 7];
          if (i % std::min<std::uint32_t>(group, block_inputs) == 0)
            for (std::uint32_t bit = 0; bit < 16; ++bit) ++taken[place_of_scale(f, o, i) * 8 + bit];
        }
      BOOST_TEST(std::ranges::all_of(taken, [](unsigned n) { return n == 1; }));
    }
}

BOOST_AUTO_TEST_CASE(the_plain_product_reads_quantised_matrices) {
  for_seeds(12, [](random_numbers& random) {
    constexpr element types[] = {element::f16, element::bf16, element::f32};
    compare_random(plain_matmul(), random, types[random.below(3)]);
  });
}

#if defined(SKEIN_GPU_EMULATOR)
namespace {

constexpr std::uint32_t code_count(weight_element e) { return 1 << code_bits(e); }
/// How code `n` of all is laid out, but for the sign of fp8, and the code of zero.
constexpr std::uint32_t number_of(weight_element e, std::uint32_t n) { return e == weight_element::fp8 ? n & 127 : n; }
constexpr std::uint32_t zero_of(weight_element e) {
  switch (e) {
    case weight_element::int8: return 128;
    case weight_element::int4: return 8;
    case weight_element::nf4: return 7;
    default: return 0;
  }
}
constexpr int value_of(weight_element e, std::uint32_t n) {
  return e == weight_element::int8 || e == weight_element::int4 ? static_cast<int>(n - zero_of(e))
                                                                : static_cast<int>(n);
}

/// The word of lane 0 for the lower outputs with a code at one of its inputs of a step, and zeros.
template <weight_element e>
code_words<e> words_with(std::uint32_t n, unsigned step, std::uint32_t input) {
  code_words<e> words{};
  const auto put = [&](std::uint32_t number, std::uint32_t at) {
    const code_place place = place_of_code(e, 0, at);
    const std::uint32_t bit = place.byte % 4 * 8 + place.bit;
    words.of[place.byte / 256] |= number_of(e, number) << bit;
    if (e == weight_element::fp8) words.of[step] |= (number & 128) << 8 * byte_of_sign(place.byte % 4);
  };
  for (unsigned s = 0; s < 2; ++s)
    for (const std::uint32_t within : {0u, 1u, 8u, 9u}) {
      const bool is_chosen = s == step && within == input;
      put(is_chosen ? n : zero_of(e), s * step_inputs + within);
    }
  return words;
}

/// Each code in each place of the words, with scales of all sizes: the value times the scale, rounded once.
template <typename Element, weight_element e, typename Decode>
std::size_t count_wrong(Decode decode, float factor) {
  constexpr element type = std::is_same_v<Element, half> ? element::f16 : element::bf16;
  std::size_t wrong = 0;
  for (std::uint32_t n = 0; n < code_count(e); ++n) {
    if (e == weight_element::fp8 && kernels::is_nan_of_e4m3(static_cast<std::uint8_t>(n))) continue;
    for (int exponent = type == element::f16 ? -20 : -90; exponent < (type == element::f16 ? 7 : 14); ++exponent) {
      const float scale =
          std::ldexp((n % 3 == 0 ? -1.0f : 1.0f) * (1 + static_cast<float>(n * 37 % 128) / 128), exponent);
      const std::uint32_t stored = type == element::f16 ? f32_to_f16(scale * half_scale_factor) : f32_to_bf16(scale);
      const float expected = to_float(decode_one<Element, e>(value_of(e, n), scale_of<Element>(stored, 0)));
      for (unsigned step = 0; step < 2; ++step)
        for (unsigned of_pair = 0; of_pair < 4; ++of_pair) {
          std::uint32_t to[2];
          decode(words_with<e>(n, step, of_pair / 2 * 8 + of_pair % 2), step, stored * 0x10001, to);
          for (unsigned i = 0; i < 4; ++i) {
            const auto bits = static_cast<std::uint16_t>(to[i / 2] >> 16 * (i % 2));
            const float got = (type == element::f16 ? f16_to_f32(bits) : bf16_to_f32(bits)) * factor;
            wrong += got != (i == of_pair ? expected : 0);
          }
        }
    }
  }
  return wrong;
}

template <typename Element, weight_element e>
void check_decoders() {
  const auto by_decoder = [](const auto& words, unsigned step, std::uint32_t scale, std::uint32_t(&to)[2]) {
    decoder<Element, e>()(words, step, scale, to);
  };
  BOOST_TEST((count_wrong<Element, e>(by_decoder, 1)) == 0u);
  const auto by_group = [](auto decode, unsigned upper) {
    return [=](const auto& words, unsigned step, std::uint32_t scale, std::uint32_t(&to)[2]) mutable {
      decode.begin(scale & 0xffff << 16 * upper);
      decode(words, upper, step, to);
    };
  };
  using groups = group_decoder<Element, e>;
  for (unsigned upper = 0; upper < 2; ++upper)
    BOOST_TEST((count_wrong<Element, e>(by_group(groups(0), upper), groups::sum_factor)) == 0u);
  if constexpr (e == weight_element::nf4) {
    alignas(128) static std::byte table[nf4_pairs<Element>::table_bytes];
    for (unsigned thread = 0; thread < 96; ++thread) nf4_pairs<Element>::fill(table, thread, 96);
    for (unsigned upper = 0; upper < 2; ++upper)
      BOOST_TEST((count_wrong<Element, e>(by_group(nf4_pairs<Element>(table), upper), 1)) == 0u);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_code_is_decoded) {
  const auto check = []<typename Element>(Element) {
    check_decoders<Element, weight_element::int8>();
    check_decoders<Element, weight_element::int4>();
    check_decoders<Element, weight_element::nf4>();
    check_decoders<Element, weight_element::fp8>();
  };
  check(half{});
  check(bf16{});
}
#endif

#if !defined(SKEIN_GPU_EMULATOR) || SKEIN_GPU_EMULATOR == 32

namespace {

constexpr const char* cards[] = {"h100", "a100", "rtx4090", "t4", "rtx5090"};

constexpr matmul_functions by_mma{"mma", matmul_mma, mma_splits, true};

#if defined(SKEIN_GPU_EMULATOR)
emulator::other_device become_hopper(int sm_count = 132) {
  return emulator::other_device(
      {.sm_count = sm_count, .compute_capability_major = 9, .shared_bytes_per_block = 227 << 10});
}
#endif

}  // namespace

BOOST_AUTO_TEST_CASE(a_product_with_codes_has_the_bits_of_the_decoded_matrix) {
  for_seeds(25, [](random_numbers& random) {
    const imposed_card card(cards[random.below(std::size(cards))]);
    compare_random(by_mma, random, pick_16_bits(random));
  });
}

#if defined(SKEIN_GPU_EMULATOR)
// With sm_90a of its own, which a profile cannot add: rings are used up to 64 rows, and wgmma from 17 on.
BOOST_AUTO_TEST_CASE(a_product_with_codes_has_the_bits_of_the_decoded_matrix_on_hopper) {
  const emulator::other_device hopper = become_hopper();
  for_seeds(25, [](random_numbers& random) {
    compare_random(by_mma, random, random.below(2) == 0 ? element::f16 : element::bf16);
  });
}
#endif

// Longer than the rings of sm_90a, also with a last stage that is not whole, and with panels beyond the matrix.
BOOST_AUTO_TEST_CASE(long_products_with_codes_have_the_bits_of_the_decoded_matrix) {
#if defined(SKEIN_GPU_EMULATOR)
  const emulator::other_device hopper = become_hopper();
#endif
  const stream in;
  random_numbers random(1);
  for (const weight_element e : {weight_element::int8, weight_element::int4, weight_element::nf4})
    for (const std::uint32_t rows : {9u, 17u, 32u, 33u, 64u}) {
      const std::uint16_t group = rows % 2 == 0 ? 64 : 32;
      const std::uint32_t inputs = rows == 32 ? 2304 : 2368;
      std::deque<coded_case> cases;
      cases.emplace_back(random, pick_16_bits(random), rows, 136, inputs, store_f32, weight_format{e, group});
      BOOST_TEST_CONTEXT(rows << " rows, " << static_cast<int>(e)) {
        compare(cases, cases.front().plain.type, rows, by_mma, in);
      }
    }
}

#if defined(SKEIN_GPU_EMULATOR)
// An SM that has many blocks has no space for their tables.
BOOST_AUTO_TEST_CASE(nf4_is_decoded_without_a_table_where_an_sm_has_many_blocks) {
  const emulator::other_device hopper = become_hopper(1);
  for (const std::uint32_t rows : {1u, 12u, 20u, 40u}) {
    random_numbers random(rows);
    std::deque<coded_case> cases;
    const element type = pick_16_bits(random);
    cases.emplace_back(random, type, rows, 900, 320, store_f32, weight_format{weight_element::nf4, 64});
    BOOST_TEST_CONTEXT(rows << " rows") { compare(cases, type, rows, by_mma, stream()); }
  }
}
#endif

// As launches of many rows do.
BOOST_AUTO_TEST_CASE(a_matrix_that_is_decoded_first_gives_the_same_bits) {
  for_seeds(16, [](random_numbers& random) {
    const imposed_card card(cards[random.below(std::size(cards))]);
    const stream in;
    const element type = pick_16_bits(random);
    const std::uint32_t rows = pick_rows(random);
    std::deque<coded_case> cases;
    std::deque<device_buffer<std::byte>> decoded;
    for (std::uint32_t i = 1 + random.below(3); i > 0; --i) {
      const std::uint32_t outputs = 1 + random.below(150), inputs = 1 + random.below(400);
      coded_case& c =
          cases.emplace_back(random, type, rows, outputs, inputs, pick_epilogue(random), pick_format(random));
      c.p.decoded = decoded.emplace_back(std::size_t{padded(outputs)} * padded(inputs) * 2).data();
    }
    compare(cases, type, rows, by_mma, in);
  });
}

namespace {

void compare_segments(element type, std::uint32_t rows, weight_element e) {
  random_numbers random(rows);
  const epilogue how = rows == 140 ? add_f32 : store_f32;
  std::deque<coded_case> cases;
  for (std::uint32_t i = rows == 520 ? 2 : 1; i > 0; --i) {
    coded_case& c = cases.emplace_back(random, type, rows, 136, 300, how, weight_format{e, 64});
    c.p.segments = c.plain.p.segments = 2;
    if (mma_splits({&c.p, 1}, rows)) c.p.segments = c.plain.p.segments = 1;
  }
  BOOST_TEST_CONTEXT(rows << " rows, " << static_cast<int>(e)) { compare(cases, type, rows, by_mma, stream()); }
}

}  // namespace

// In tiles of every shape, with segments stored, added up, or added one by one.
BOOST_AUTO_TEST_CASE(rows_and_segments_do_not_change_the_bits_of_products_with_codes) {
  for (const weight_element e : elements)
    for (const char* const name : {"h100", "rtx4090", "t4"})
      for (const std::uint32_t rows : {12u, 100u, 140u, 520u}) {
        const imposed_card card(name);
        BOOST_TEST_CONTEXT(name) {
          compare_segments(known_type(rows % 3 == 0 ? element::bf16 : element::f16), rows, e);
        }
      }
}

#if defined(SKEIN_GPU_EMULATOR)
BOOST_AUTO_TEST_CASE(rows_and_segments_do_not_change_the_bits_of_products_with_codes_on_hopper) {
  const emulator::other_device hopper = become_hopper();
  for (const weight_element e : {weight_element::int8, weight_element::int4, weight_element::nf4})
    for (const std::uint32_t rows : {100u, 140u, 520u}) compare_segments(element::bf16, rows, e);
}
#endif

namespace {

/// Low-rank pairs in the launch of quantised projections, or beside it, compared with a launch of their own.
/// `has_plain`: one of the projections has 16 bits.
void compare_pairs(random_numbers& random, element type, std::uint32_t rows, std::uint32_t inputs,
                   std::span<const weight_element> formats, bool has_plain = false) {
  const stream in;
  const low_rank_case pairs(random, type, rows, inputs, in);
  std::deque<coded_case> cases;
  for (const weight_element e : formats)
    cases.emplace_back(random, type, rows, 100, 200, epilogue{}, weight_format{e, 64});
  gemm_case plain(random, type, rows, 100, 200, epilogue{});
  const values alone = pairs.run(by_mma, {}, rows, in);
  std::vector<gemm> launch;
  late_inputs late;
  for (const gemm_case& c : pairs.firsts) late.add(c.x_memory);
  if (has_plain) launch.push_back(plain.p), late.add(plain.x_memory);
  for (const coded_case& c : cases) {
    require(matmul_mma(in, type, {&c.plain.p, 1}, nullptr, rows));
    launch.push_back(c.p), late.add(c.plain.x_memory);
  }
  for (unsigned again = 0; again < 2; ++again) {
    late.begin(in);
    BOOST_TEST(same_bits(pairs.run(by_mma, launch, rows, in), alone));
    BOOST_TEST(pairs.counters_are_zero(in));
    for (const coded_case& c : cases) BOOST_TEST(same_bits(c.out_memory.read(in), c.plain.out_memory.read(in)));
  }
  if (!has_plain) return;
  const values beside = plain.out_memory.read(in);
  require(matmul_mma(in, type, {&plain.p, 1}, nullptr, rows));
  BOOST_TEST(same_bits(beside, plain.out_memory.read(in)));
}

}  // namespace

// Low-rank pairs run in the launch of the projections, which are quantised, or beside it.
BOOST_AUTO_TEST_CASE(pairs_share_a_launch_with_quantised_products) {
  for_seeds(4, [](random_numbers& random) {
    const imposed_card card("h100");
    constexpr weight_element formats[] = {weight_element::int4, weight_element::int8, weight_element::nf4};
    const weight_element of_two[] = {formats[random.below(3)], formats[random.below(3)]};
    compare_pairs(random, element::f16, 1 + random.below(160), 128, of_two, random.below(2) == 0);
  });
}

// With more stages than a ring has, and the last one not whole.
BOOST_AUTO_TEST_CASE(long_pairs_share_a_launch_with_quantised_products_on_hopper) {
#if defined(SKEIN_GPU_EMULATOR)
  const emulator::other_device hopper = become_hopper();
#endif
  constexpr weight_element formats[] = {weight_element::int4, weight_element::int8, weight_element::nf4};
  for (const std::uint32_t rows : {1u, 8u, 11u, 16u, 27u, 32u, 33u, 64u, 65u, 100u, 128u, 130u, 200u}) {
    random_numbers random(rows);
    BOOST_TEST_CONTEXT(rows << " rows") {
      const element type = known_type(rows % 2 == 0 ? element::bf16 : element::f16);
      compare_pairs(random, type, rows, rows == 8 || rows == 33 ? 4288 : 1984, {formats, 1});
      for (const weight_element& format : formats) compare_pairs(random, type, rows, 576, {&format, 1});
      compare_pairs(random, type, rows, 576, std::span(formats).first(2), true);
    }
  }
}
#endif
