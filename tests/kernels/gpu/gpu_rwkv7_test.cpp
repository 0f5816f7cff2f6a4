// RWKV-7 as a whole on the GPU's kernels, run by the emulator: against the reference in every element type, and promise
// 2 of the design to the last bit, also across cuts of the prompt. Small random models; sizes that are no multiples of
// a tile where a model may have such.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <tuple>

#include "kernels/make_stages.hpp"
#include "tests/kernels/gpu/model_checks.hpp"
#include "tests/kernels/gpu/plain_library.hpp"
#include "tests/kernels/stage_runs.hpp"
#include "tests/kernels/states_move.hpp"
#include "tests/support/thorough.hpp"

using namespace skein;
using namespace skein::test;

namespace {

//                                 layers embd heads size ffn vocab  ranks w a v g
constexpr kernels::model_dims base_dims{2, 64, 1, 64, 256, 100, 16, 16, 8, 24};
constexpr kernels::model_dims narrow_dims{2, 64, 1, 64, 180, 67, 13, 7, 5, 31};
constexpr kernels::model_dims wide_dims{2, 192, 3, 64, 500, 67, 13, 7, 5, 31};
constexpr kernels::model_dims small_heads{2, 192, 8, 24, 500, 67, 13, 7, 5, 31};
constexpr kernels::model_dims large_heads{2, 256, 1, 256, 500, 67, 13, 7, 5, 31};
[[maybe_unused]] constexpr kernels::model_dims as_wide_as_7b{2, 4096, 64, 64, 256, 100, 96, 96, 64, 480};

/// By day with one layer: another takes the same kernels, and base_dims has two.
kernels::model_dims shallow(kernels::model_dims dims) {
  if (!is_nightly()) dims.layers = 1;
  return dims;
}

#if defined(SKEIN_GPU_EMULATOR)
__global__ void lose_a_thread() {
  if (threadIdx.x > 0) kernels::gpu::__syncthreads();
}
#endif

void compare_with_the_reference(const kernels::model_dims& dims, element type) {
  const random_rwkv7 model(dims, stored_as(type), 1, type == element::bf16);
  test::compare_with_the_reference(model.weights(), type);
}

void change_cuts_and_batch(const kernels::model_dims& dims, element type, element state_type) {
  const random_rwkv7 model(dims, stored_as(type), 3, true);
  test::change_cuts_and_batch(model.weights(), type, state_type);
}

void change_a_crowd(const kernels::model_dims& dims, element type, element state_type, const crowd& of) {
  const random_rwkv7 model(dims, stored_as(type), 61, true);
  test::change_a_crowd(model.weights(), type, state_type, of);
}

}  // namespace

BOOST_AUTO_TEST_CASE(gpu_equals_the_reference) {
  for (const auto& dims : {base_dims, wide_dims})
    for (const element type : {element::f32, element::f16, element::bf16}) compare_with_the_reference(dims, type);
  for (const auto& dims : {small_heads, large_heads})
    for (const element type : {element::f32, element::bf16}) compare_with_the_reference(dims, type);
}

// With strict invariance: however a prompt is cut and whatever else is in the tick, a sequence gets the same bits:
// logits and state.
BOOST_AUTO_TEST_CASE(neither_cuts_nor_batch_composition_change_a_bit) {
  change_cuts_and_batch(base_dims, element::bf16, element::f32);
  change_cuts_and_batch(shallow(wide_dims), element::f16, element::f16);
  change_cuts_and_batch(shallow(small_heads), element::f16, element::f16);
}

#if SKEIN_GPU_EMULATOR == 32
// The same with the products of sm_90a.
BOOST_AUTO_TEST_CASE(hopper_equals_the_reference_for_any_cuts_and_batches) {
  const kernels::gpu::emulator::other_device hopper({.sm_count = 3, .compute_capability_major = 9});
  BOOST_TEST(kernels::gpu::choose_matmul(0, element::f16, dtype::f16)->name == "tensor cores of sm_90a");
  for (const element type : {element::f16, element::bf16}) compare_with_the_reference(wide_dims, type);
  change_cuts_and_batch(base_dims, element::bf16, element::f32);
  change_cuts_and_batch(shallow(wide_dims), element::f16, element::f16);
}
#endif

// Few rows of a model as wide as 7.2B take other launches than many. In the emulator, at night, with few tokens.
#if SKEIN_GPU_EMULATOR == 32
#define SKEIN_AT_NIGHT , *boost::unit_test::disabled() * boost::unit_test::label("nightly")
#else
#define SKEIN_AT_NIGHT
#endif
#if !defined(SKEIN_GPU_EMULATOR) || SKEIN_GPU_EMULATOR == 32
BOOST_AUTO_TEST_CASE(few_rows_of_a_wide_model_have_the_bits_of_many SKEIN_AT_NIGHT) {
#if defined(SKEIN_GPU_EMULATOR)
  const kernels::gpu::emulator::other_device hopper({.sm_count = 132, .compute_capability_major = 9});
  constexpr std::size_t count = 34, chunks[] = {17};
  constexpr element types[] = {element::f16};
#else
  constexpr std::size_t count = 70, chunks[] = {1, 8, 14, 32};
  constexpr element types[] = {element::f16, element::bf16};
#endif
  constexpr kernels::model_dims dims = as_wide_as_7b;
  const random_rwkv7 model(dims, dtype::f16, 6, true);
  for (const element type : types) {
    const auto gpu = make_gpu(model.weights(), type, element::f32, kernels::gpu::invariance::strict);
    const tokens ids = random_tokens(count, dims.vocab, 7);
    const auto whole = feed(*gpu, dims, 1, ids, count);
    const auto state = state_of(*gpu, 1);
    for (const std::size_t chunk : chunks) {
      BOOST_TEST(same_bits(feed(*gpu, dims, 2, ids, chunk), whole));
      BOOST_TEST(same_bits(state_of(*gpu, 2), state));
    }
  }
}
#endif

// Long runs in chunks, short ones token after token, in one tick and on the same states.
BOOST_AUTO_TEST_CASE(chunked_prefill_stays_near_the_reference) {
  const random_rwkv7 model(wide_dims, dtype::f16, 31);
  for (const element state_type : {element::f32, element::f16}) {
    const auto gpu = make_gpu(model.weights(), element::f16, state_type), reference = make_reference(model.weights());
    const tokens long_ids = random_tokens(70, wide_dims.vocab, 32), short_ids = random_tokens(9, wide_dims.vocab, 33);
    for (int i = 0; i < 2; ++i) {
      const auto both = [&](kernels::stages& on) { return tick(on, wide_dims, {{1, short_ids}, {3, long_ids}}); };
      BOOST_TEST(difference(both(*gpu), both(*reference)) < tolerance(element::f16));
      BOOST_TEST(difference(tick(*gpu, wide_dims, {{3, short_ids}}), tick(*reference, wide_dims, {{3, short_ids}})) <
                 tolerance(element::f16));
    }
    for (const slot_id slot : {1, 3})
      BOOST_TEST(difference(state_of(*gpu, slot), state_of(*reference, slot)) < tolerance(element::f16));
  }
}

// With fast invariance: ticks of many rows by a library, short ones by our kernels, on the same states.
BOOST_AUTO_TEST_CASE(gemms_of_a_library_stay_near_the_reference) {
  constexpr std::uint32_t rows = 300;
  const std::vector by_day{narrow_dims}, by_night{base_dims, wide_dims};
  for (const auto& dims : is_nightly() ? by_night : by_day) {
    const random_rwkv7 model(dims, dtype::f16, 41);
    kernels::gpu::gpu_options options;
    options.invariance = kernels::gpu::invariance::fast;
    library_log log;
    log.idle = true;  // while it is measured
    const auto open = [&]() -> result<std::unique_ptr<kernels::gpu::matmul_library>> {
      return std::unique_ptr<kernels::gpu::matmul_library>(std::make_unique<plain_library>(log));
    };
    const kernels::gpu::model_room many{.rows = rows, .logit_rows = rows, .slots = 2};
    model_stages gpu(model.weights(), options, many, open);
    BOOST_TEST(gpu.library().starts_with("plain; "));
    const memory_plan plan = kernels::gpu::plan_model(model.weights(), options, many, open);
    BOOST_TEST(plan.activation_bytes == gpu.memory().activation_bytes);
    log = {};
    const auto made =
        kernels::make_reference_stages(model.weights(), {.slots = 2, .max_rows = rows, .max_logit_rows = rows});
    BOOST_REQUIRE(made.has_value());
    const tokens ids = random_tokens(rows, dims.vocab, 42), few = random_tokens(5, dims.vocab, 43);
    const auto both = [&](kernels::stages& on, const tokens& some) { return tick(on, dims, {{1, some}}); };
    BOOST_TEST(difference(both(gpu, few), both(**made, few)) < tolerance(element::f16));
    BOOST_TEST(log.queued == 0u);
    BOOST_TEST(difference(both(gpu, ids), both(**made, ids)) < tolerance(element::f16));
    BOOST_TEST(log.queued >= dims.layers * 4u);  // receptance, key, value, output
    BOOST_TEST(difference(state_of(gpu, 1), state_of(**made, 1)) < tolerance(element::f16));
  }
}

BOOST_AUTO_TEST_CASE(without_its_library_a_model_says_so_and_works) {
  const random_rwkv7 model(base_dims, dtype::f16, 44);
  kernels::gpu::gpu_options options;
  const kernels::gpu::model_room many{.rows = 256, .logit_rows = 1, .slots = 1};
  const auto absent = []() -> result<std::unique_ptr<kernels::gpu::matmul_library>> {
    return error{error_kind::unavailable, "it cannot be opened", ""};
  };
  const model_stages standard(model.weights(), options, many, absent);
  BOOST_TEST(standard.library().empty());
  options.invariance = kernels::gpu::invariance::fast;
  const model_stages few(model.weights(), options, {.rows = 255, .logit_rows = 1, .slots = 1}, absent);
  BOOST_TEST(few.library().empty());
  model_stages fast(model.weights(), options, many, absent);
  BOOST_TEST(fast.library() == "none: it cannot be opened");
  BOOST_TEST(feed(fast, base_dims, 0, {1}, 1).size() == base_dims.vocab);
  BOOST_TEST(fast.status().has_value());
}

// With fast invariance one or two rows take the sparse product; the reference's sums stay near.
BOOST_AUTO_TEST_CASE(few_rows_with_sparse_values_stay_near_the_reference) {
  kernels::model_dims dims = wide_dims;
  dims.ffn = 700;  // two segments
  const random_rwkv7 model(dims, dtype::f16, 51);
  kernels::gpu::gpu_options options;
  options.invariance = kernels::gpu::invariance::fast;
  model_stages dense(model.weights(), {}, {.rows = 2, .logit_rows = 2, .slots = 2}, kernels::gpu::open_matmul_library);
  model_stages gpu(model.weights(), options, {.rows = 2, .logit_rows = 2, .slots = 2},
                   kernels::gpu::open_matmul_library);
  BOOST_TEST(gpu.memory().weight_bytes > dense.memory().weight_bytes);
  const auto made = kernels::make_reference_stages(model.weights(), {.slots = 2, .max_rows = 2, .max_logit_rows = 2});
  BOOST_REQUIRE(made.has_value());
  for (const token_id token : random_tokens(12, dims.vocab, 52)) {
    const auto both = [&](kernels::stages& on) { return tick(on, dims, {{1, {token}}, {0, {token / 2}}}); };
    BOOST_TEST(difference(both(gpu), both(**made)) < tolerance(element::f16));
    both(dense);
  }
  BOOST_TEST(!same_bits(state_of(gpu, 1), state_of(dense, 1)));  // it was the sparse one
  BOOST_TEST(difference(state_of(gpu, 1), state_of(**made, 1)) < tolerance(element::f16));
}

// Enough decode rows for other kernels to be chosen: the same bits as in ticks of a few rows.
BOOST_AUTO_TEST_CASE(crowds_of_decode_rows_change_no_bit) {
  change_a_crowd(base_dims, element::bf16, element::f32, {.rows = 256, .few = 64});
  change_a_crowd(shallow(wide_dims), element::f16, element::f16, {.rows = 256, .few = 64});
}

#if SKEIN_GPU_EMULATOR == 32
// The same where the token shifts of the crowd discard from L2 what they have read for the last time
// (device/discard.cuh), with and without hidden rows that end in zeros: no other kernel may read it.
BOOST_AUTO_TEST_CASE(crowds_of_decode_rows_change_no_bit_where_rows_are_forgotten) {
  const kernels::gpu::emulator::other_device hopper({.sm_count = 3, .compute_capability_major = 9});
  kernels::model_dims whole_lines = wide_dims;
  whole_lines.ffn = 512;
  for (const auto& dims : {whole_lines, wide_dims})
    change_a_crowd(dims, element::f16, element::f16, {.rows = 40, .few = 20});
}
#elif !defined(SKEIN_GPU_EMULATOR)
BOOST_AUTO_TEST_CASE(crowds_of_decode_rows_change_no_bit_where_rows_are_forgotten) {
  change_a_crowd(as_wide_as_7b, element::f16, element::f16, {.rows = 160, .few = 32});
}
#endif

BOOST_AUTO_TEST_CASE(states_move_between_slots_and_back_ends) {
  for (const auto& dims : {wide_dims, large_heads}) {
    const random_rwkv7 model(dims, dtype::f32, 8);
    check_states_move(*make_gpu(model.weights(), element::f32), *make_reference(model.weights()), dims,
                      tolerance(element::f32));
  }
}

BOOST_AUTO_TEST_CASE(states_in_16_bits_stay_near_those_in_32) {
  const random_rwkv7 model(wide_dims, dtype::f16, 21);
  const auto narrow = make_gpu(model.weights(), element::f16, element::f16),
             wide = make_gpu(model.weights(), element::f16);
  const tokens ids = random_tokens(60, wide_dims.vocab, 22);
  BOOST_TEST(difference(feed(*narrow, wide_dims, 0, ids, 20), feed(*wide, wide_dims, 0, ids, 20)) < 5e-3f);
  BOOST_TEST(difference(state_of(*narrow, 0), state_of(*wide, 0)) < 5e-3f);
  auto state = state_of(*narrow, 0);
  narrow->write_state(1, state);
  BOOST_TEST(same_bits(state_of(*narrow, 1), state));
}

BOOST_AUTO_TEST_CASE(a_clear_state_is_the_models_own) {
  for (const bool tuned : {false, true}) {
    const random_rwkv7 model(base_dims, dtype::f32, 11, tuned);
    const auto gpu = make_gpu(model.weights(), element::f32), reference = make_reference(model.weights());
    const auto expected = state_of(*reference, 1);
    BOOST_TEST(same_bits(state_of(*gpu, 1), expected));  // as made
    feed(*gpu, base_dims, 1, {1, 2, 3}, 3);
    BOOST_TEST(!same_bits(state_of(*gpu, 1), expected));
    gpu->clear_state(1);
    BOOST_TEST(same_bits(state_of(*gpu, 1), expected));
  }
}

BOOST_AUTO_TEST_CASE(the_head_answers_wanted_rows_in_any_order) {
  const random_rwkv7 model(base_dims, dtype::bf16, 12);
  const auto gpu = make_gpu(model.weights(), element::bf16);
  const tokens ids = random_tokens(20, base_dims.vocab, 13);
  const auto all = tick(*gpu, base_dims, {{0, ids}});
  const std::vector<kernels::sequence_run> runs{{0, 0, 20}};
  const std::vector<std::uint32_t> wanted{19, 0, 3};
  std::vector<float> some(wanted.size() * base_dims.vocab);
  gpu->head({ids, runs}, wanted, some);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    BOOST_TEST(std::memcmp(&some[i * base_dims.vocab], &all[wanted[i] * base_dims.vocab],
                           base_dims.vocab * sizeof(float)) == 0);
  gpu->head({ids, runs}, {}, {});
}

// Weights so large that relu squared leaves the range of fp16: the sequence must not end in infinities.
BOOST_AUTO_TEST_CASE(large_activations_saturate) {
  random_rwkv7 model(base_dims, dtype::f32, 17);
  auto weights = model.weights();
  const std::vector<float> large(base_dims.ffn * base_dims.embd, 40.0f);
  const auto bytes = encode(large, dtype::f32);
  weights.layers[0].ffn_key = view_of(bytes, dtype::f32, {base_dims.ffn, base_dims.embd});
  model_stages gpu(weights, {}, room);
  for (const float logit : feed(gpu, base_dims, 0, random_tokens(8, base_dims.vocab, 18), 8))
    BOOST_REQUIRE(std::isfinite(logit));
}

BOOST_AUTO_TEST_CASE(progress_ends_at_the_total) {
  struct seen {
    std::uint64_t done = 0, total = 0;
  } progress;
  const random_rwkv7 model(wide_dims, dtype::bf16, 15, true);
  const auto report = [](void* context, std::uint64_t done, std::uint64_t total) {
    *static_cast<seen*>(context) = {done, total};
  };
  kernels::gpu::gpu_options options;
  options.progress = {report, &progress};
  const model_stages made(model.weights(), options, room);
  BOOST_TEST(progress.done == progress.total);
  BOOST_TEST(progress.total > 0u);
  BOOST_TEST(made.memory().weight_bytes > 0u);
  BOOST_TEST(made.memory().activation_bytes > 0u);
}

BOOST_AUTO_TEST_CASE(what_the_kernels_cannot_do_is_refused) {
  const random_rwkv7 model(base_dims, dtype::f32, 16);
  BOOST_TEST(kernels::gpu::check_model(model.weights()).has_value());
  const auto refused = [&](std::uint32_t width, std::uint32_t head_size) -> std::string {
    auto other = model.weights();
    other.dims.embd = width, other.dims.heads = width / head_size, other.dims.head_size = head_size;
    const auto checked = kernels::gpu::check_model(other);
    if (checked) return "";
    BOOST_CHECK(checked.error().kind == error_kind::unsupported);
    return checked.error().message;
  };
  BOOST_TEST(refused(6144, 256).empty());
  BOOST_TEST(refused(320, 320).starts_with("head size 320 is above the GPU engine's limit of 256"));
  BOOST_TEST(refused(6208, 64).starts_with("width 6208 is above the GPU engine's limit of 6144"));
  BOOST_TEST(refused(96, 32).starts_with("width 96 is not a multiple of 64"));
  auto many_words = model.weights();
  many_words.dims.vocab = 524288;
  BOOST_TEST(kernels::gpu::check_model(many_words).has_value());
  many_words.dims.vocab = 524289;
  BOOST_REQUIRE(!kernels::gpu::check_model(many_words).has_value());
  BOOST_TEST(kernels::gpu::check_model(many_words)
                 .error()
                 .message.starts_with("vocabulary 524289 is above the GPU engine's limit of 524288"));

  auto whole_numbers = model.weights();
  whole_numbers.layers[1].ffn_key.type = dtype::i32;
  BOOST_CHECK(kernels::gpu::check_model(whole_numbers).error().kind == error_kind::bad_file);
}

#if defined(SKEIN_GPU_EMULATOR)  // a card loses a context for good
// Trouble in any kernel ends the device for all: the stages say so, and keep saying the first they heard.
BOOST_AUTO_TEST_CASE(a_lost_device_is_reported) {
  const random_rwkv7 model(base_dims, dtype::f32, 19);
  const auto gpu = make_gpu(model.weights(), element::f32);
  feed(*gpu, base_dims, 0, {1, 2, 3}, 3);
  BOOST_TEST(gpu->status().has_value());
  {
    const kernels::gpu::stream other;
    BOOST_REQUIRE(kernels::gpu::launch({"lose_a_thread", {1}, {64}, 0, other}, lose_a_thread).has_value());
    BOOST_TEST(!other.synchronize().has_value());
    feed(*gpu, base_dims, 0, {4}, 1);
    const auto status = gpu->status();
    BOOST_REQUIRE(!status.has_value());
    BOOST_CHECK(status.error().kind == error_kind::unavailable);
    BOOST_TEST(status.error().message.find("lose_a_thread") != std::string::npos, status.error().message);
  }
  kernels::gpu::emulator::clear_error();
  BOOST_TEST(!gpu->status().has_value());
}
#endif
