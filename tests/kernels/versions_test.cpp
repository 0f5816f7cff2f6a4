// Every version on the CPU: it computes what the reference does, with the same bits however the tokens are fed, beside
// whatever other sequences, on any number of threads; states move; memory is planned exactly.
#include <boost/test/unit_test.hpp>
#include <string>

#include "kernels/cpu/aligned_buffer.hpp"
#include "kernels/make_stages.hpp"
#include "kernels/ops.hpp"
#include "model/state_layout.hpp"
#include "tests/kernels/every_target.hpp"
#include "tests/kernels/random_weights.hpp"
#include "tests/kernels/stage_runs.hpp"
#include "tests/kernels/states_move.hpp"

namespace {

using namespace skein;
using namespace skein::test;
using version = random_weights::version;

constexpr version versions[] = {version::v4, version::v5_1, version::v5_1_log, version::v5_2, version::v6, version::v7};
constexpr const char* names[] = {"4", "5.1", "5.1 without gate", "5.2", "6", "7"};

kernels::model_dims dims_of(std::uint32_t embd, std::uint32_t head_size, std::uint32_t ffn, std::uint32_t rank) {
  return {.layers = 2,
          .embd = embd,
          .heads = embd / head_size,
          .head_size = head_size,
          .ffn = ffn,
          .vocab = 67,
          .rank_w = rank,
          .rank_a = rank + 2,
          .rank_v = rank + 1,
          .rank_g = 2 * rank,
          .rank_x = rank};
}
const kernels::model_dims base_dims = dims_of(128, 64, 448, 16), wide_dims = dims_of(192, 64, 500, 13),
                          odd_dims = dims_of(72, 8, 101, 3);

/// Both hold the same weights exactly and compute in fp32; 40 tokens of feedback enlarge each rounding.
float tolerance(version of) { return of == version::v7 ? 1e-5f : 2e-5f; }

std::unique_ptr<kernels::stages> cpu_of(const random_weights& model, dtype type, std::uint32_t threads = 3) {
  auto made = kernels::make_cpu_stages(model.weights(), type,
                                       {.slots = 5, .max_rows = 80, .max_logit_rows = 80, .threads = threads});
  BOOST_REQUIRE(made.has_value());
  return std::move(*made);
}

std::unique_ptr<kernels::stages> reference_of(const random_weights& model) {
  auto made = kernels::make_reference_stages(model.weights(), {.slots = 5, .max_rows = 80, .max_logit_rows = 80});
  BOOST_REQUIRE(made.has_value());
  return std::move(*made);
}

template <typename Body>
void for_each_version(const Body& body) {
  for (std::size_t i = 0; i < std::size(versions); ++i) BOOST_TEST_CONTEXT("version " << names[i]) {
      body(versions[i]);
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(cpu_equals_the_reference) {
  for_each_version([](version of) {
    for_every_target([&] {
      for (const auto& dims : {base_dims, wide_dims, odd_dims}) {
        for (const dtype type : {dtype::f32, dtype::bf16, dtype::f16}) {
          const random_weights model(of, dims, type, 1, of != version::v4 && type == dtype::bf16);
          const auto cpu = cpu_of(model, type), reference = reference_of(model);
          const tokens ids = random_tokens(40, dims.vocab, 2);
          const auto got = feed(*cpu, dims, 1, ids, 16), expected = feed(*reference, dims, 1, ids, 40);
          BOOST_TEST_CONTEXT("width " << dims.embd << ", " << to_string(type)) {
            BOOST_TEST(difference(got, expected) < tolerance(of));
            BOOST_TEST(difference(state_of(*cpu, 1), state_of(*reference, 1)) < tolerance(of));
          }
        }
      }
    });
  });
}

BOOST_AUTO_TEST_CASE(chunks_give_the_same_bits) {
  for_each_version([](version of) {
    for_every_target([&] {
      for (const auto& dims : {base_dims, odd_dims}) {
        const random_weights model(of, dims, dtype::bf16, 3);
        const auto cpu = cpu_of(model, dtype::bf16);
        const tokens ids = random_tokens(64, dims.vocab, 4);
        const auto whole = feed(*cpu, dims, 0, ids, 64);
        const auto state = state_of(*cpu, 0);
        for (const std::size_t chunk : {1, 3, 16}) {
          BOOST_TEST(same_bits(feed(*cpu, dims, 2, ids, chunk), whole));
          BOOST_TEST(same_bits(state_of(*cpu, 2), state));
        }
      }
    });
  });
}

BOOST_AUTO_TEST_CASE(threads_give_the_same_bits) {
  for_each_version([](version of) {
    for (const auto& dims : {wide_dims, odd_dims}) {
      const random_weights model(of, dims, dtype::f16, 5);
      const tokens ids = random_tokens(50, dims.vocab, 6);
      const auto one = cpu_of(model, dtype::f16, 1);
      const auto logits = feed(*one, dims, 0, ids, 20);
      for (std::uint32_t threads = 2; threads <= 4; ++threads) {
        const auto cpu = cpu_of(model, dtype::f16, threads);
        BOOST_TEST(same_bits(feed(*cpu, dims, 0, ids, 20), logits));
        BOOST_TEST(same_bits(state_of(*cpu, 0), state_of(*one, 0)));
      }
    }
  });
}

// Random ticks of random pieces: each sequence must end as if it had been alone.
BOOST_AUTO_TEST_CASE(results_do_not_depend_on_batch_composition) {
  constexpr std::uint32_t sequences = 5;
  for_each_version([](version of) {
    for (const auto& dims : {base_dims, odd_dims}) {
      const random_weights model(of, dims, dtype::bf16, 7, of != version::v4);
      const auto cpu = cpu_of(model, dtype::bf16);
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        random_numbers random(seed);
        std::vector<tokens> ids;
        for (std::uint32_t s = 0; s < sequences; ++s)
          ids.push_back(random_tokens(20 + random.below(30), dims.vocab, seed * 100 + s));
        const auto logits = feed_in_batch(*cpu, dims, ids, 14, seed);
        BOOST_TEST_CONTEXT("seed " << seed) {
          for (std::uint32_t s = 0; s < sequences; ++s) {
            const auto state = state_of(*cpu, s);
            BOOST_TEST(same_bits(feed(*cpu, dims, s, ids[s], 80), logits[s]));
            BOOST_TEST(same_bits(state_of(*cpu, s), state));
          }
        }
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(states_move_between_slots_and_back_ends) {
  for_each_version([](version of) {
    const random_weights model(of, odd_dims, dtype::f32, 8);
    check_states_move(*cpu_of(model, dtype::f32), *reference_of(model), model.dims(), tolerance(of));
  });
}

BOOST_AUTO_TEST_CASE(a_clear_state_is_the_models_own) {
  for_each_version([](version of) {
    const random_weights model(of, odd_dims, dtype::f32, 11, of != version::v4);
    const auto cpu = cpu_of(model, dtype::f32), reference = reference_of(model);
    const auto fresh = state_of(*reference, 1);
    BOOST_TEST(same_bits(state_of(*cpu, 1), fresh));
    feed(*cpu, odd_dims, 1, {1, 2, 3}, 3);
    BOOST_TEST(!same_bits(state_of(*cpu, 1), fresh));
    cpu->clear_state(1);
    BOOST_TEST(same_bits(state_of(*cpu, 1), fresh));
    if (of == version::v4) {
      BOOST_TEST(fresh.back() == kernels::wkv4_empty_exponent);
    }
  });
}

BOOST_AUTO_TEST_CASE(memory_is_planned_exactly) {
  for_each_version([](version of) {
    for (const dtype type : {dtype::f32, dtype::bf16}) {
      const random_weights model(of, base_dims, dtype::bf16, 12, of != version::v4);
      const kernels::stage_limits limits{.slots = 3, .max_rows = 40, .max_logit_rows = 8, .threads = 2};
      const auto planned = kernels::plan_cpu_stages(model.weights(), type, limits);
      BOOST_REQUIRE(planned.has_value());
      const auto before = kernels::cpu::zeroed_bytes_held();
      const auto stages = kernels::make_cpu_stages(model.weights(), type, limits);
      BOOST_REQUIRE(stages.has_value());
      const auto taken = (*stages)->memory();
      BOOST_TEST(planned->weight_bytes == taken.weight_bytes);
      BOOST_TEST(planned->activation_bytes == taken.activation_bytes);
      BOOST_TEST(planned->slot_bytes == taken.slot_bytes);
      BOOST_TEST(planned->bytes() == kernels::cpu::zeroed_bytes_held() - before);
    }
  });
}
