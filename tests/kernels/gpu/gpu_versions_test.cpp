// Versions 4 to 6 as a whole on the GPU's kernels, run by the emulator: against the reference in every element type,
// and to the last bit for any cuts and batches. Small random models; sizes that are no multiples of a tile where a
// model may have such.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "kernels/gpu/time_mix/chunks/wkv6_chunks.hpp"
#include "kernels/ops.hpp"
#include "tests/kernels/gpu/model_checks.hpp"
#include "tests/kernels/gpu/plain_library.hpp"
#include "tests/kernels/random_weights.hpp"
#include "tests/kernels/states_move.hpp"

using namespace skein;
using namespace skein::test;

namespace {

using version = random_weights::version;
constexpr version versions[] = {version::v4, version::v5_1, version::v5_1_log, version::v5_2, version::v6};
constexpr const char* names[] = {"4", "5.1", "5.1 without gate", "5.2", "6"};

kernels::model_dims dims_of(std::uint32_t embd, std::uint32_t heads, std::uint32_t head_size, std::uint32_t ffn) {
  return {.layers = 2,
          .embd = embd,
          .heads = heads,
          .head_size = head_size,
          .ffn = ffn,
          .vocab = 67,
          .rank_w = 13,
          .rank_x = 5};
}
const kernels::model_dims base_dims = dims_of(128, 2, 64, 192), small_heads = dims_of(192, 8, 24, 300);

template <typename Body>
void for_each_version(const Body& body) {
  for (std::size_t i = 0; i < std::size(versions); ++i) BOOST_TEST_CONTEXT("version " << names[i]) {
      body(versions[i]);
    }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(older_versions)

BOOST_AUTO_TEST_CASE(gpu_equals_the_reference) {
  for_each_version([](version of) {
    const auto compare = [&](const kernels::model_dims& dims, element type) {
      const random_weights model(of, dims, stored_as(type), 1, of != version::v4 && type == element::bf16);
      compare_with_the_reference(model.weights(), type);
    };
    for (const element type : {element::f32, element::f16, element::bf16}) compare(base_dims, type);
    if (of == version::v4) return;  // it has no heads
    for (const element type : {element::f32, element::bf16}) compare(small_heads, type);
  });
}

// An attention that is narrower or wider than the model.
BOOST_AUTO_TEST_CASE(an_attention_has_its_own_width) {
  for (const version of : {version::v5_2, version::v6})
    for (const std::uint32_t heads : {1u, 3u}) {
      const random_weights model(of, dims_of(128, heads, 64, 192), dtype::f32, 2);
      compare_with_the_reference(model.weights(), element::f32);
    }
}

// However a prompt is cut and whatever else is in the tick, a sequence gets the same bits: logits and state.
BOOST_AUTO_TEST_CASE(neither_cuts_nor_batch_composition_change_a_bit) {
  for (const version of : {version::v4, version::v5_1_log, version::v6}) {
    const bool with_state = of != version::v4;
    const random_weights model(of, base_dims, dtype::bf16, 3, with_state);
    change_cuts_and_batch(model.weights(), element::bf16, element::f32);
    if (of != version::v6) continue;  // version 4 has no heads, version 5 the kernels of 6
    const random_weights other(of, small_heads, dtype::f16, 4, with_state);
    change_cuts_and_batch(other.weights(), element::f16, element::f16);
  }
}

#if SKEIN_GPU_EMULATOR == 32
// The same with the GEMMs of sm_90a. With 40 SMs most products are split along k.
BOOST_AUTO_TEST_CASE(hopper_equals_the_reference_for_any_cuts_and_batches) {
  for (const int sm_count : {3, 40}) {
    const kernels::gpu::emulator::other_device hopper({.sm_count = sm_count, .compute_capability_major = 9});
    for (const version of : {version::v4, version::v5_2, version::v6}) {
      const random_weights model(of, base_dims, dtype::f16, 5);
      compare_with_the_reference(model.weights(), element::f16);
      change_cuts_and_batch(model.weights(), element::f16, element::f16);
    }
  }
}
#endif

// Long runs in chunks, short ones token after token, in one tick and on the same states.
BOOST_AUTO_TEST_CASE(chunked_prefill_stays_near_the_reference) {
  for (const version of : {version::v5_1, version::v5_1_log, version::v5_2, version::v6}) {
    const random_weights model(of, base_dims, dtype::f16, 31, true);
    for (const element state_type : {element::f32, element::f16}) {
      const auto gpu = make_gpu(model.weights(), element::f16, state_type), reference = make_reference(model.weights());
      const tokens long_ids = random_tokens(70, base_dims.vocab, 32), short_ids = random_tokens(9, base_dims.vocab, 33);
      const auto compare = [&](const std::vector<piece>& pieces) {
        BOOST_TEST(difference(tick(*gpu, base_dims, pieces), tick(*reference, base_dims, pieces)) <
                   tolerance(element::f16));
      };
      for (int i = 0; i < 2; ++i) compare({{1, short_ids}, {3, long_ids}}), compare({{3, short_ids}});
      for (const slot_id slot : {1, 3})
        BOOST_TEST(difference(state_of(*gpu, slot), state_of(*reference, slot)) < tolerance(element::f16));
    }
  }
}

// A prompt has the same bits however ticks cut it between its chunks and whatever else is in them.
BOOST_AUTO_TEST_CASE(cuts_between_chunks_change_no_bit) {
  constexpr kernels::gpu::model_room room{.rows = 200, .logit_rows = 200, .slots = 3};
  for (const version of : {version::v5_2, version::v6}) {
    const random_weights model(of, base_dims, dtype::f16, 14, true);
    for (const element state_type : {element::f32, element::f16}) {
      kernels::gpu::gpu_options options;
      options.state_type = state_type;
      model_stages gpu(model.weights(), options, room);
      const tokens ids = random_tokens(160, base_dims.vocab, 15), others = random_tokens(33, base_dims.vocab, 16);
      const auto whole = feed(gpu, base_dims, 0, ids, ids.size()), cut = feed(gpu, base_dims, 1, ids, 64);
      BOOST_TEST(same_bits(cut, whole));
      BOOST_TEST(same_bits(state_of(gpu, 1), state_of(gpu, 0)));
      gpu.clear_state(1), gpu.clear_state(2);
      const auto together = tick(gpu, base_dims, {{2, others}, {1, ids}});
      const std::vector<float> own(together.begin() + static_cast<std::ptrdiff_t>(others.size() * base_dims.vocab),
                                   together.end());
      BOOST_TEST(same_bits(own, whole));
      BOOST_TEST(same_bits(state_of(gpu, 1), state_of(gpu, 0)));
    }
  }
}

// Enough decode rows for other kernels to be chosen: the same bits as in ticks of a few rows.
BOOST_AUTO_TEST_CASE(crowds_of_decode_rows_change_no_bit) {
  for (const version of : {version::v4, version::v5_2, version::v6}) {
    const random_weights model(of, base_dims, dtype::bf16, 6);
    change_a_crowd(model.weights(), element::bf16, element::f16, {.rows = 96, .few = 6});
  }
}

// With fast invariance: ticks of many rows by a library.
BOOST_AUTO_TEST_CASE(gemms_of_a_library_stay_near_the_reference) {
  constexpr std::uint32_t rows = 260;
  for (const version of : {version::v4, version::v5_2, version::v6}) {
    const random_weights model(of, base_dims, dtype::f16, 7);
    kernels::gpu::gpu_options options;
    options.invariance = kernels::gpu::invariance::fast;
    library_log log;
    log.idle = true;  // while it is measured
    const auto open = [&]() -> result<std::unique_ptr<kernels::gpu::matmul_library>> {
      return std::unique_ptr<kernels::gpu::matmul_library>(std::make_unique<plain_library>(log));
    };
    model_stages gpu(model.weights(), options, {.rows = rows, .logit_rows = rows, .slots = 2}, open);
    BOOST_TEST(gpu.library().starts_with("plain; "));
    log = {};
    const auto made =
        kernels::make_reference_stages(model.weights(), {.slots = 2, .max_rows = rows, .max_logit_rows = rows});
    BOOST_REQUIRE(made.has_value());
    const tokens ids = random_tokens(rows, base_dims.vocab, 8);
    const auto both = [&](kernels::stages& on) { return tick(on, base_dims, {{1, ids}}); };
    BOOST_TEST(difference(both(gpu), both(**made)) < tolerance(element::f16));
    BOOST_TEST(log.queued >= base_dims.layers * 4u);  // receptance, key, value, output
  }
}

BOOST_AUTO_TEST_CASE(states_move_between_slots_and_back_ends) {
  for_each_version([](version of) {
    const random_weights model(of, of == version::v4 ? base_dims : small_heads, dtype::f32, 8);
    check_states_move(*make_gpu(model.weights(), element::f32), *make_reference(model.weights()), model.dims(),
                      tolerance(element::f32));
  });
}

// The state of version 4 always has 32 bits, besides the rows of its token shifts.
BOOST_AUTO_TEST_CASE(states_in_16_bits_stay_near_those_in_32) {
  for (const version of : {version::v4, version::v6}) {
    const random_weights model(of, base_dims, dtype::f16, 9);
    const auto narrow = make_gpu(model.weights(), element::f16, element::f16),
               wide = make_gpu(model.weights(), element::f16);
    const tokens ids = random_tokens(60, base_dims.vocab, 22);
    BOOST_TEST(difference(feed(*narrow, base_dims, 0, ids, 20), feed(*wide, base_dims, 0, ids, 20)) < 5e-3f);
    BOOST_TEST(difference(state_of(*narrow, 0), state_of(*wide, 0)) < 5e-3f);
    const auto state = state_of(*narrow, 0);
    narrow->write_state(1, state);
    BOOST_TEST(same_bits(state_of(*narrow, 1), state));
  }
}

BOOST_AUTO_TEST_CASE(a_clear_state_is_the_models_own) {
  for_each_version([](version of) {
    const random_weights model(of, base_dims, dtype::f32, 11, of != version::v4);
    const auto gpu = make_gpu(model.weights(), element::f32), reference = make_reference(model.weights());
    const auto fresh = state_of(*reference, 1);
    BOOST_TEST(same_bits(state_of(*gpu, 1), fresh));
    feed(*gpu, base_dims, 1, {1, 2, 3}, 3);
    BOOST_TEST(!same_bits(state_of(*gpu, 1), fresh));
    gpu->clear_state(1);
    BOOST_TEST(same_bits(state_of(*gpu, 1), fresh));
    if (of == version::v4) {
      BOOST_TEST(fresh.back() == kernels::wkv4_empty_exponent);
    }
    const model::state_format narrow(layout_of(model.dims()), dtype::f16);
    BOOST_TEST(same_bits(state_of(*make_gpu(model.weights(), element::f32, element::f16), 1),
                         floats_of(model::state_of(narrow, fresh))));
  });
}

BOOST_AUTO_TEST_CASE(memory_is_planned_exactly) {
  using kernels::gpu::invariance;
  const auto compare = [](version of, element type, const kernels::model_dims& dims, std::uint32_t rows,
                          invariance promise, bool has_chunks) {
    const random_weights model(of, dims, dtype::bf16, 12, of != version::v4);
    kernels::gpu::gpu_options options;
    options.matrix_type = type, options.state_type = element::f16, options.limits.slots = 3;
    options.invariance = promise;
    const kernels::gpu::model_room wanted{.rows = rows, .logit_rows = 8, .slots = 4};
    const memory_plan planned = kernels::gpu::plan_model(model.weights(), options, wanted);
    const kernels::gpu::stream in;
    const std::size_t before = kernels::gpu::device_bytes_held;
    const auto made = kernels::gpu::make_model(model.weights(), options, wanted, in);
    BOOST_TEST(planned.bytes() == kernels::gpu::device_bytes_held - before);
    BOOST_TEST(planned.weight_bytes == made->weight_bytes());
    BOOST_TEST(planned.activation_bytes == made->activation_bytes());
    BOOST_TEST(planned.slot_bytes == made->slot_bytes());
    BOOST_TEST(made->slot_bytes() == model::state_format(layout_of(model.dims()), dtype::f16).bytes());
    BOOST_TEST(made->chunk_tokens() == (has_chunks && kernels::gpu::chunked_wkv6::available() ? 64u : 0u));
  };
  for_each_version([&](version of) {
    const bool has_heads = of != version::v4;
    for (const element type : {element::f32, element::bf16})
      for (const auto& dims : {base_dims, dims_of(128, 3, 64, 200)}) {
        compare(of, type, dims, 40, invariance::standard, false);
        compare(of, type, dims, 80, invariance::standard, has_heads && type == element::bf16);
      }
    compare(of, element::f16, base_dims, 80, invariance::strict, false);
    if (has_heads) compare(of, element::f16, small_heads, 80, invariance::standard, false);
  });
}

BOOST_AUTO_TEST_CASE(an_attention_that_does_not_fill_tiles_is_refused) {
  const random_weights model(version::v6, dims_of(128, 3, 24, 192), dtype::f32, 13);
  const auto checked = kernels::gpu::check_model(model.weights());
  BOOST_REQUIRE(!checked.has_value());
  BOOST_TEST(checked.error().message.starts_with("width of the attention 72 is not a multiple of 64"));
}

BOOST_AUTO_TEST_SUITE_END()
