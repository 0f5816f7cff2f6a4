// Who multiplies what: our kernels and a library, which is a plain product behind a library's interface here, by times
// that the test gives. On a card also the real one.
#include "kernels/gpu/gemm/tuned_matmul.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <deque>

#include "kernels/gpu/gemm/epilogue_rows.hpp"
#include "tests/kernels/gpu/gemm_case.hpp"
#include "tests/kernels/gpu/plain_library.hpp"
#include "tests/support/random_cases.hpp"

using namespace skein;
using namespace skein::test;
using namespace skein::kernels::gpu;
using values = std::vector<float>;

namespace {

constexpr std::uint32_t many = tuned_matmul::library_rows_min;

/// Our products, some rows, a library, and a watch that finds what it is told. `seconds(n)`: of work in which the
/// library was asked n times; ours take one second.
struct multiplier {
  multiplier(element t, std::uint32_t rows_now, std::uint32_t rows_max, std::function<double(std::uint32_t)> seconds)
      : type(t), rows(rows_now), count(rows_now), tuned(plain_matmul(), t, library(), rows_max, watch(seconds)) {}

  std::unique_ptr<matmul_library> library() { return std::make_unique<plain_library>(log); }
  stopwatch watch(std::function<double(std::uint32_t)> seconds) {
    return [this, seconds](stream_handle now, const std::function<result<void>()>& work) -> result<double> {
      const std::uint32_t before = log.queued;
      if (auto r = work(); !r) return r.error();
      if (auto r = wait_for(now); !r) return r.error();
      return log.queued == before ? 1.0 : seconds(log.queued - before);
    };
  }
  void learn(std::span<const gemm> launch) { require(tuned.learn(in, launch, count.data(), rows)); }
  /// How many of them the library did.
  std::uint32_t run(std::span<const gemm> launch) {
    const std::uint32_t before = log.queued;
    require(tuned.run(in, launch, count.data(), rows));
    return log.queued - before;
  }

  const stream in;
  element type;
  std::uint32_t rows;
  library_log log;
  row_count count;
  tuned_matmul tuned;
};

const auto faster = [](std::uint32_t) { return 0.5; };
const auto slower = [](std::uint32_t) { return 2.0; };

gemm_case small_case(std::uint32_t rows, std::uint64_t seed = 1, epilogue how = store_f32) {
  random_numbers random(seed);
  return {random, element::f16, rows, 16, 40, how};
}

}  // namespace

BOOST_AUTO_TEST_CASE(gemms_are_right_with_either_library) {
  for (std::uint64_t seed = random_cases::seed(); seed < random_cases::seed() + 8; ++seed)
    BOOST_TEST_CONTEXT("SKEIN_SEED=" << seed) {
      random_numbers random(seed);
      const element type = random.below(2) == 0 ? element::f16 : element::bf16;
      const std::uint32_t rows = many + random.below(30);
      multiplier by(type, rows, many + 30, [&](std::uint32_t) { return random.below(2) == 0 ? 0.5 : 2.0; });
      std::deque<gemm_case> cases;
      std::vector<gemm> launch;
      std::vector<values> before;
      for (std::uint32_t i = 1 + random.below(4); i > 0; --i) {
        const std::uint32_t outputs = random.below(3) == 0 ? 1 + random.below(60) : 8 * (1 + random.below(9));
        const auto& made =
            cases.emplace_back(random, type, rows, outputs, 1 + random.below(130), pick_epilogue(random));
        launch.push_back(made.p);
        before.push_back(made.out_memory.read(by.in));
      }
      by.learn(launch);
      require(by.in.synchronize());
      for (std::size_t i = 0; i < cases.size(); ++i) {
        cases[i].forget(before[i]);
        launch[i].out = cases[i].p.out;
        launch[i].segments = segments_of(launch[i].matrix.depth(), 1, 264);
      }
      by.run(launch);
      for (const gemm_case& c : cases) c.check_result(by.in, 2);
    }
}

BOOST_AUTO_TEST_CASE(second_gemms_are_learned_and_run_in_a_launch_of_their_own) {
  multiplier by(element::f16, many, many, faster);
  gemm_case first = small_case(many, 1), any = small_case(many, 2), second = small_case(many, 3);
  const device_buffer<std::uint32_t> done(2);
  first.p.when = turn::first;
  second.p.when = turn::second, second.p.done = done.data();
  const std::array launch = {first.p, any.p, second.p};
  by.learn(launch);
  BOOST_TEST(by.run(launch) == 3u);
  for (const gemm_case* each : {&first, &any, &second}) each->check_result(by.in, 2);
  const std::uint32_t queued = by.log.queued;
  by.learn(launch);
  BOOST_TEST(by.log.queued == queued);
}

BOOST_AUTO_TEST_CASE(the_library_multiplies_where_it_was_faster) {
  const gemm_case c = small_case(many + 1);
  multiplier good(element::f16, many + 1, 600, faster), bad(element::f16, many + 1, 600, slower);
  BOOST_TEST(good.run({&c.p, 1}) == 0u);  // nothing was measured
  good.learn({&c.p, 1}), bad.learn({&c.p, 1});
  BOOST_TEST(good.run({&c.p, 1}) == 1u);
  BOOST_TEST(bad.run({&c.p, 1}) == 0u);
  BOOST_TEST(good.tuned.description() == "plain; 16x40 of 512");
  BOOST_TEST(bad.tuned.description() == "plain");
  const auto buckets = good.tuned.bucket_rows();
  const std::vector<std::uint32_t> expected{256, 512, 600};
  BOOST_TEST(buckets == expected, boost::test_tools::per_element());

  good.learn({&c.p, 1});  // known
  BOOST_TEST(good.log.prepared == 1u);
  good.rows = many;  // another bucket
  BOOST_TEST(good.run({&c.p, 1}) == 0u);
  good.learn({&c.p, 1});
  BOOST_TEST(good.log.prepared == 2u);
  BOOST_TEST(good.run({&c.p, 1}) == 1u);
  good.rows = many - 1;
  BOOST_TEST(good.run({&c.p, 1}) == 0u);
  require(good.in.synchronize()), require(bad.in.synchronize());
}

BOOST_AUTO_TEST_CASE(a_launch_is_split_up_only_where_that_is_faster) {
  const gemm_case a = small_case(many, 1), b = small_case(many, 2, {activation_function::tanh});
  const std::array<gemm, 2> launch{a.p, b.p};
  // Alone the library is faster, but not than one launch of ours for both.
  multiplier by(element::f16, many, many, [](std::uint32_t gemms) { return gemms > 1 ? 1.5 : 0.5; });
  by.learn(launch);
  BOOST_TEST(by.run(launch) == 0u);
  by.learn({&launch[1], 1});
  BOOST_TEST(by.run({&launch[1], 1}) == 1u);
  BOOST_TEST(by.log.prepared == 2u);  // what is known of a product serves all its launches
  multiplier good(element::f16, many, many, faster);
  good.learn(launch);
  BOOST_TEST(good.run(launch) == 2u);
  require(by.in.synchronize()), require(good.in.synchronize());
}

BOOST_AUTO_TEST_CASE(ours_multiply_what_the_library_refuses) {
  gemm_case c = small_case(many);
  const values before = c.out_memory.read(stream());
  multiplier by(element::f16, many, many, faster);
  by.learn({&c.p, 1});
  require(by.in.synchronize());
  c.forget(before);
  by.log.refuses = true;
  BOOST_TEST(by.run({&c.p, 1}) == 0u);
  c.check_result(by.in);

  gemm_case odd = small_case(many);
  odd.p.matrix.outputs = 15;
  by.log.refuses = false;
  by.learn({&odd.p, 1});
  BOOST_TEST(by.run({&odd.p, 1}) == 0u);
  BOOST_TEST(by.log.prepared == 1u);
  require(by.in.synchronize());
}

BOOST_AUTO_TEST_CASE(many_rows_are_in_parts_only_where_that_is_faster) {
  static bool in_parts;
  matmul_functions ours = plain_matmul();
  ours.splits = [](std::span<const gemm>, std::uint32_t) { return true; };
  ours.run = [](stream_handle in, element type, std::span<const gemm> launch, const std::uint32_t* count,
                std::uint32_t rows) {
    in_parts = launch[0].how == store_parts;
    BOOST_TEST(launch[0].segments == (in_parts ? 4u : 1u));
    return matmul(in, type, launch, count, rows);
  };
  random_numbers random(1);
  gemm_case c(random, element::f16, many, 8, 250, add_f32);
  c.p.segments = segments_of(c.p.matrix.depth(), 1, 264);
  const row_count count(many);
  const stream in;
  for (const double seconds : {0.8, 1.2}) {
    const auto watch = [&](stream_handle now, const std::function<result<void>()>& work) -> result<double> {
      in_parts = false;
      if (auto r = work(); !r) return r.error();
      if (auto r = wait_for(now); !r) return r.error();
      return in_parts ? seconds : 1.0;
    };
    library_log log;
    tuned_matmul with(ours, element::f16, std::make_unique<plain_library>(log), many, watch);
    BOOST_TEST(with.splits({&c.p, 1}, many - 1));
    BOOST_TEST(!with.splits({&c.p, 1}, many));
    require(with.learn(in, {&c.p, 1}, count.data(), many));
    BOOST_TEST(with.splits({&c.p, 1}, many) == (seconds < 1));
    require(with.run(in, {&c.p, 1}, count.data(), many));
    const device_values parts(values(4 * many * c.p.matrix.outputs), element::f32);
    gemm split = c.p;
    split.how = store_parts, split.out = parts.data(), split.out_stride = split.matrix.outputs;
    split.part_stride = many * split.matrix.outputs;
    require(with.run(in, {&split, 1}, count.data(), many));
    require(in.synchronize());
  }
  const tuned_matmul without(ours, element::f16);
  BOOST_TEST(without.splits({&c.p, 1}, many));
  BOOST_TEST(without.bytes() == 0u);
  BOOST_TEST(without.bucket_rows().empty());
}

BOOST_AUTO_TEST_CASE(an_activation_is_no_part_of_the_time_in_parts) {
  static bool was_in_parts;
  was_in_parts = false;
  matmul_functions ours = plain_matmul();
  ours.splits = [](std::span<const gemm>, std::uint32_t) { return true; };
  ours.run = [](stream_handle in, element type, std::span<const gemm> launch, const std::uint32_t* count,
                std::uint32_t rows) {
    was_in_parts |= launch[0].how == store_parts;
    return matmul(in, type, launch, count, rows);
  };
  random_numbers random(1);
  gemm_case c(random, element::f16, many, 8, 250, {.function = activation_function::tanh});
  c.p.segments = segments_of(c.p.matrix.depth(), 1, 264);
  const row_count count(many);
  const stream in;
  library_log log;
  tuned_matmul with(ours, element::f16, std::make_unique<plain_library>(log), many, seconds_on_device);
  require(with.learn(in, {&c.p, 1}, count.data(), many));
  BOOST_TEST(was_in_parts);
}

BOOST_AUTO_TEST_CASE(the_device_is_a_stopwatch) {
  const gemm_case c = small_case(many);
  const row_count count(many);
  const stream in;
  std::uint32_t queued = 0;
  const auto seconds = seconds_on_device(in, [&] {
    ++queued;
    return matmul(in, element::f16, {&c.p, 1}, count.data(), many);
  });
  BOOST_REQUIRE(seconds.has_value());
  BOOST_TEST(*seconds >= 0);
  BOOST_TEST(queued > 1u);
  const auto failed = seconds_on_device(in, [] {
    return result<void>(error{error_kind::unsupported, "cannot be queued", ""});
  });
  BOOST_CHECK(failed.error().kind == error_kind::unsupported);
}

BOOST_AUTO_TEST_CASE(epilogue_rows_changes_each_value) {
  random_numbers random(random_cases::seed());
  const stream in;
  for (const element type : {element::f32, element::f16, element::bf16})
    for (const epilogue how : epilogues)
      for (const std::uint32_t rows : {1u, 7u, 70u}) {
        if (how.function == activation_function::none) continue;
        const element stored = output_type(how, type);
        const std::uint32_t outputs = 8 * (1 + random.below(40));
        gemm p;
        p.matrix.outputs = outputs, p.out_stride = outputs + 8 * random.below(3), p.how = how;
        values expected = rounded(random_values(random, rows * p.out_stride, 4), stored);
        const device_values memory(expected, stored);
        p.out = memory.data();
        require(epilogue_rows(in, type, p, rows));
        for (std::uint32_t r = 0; r < rows; ++r)
          for (std::uint32_t o = 0; o < outputs; ++o) {
            float& value = expected[r * p.out_stride + o];
            value = apply_epilogue(how, value, 0);
          }
        const values got = memory.read(in);
        BOOST_TEST(difference(got, expected) < gemm_tolerance(stored));
        for (std::uint32_t r = 0; r < rows; ++r)  // between the rows
          for (std::uint32_t o = outputs; o < p.out_stride; ++o)
            BOOST_TEST(got[r * p.out_stride + o] == expected[r * p.out_stride + o]);
      }
}

#if !defined(SKEIN_GPU_EMULATOR)
// Every epilogue and every size with each type, but not all with all: racecheck has to come to the end of it.
BOOST_AUTO_TEST_CASE(the_library_of_the_vendor_multiplies_as_ours) {
  if (const auto library = open_matmul_library(); !library) {
    BOOST_TEST_MESSAGE("skipped: " << library.error().message);
    return;
  }
  const auto by_library_alone = [](stream_handle in, const std::function<result<void>()>& work) -> result<double> {
    static double falling = 1;  // each later measurement is faster: the library wins, with its last algorithm
    if (auto r = work(); !r) return r.error();
    if (auto r = wait_for(in); !r) return r.error();
    return falling *= 0.9;
  };
  const stream in;
  std::uint32_t how = 0;
  for (const element type : {element::f16, element::bf16})
    for (const std::uint32_t rows : {256u, 300u, 1000u})
      for (const std::uint32_t outputs : {8u, 96u, 1032u}) {
        how = (how + 1) % epilogues.size();
        random_numbers random(how + rows);
        gemm_case c(random, type, rows, outputs, 700, epilogues[how]);
        const values before = c.out_memory.read(in);
        tuned_matmul tuned(plain_matmul(), type, std::move(*open_matmul_library()), 1024, by_library_alone);
        const row_count count(rows);
        require(tuned.learn(in, {&c.p, 1}, count.data(), rows));
        c.forget(before);
        BOOST_TEST_CONTEXT("epilogue " << how << ", " << rows << " rows, " << outputs << " outputs") {
          const bool refused = type == element::bf16 && c.p.how.to == destination::f16;
          BOOST_TEST((tuned.description().find(" of ") == std::string::npos) == refused);
          require(tuned.run(in, {&c.p, 1}, count.data(), rows));
          c.check_result(in, 2);
        }
      }
}
#endif
