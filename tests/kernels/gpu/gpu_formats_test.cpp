// Whole models with quantised matrices on the GPU's kernels, run by the emulator: the CPU's results with the same
// formats, and the same bits for any cuts and batches.
#include <boost/test/unit_test.hpp>
#include <optional>
#include <string_view>

#include "kernels/gpu/model/decoding_room.hpp"
#include "kernels/weights/weight_plan.hpp"
#include "tests/kernels/gpu/gemm_checks.hpp"
#include "tests/kernels/gpu/model_checks.hpp"
#include "tests/kernels/random_weights.hpp"
#if defined(SKEIN_GPU_EMULATOR)
#include "kernels/gpu/runtime/emulator/early_reads.hpp"
#endif

using namespace skein;
using namespace skein::test;

namespace {

using version = random_weights::version;

constexpr kernels::model_dims dims{.layers = 2,
                                   .embd = 128,
                                   .heads = 2,
                                   .head_size = 64,
                                   .ffn = 448,
                                   .vocab = 67,
                                   .rank_w = 13,
                                   .rank_a = 9,
                                   .rank_v = 20,
                                   .rank_g = 70,
                                   .rank_x = 5};

kernels::weight_plan plan_of(const char* name, const char* overrides, dtype base) {
  auto plan = kernels::weight_plan::parse(name, overrides, base);
  BOOST_REQUIRE(plan.has_value());
  return std::move(*plan);
}

stages_ptr make_quantised(const kernels::model_weights& weights, element type, const kernels::weight_plan& plan,
                          kernels::gpu::invariance invariance = kernels::gpu::invariance::standard,
                          const kernels::gpu::model_room& space = room) {
  kernels::gpu::gpu_options options;
  options.invariance = invariance;
  options.matrix_type = type;
  options.formats = plan;
  return std::make_unique<model_stages>(weights, options, space);
}

stages_ptr make_on_cpu(const kernels::model_weights& weights, const kernels::weight_plan& plan) {
  auto made = kernels::make_cpu_stages(weights, plan, limits, {});
  BOOST_REQUIRE(made.has_value());
  return std::move(*made);
}

void compare_with_the_cpu(const kernels::model_weights& weights, element type, const char* name,
                          const char* overrides = "") {
  std::optional<imposed_card> card;  // a Hopper GPU also rounds the inputs of fp8: see gpu_fp8_matmul_test
  if (std::string_view(name) == "fp8") card.emplace("a100");
  const auto plan = plan_of(name, overrides, stored_as(type));
  const auto gpu = make_quantised(weights, type, plan), cpu = make_on_cpu(weights, plan);
  const auto unquantised = make_gpu(weights, type);
  const tokens ids = random_tokens(40, dims.vocab, 2);
  const auto got = feed(*gpu, dims, 1, ids, 16), expected = feed(*cpu, dims, 1, ids, 40);
  BOOST_TEST_CONTEXT(name << ' ' << overrides << ", type " << static_cast<int>(type)) {
    BOOST_REQUIRE(gpu->status().has_value());
    const float permitted = std::max(tolerance(type), 3e-4f);  // the CPU rounds activations to 16-bit integers
    BOOST_TEST(difference(got, expected) < permitted);
    BOOST_TEST(difference(state_of(*gpu, 1), state_of(*cpu, 1)) < permitted);
    BOOST_TEST(!same_bits(got, feed(*unquantised, dims, 1, ids, 16)));  // the formats are in use
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(quantised_models_equal_those_of_the_cpu) {
  for (const version of : {version::v4, version::v5_2, version::v6}) {
    const random_weights model(of, dims, dtype::bf16, 1);
    compare_with_the_cpu(model.weights(), element::f16, "int8");
    compare_with_the_cpu(model.weights(), element::bf16, "nf4");
    compare_with_the_cpu(model.weights(), of == version::v6 ? element::bf16 : element::f16, "fp8");
  }
  const random_weights model(version::v6, dims, dtype::bf16, 2);
  compare_with_the_cpu(model.weights(), element::f16, "int4", "att.key=int8-32,att.value@1=nf4-128,ffn.value=bf16");
  compare_with_the_cpu(model.weights(), element::f32, "int8");
}

#if SKEIN_GPU_EMULATOR == 32
// Kernels of Hopper decode beside the products; others decode again for each tile of rows.
BOOST_AUTO_TEST_CASE(matrices_are_decoded_first_where_kernels_decode_instead_of_multiplying) {
  using kernels::gpu::decoding_room;
  kernels::gpu::gpu_options options;
  for (const char* name : {"int8", "int4", "nf4", "fp8"}) BOOST_TEST_CONTEXT(name) {
      options.formats = plan_of(name, "", dtype::f16);
      {
        const kernels::gpu::emulator::other_device ampere({.sm_count = 3, .compute_capability_major = 8});
        BOOST_TEST(decoding_room::planned_bytes(dims, options, 1535) == 0);
        // Four projections of 128 by 128, or an FFN key of 448 by 128.
        BOOST_TEST(decoding_room::planned_bytes(dims, options, 1536) == 4 * 128 * 128 * 2);
      }
      const kernels::gpu::emulator::other_device hopper({.sm_count = 3, .compute_capability_major = 9});
      BOOST_TEST(decoding_room::planned_bytes(dims, options, 1536) == 0);
    }
}

// On a device whose tensor cores multiply e4m3. The CPU keeps the activations that fp8 products round there, and
// another GPU nearly does.
BOOST_AUTO_TEST_CASE(models_whose_inputs_are_rounded_to_fp8_stay_close_and_invariant) {
  const tokens ids = random_tokens(70, dims.vocab, 6);
  for (const version of : {version::v4, version::v5_2, version::v6, version::v7}) {
    const random_weights model(of, dims, dtype::bf16, 5);
    for (const char* overrides : {"", "att.key=int8,head=fp8"})
      BOOST_TEST_CONTEXT("version " << static_cast<int>(of) << ' ' << overrides) {
        const auto plan = plan_of("fp8", overrides, dtype::bf16);
        const auto make = [&] {
          return make_quantised(model.weights(), element::bf16, plan, kernels::gpu::invariance::strict);
        };
        const auto expected = feed(*make_on_cpu(model.weights(), plan), dims, 0, ids, 70);
        const float without = [&] {
          const kernels::gpu::emulator::other_device ampere({.sm_count = 3, .compute_capability_major = 8});
          return difference(feed(*make(), dims, 0, ids, 70), expected);
        }();
        const kernels::gpu::emulator::other_device hopper({.sm_count = 3, .compute_capability_major = 9});
        const auto gpu = make();
        const auto whole = feed(*gpu, dims, 0, ids, 70);
        const auto state = state_of(*gpu, 0);
        const float change = difference(whole, expected);
        BOOST_TEST(change < 0.25f);
        BOOST_TEST(change > 1.2f * without);
        for (const std::size_t chunk : {1, 9, 33}) {
          BOOST_TEST(same_bits(feed(*gpu, dims, 2, ids, chunk), whole));
          BOOST_TEST(same_bits(state_of(*gpu, 2), state));
        }
      }
  }
}

// Where no prompt goes in chunks.
BOOST_AUTO_TEST_CASE(cuts_and_batches_change_no_bit_of_quantised_models) {
  const kernels::gpu::emulator::other_device hopper({.sm_count = 3, .compute_capability_major = 9});
  const random_weights model(version::v6, dims, dtype::bf16, 3);
  const auto plan = plan_of("int4", "", dtype::f16);
  compare_with_the_cpu(model.weights(), element::f16, "int4");
  const auto gpu = make_quantised(model.weights(), element::f16, plan, kernels::gpu::invariance::strict);
  const tokens ids = random_tokens(70, dims.vocab, 4);
  const auto whole = feed(*gpu, dims, 0, ids, 70);
  const auto state = state_of(*gpu, 0);
  for (const std::size_t chunk : {1, 9, 33}) {
    BOOST_TEST(same_bits(feed(*gpu, dims, 2, ids, chunk), whole));
    BOOST_TEST(same_bits(state_of(*gpu, 2), state));
  }
}
#endif

#if !defined(SKEIN_GPU_EMULATOR) || SKEIN_GPU_EMULATOR == 32
// Low-rank pairs run beside the quantised products, in other ways for each number of rows.
BOOST_AUTO_TEST_CASE(cuts_change_no_bit_of_quantised_models_with_low_rank_pairs) {
#if defined(SKEIN_GPU_EMULATOR)
  const kernels::gpu::emulator::other_device hopper(
      {.sm_count = 132, .compute_capability_major = 9, .shared_bytes_per_block = 227 << 10});
  constexpr std::size_t chunks[] = {7, 13, 32, 33, 65};
#else
  constexpr std::size_t chunks[] = {1, 8, 13, 32, 33, 64, 65, 128};
#endif
  const random_weights model(version::v7, dims, dtype::bf16, 7);
  const tokens ids = random_tokens(130, dims.vocab, 8);
  constexpr std::pair<const char*, const char*> plans[] = {
      {"int8", ""}, {"int4", ""}, {"nf4", ""}, {"fp8", ""}, {"int4", "att.key=int8,att.value=bf16"}};
  for (const auto& [name, overrides] : plans) BOOST_TEST_CONTEXT(name << ' ' << overrides) {
      const auto gpu = make_quantised(model.weights(), element::bf16, plan_of(name, overrides, dtype::bf16),
                                      kernels::gpu::invariance::strict, {.rows = 130, .logit_rows = 130, .slots = 3});
      const auto whole = feed(*gpu, dims, 0, ids, ids.size());
      const auto state = state_of(*gpu, 0);
      for (const std::size_t chunk : chunks) {
        BOOST_TEST_CONTEXT("chunks of " << chunk) {
          BOOST_TEST(same_bits(feed(*gpu, dims, 2, ids, chunk), whole));
          BOOST_TEST(same_bits(state_of(*gpu, 2), state));
        }
      }
    }
}
#endif

#if SKEIN_GPU_EMULATOR == 32
// Kernels may start while those before them run, and then request what these do not write.
BOOST_AUTO_TEST_CASE(launches_of_models_wait_for_their_inputs) {
  const kernels::gpu::emulator::other_device hopper(
      {.sm_count = 132, .compute_capability_major = 9, .shared_bytes_per_block = 227 << 10});
  const tokens ids = random_tokens(100, dims.vocab, 9);
  for (const version of : {version::v4, version::v5_2, version::v6, version::v7}) {
    const random_weights model(of, dims, dtype::bf16, 8);
    for (const char* name : {"bf16", "int4", "fp8"})
      BOOST_TEST_CONTEXT("version " << static_cast<int>(of) << ' ' << name) {
        const auto gpu =
            make_quantised(model.weights(), element::bf16, plan_of(name, "", dtype::bf16),
                           kernels::gpu::invariance::standard, {.rows = 100, .logit_rows = 100, .slots = 3});
        const kernels::gpu::emulator::early_reads reads;
        for (const std::size_t rows : {3, 40, 100})
          static_cast<void>(feed(*gpu, dims, 0, {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(rows)}, rows));
        BOOST_TEST(gpu->status().has_value());
      }
  }
}
#endif
