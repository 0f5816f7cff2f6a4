// Shows that make_cpu_engine serves a trained checkpoint as the reference implementation computes it: logits, scores
// and greedy text of the golden data, in whatever pieces the tokens come. Also what it refuses.
#include "engine/stages/cpu_engine.hpp"

#include <simdjson.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <fstream>

#include "sampling/sampler.hpp"
#include "tests/engine/engine_fixture.hpp"
#include "tests/support/oracle.hpp"

namespace {

using namespace skein;
using namespace skein::engine;
using namespace skein::test;

struct golden_case {
  std::vector<token_id> tokens;
  std::vector<std::int64_t> positions;  // of the logits
  std::vector<float> logits;            // [positions, vocab]
  std::vector<double> margin;           // [tokens] best minus second-best logit
  std::vector<double> logprob_next;     // [tokens - 1]
  std::size_t prompt_len = 0;           // of the kind greedy
};

template <typename T>
std::vector<T> numbers(const simdjson::dom::element& array) {
  std::vector<T> out;
  for (const simdjson::dom::element item : array.get_array()) out.push_back(static_cast<T>(item.get_double().value()));
  return out;
}

golden_case load_golden(const std::string& name, std::size_t vocab) {
  const auto stem = oracle() / "golden" / "tiny-7v0" / name;
  simdjson::dom::parser parser;
  const simdjson::dom::element json = parser.load(stem.string() + ".json");
  golden_case g;
  g.tokens = numbers<token_id>(json["tokens"]);
  g.positions = numbers<std::int64_t>(json["positions"]);
  g.margin = numbers<double>(json["margin"]);
  g.logprob_next = numbers<double>(json["logprob_next"]);
  if (std::uint64_t n = 0; json["prompt_len"].get(n) == simdjson::SUCCESS) g.prompt_len = n;
  g.logits.resize(g.positions.size() * vocab);  // the first array of the file
  std::ifstream bytes(stem.string() + ".bin", std::ios::binary);
  bytes.read(reinterpret_cast<char*>(g.logits.data()), static_cast<std::streamsize>(g.logits.size() * sizeof(float)));
  BOOST_REQUIRE(bytes.good());
  return g;
}

struct opened_model {
  model::checkpoint file;
  model::model_info info;
};

opened_model open_model(const std::string& name) {
  auto file = model::checkpoint::open(oracle() / "models" / name);
  BOOST_REQUIRE(file.has_value());
  auto info = model::describe(*file);
  BOOST_REQUIRE(info.has_value());
  return {std::move(*file), std::move(*info)};
}

cpu_engine_options small_engine() {
  cpu_engine_options options;
  options.slots = 3;
  options.max_tick_tokens = 40;
  options.max_tick_rows = 3;
  options.threads = 2;
  options.model_identity = "0123";
  return options;
}

std::unique_ptr<skein::engine::engine> engine_of(const std::string& name) {
  const opened_model opened = open_model(name);
  auto made = make_cpu_engine(opened.file, opened.info, small_engine());
  BOOST_REQUIRE(made.has_value());
  return std::move(*made);  // the checkpoint is closed from here on
}

// Tolerances of the golden data: largest error by largest logit.
constexpr double fp32_tolerance = 1e-4;
constexpr double bf16_tolerance = 3e-2;

void compare_logits(const std::string& model, double tolerance) {
  const auto e = engine_of(model);
  const std::size_t vocab = e->info().vocab;
  const golden_case golden = load_golden("text-064", vocab);
  e->start(1, greedy(1));
  std::vector<float> logits;  // of every position
  for (std::size_t at = 0; at < golden.tokens.size();) {
    const std::size_t chunk = std::min<std::size_t>(golden.tokens.size() - at, 1 + at);
    tick_plan plan;
    add_prefill(plan, 1, std::span(golden.tokens).subspan(at, std::min<std::size_t>(chunk, 40)), false).logits =
        logits_wanted::all;
    at += plan.tokens.size();
    const auto rows = run_tick(*e, plan);
    logits.insert(logits.end(), rows[0].logits.begin(), rows[0].logits.end());
  }
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < golden.positions.size(); ++i)
    for (std::size_t v = 0; v < vocab; ++v) {
      const double expected = golden.logits[i * vocab + v];
      largest = std::max(largest, std::abs(expected));
      error = std::max(error, std::abs(logits[static_cast<std::size_t>(golden.positions[i]) * vocab + v] - expected));
    }
  BOOST_TEST(error / largest < tolerance);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cpu_engine, *boost::unit_test::precondition(have_oracle))

BOOST_AUTO_TEST_CASE(says_what_it_serves) {
  const auto e = engine_of("tiny-7v0-bf16.pth");
  BOOST_TEST(e->info().device == "cpu");
  BOOST_TEST(e->info().model_identity == "0123");
  BOOST_TEST(e->info().weight_type == "bf16");
  BOOST_TEST(e->info().vocab == 256u);
  BOOST_TEST(e->info().slots == 3u);
  BOOST_TEST(e->info().state.floats() == 12u * (2 * 64 + 64 * 64));
  BOOST_TEST(e->info().memory.weight_bytes > 0u);
}

BOOST_AUTO_TEST_CASE(its_plan_is_what_it_takes) {
  const opened_model model = open_model("tiny-7v0-bf16.pth");
  const auto int4 = *kernels::weight_plan::parse("int4", "att.*@0-3=int8,ffn.*=fp8", dtype::bf16);
  for (const std::optional<kernels::weight_plan>& formats :
       {std::optional<kernels::weight_plan>(), std::optional<kernels::weight_plan>(dtype::f32),
        std::optional<kernels::weight_plan>(dtype::f16), std::optional(int4)}) {
    cpu_engine_options options;
    options.formats = formats;
    options.slots = 5, options.max_tick_tokens = 100, options.max_tick_rows = 5;
    const auto planned = plan_cpu_engine(model.file, model.info, options);
    const auto made = make_cpu_engine(model.file, model.info, options);
    BOOST_REQUIRE(planned.has_value());
    BOOST_REQUIRE(made.has_value());
    BOOST_CHECK(*planned == (*made)->info().memory);
  }
}

BOOST_AUTO_TEST_CASE(logits_are_the_reference_s) {
  compare_logits("tiny-7v0.pth", fp32_tolerance);
  compare_logits("tiny-7v0.safetensors", fp32_tolerance);
  compare_logits("tiny-7v0-bf16.pth", bf16_tolerance);
}

BOOST_AUTO_TEST_CASE(greedy_text_is_the_reference_s) {
  const auto e = engine_of("tiny-7v0.pth");
  const golden_case golden = load_golden("greedy", e->info().vocab);
  const auto prompt = std::span(golden.tokens).first(golden.prompt_len);
  const auto expected = std::span(golden.tokens).subspan(golden.prompt_len);
  const float largest = std::ranges::max(golden.logits, {}, [](float z) { return std::abs(z); });
  const auto text = generate_alone(*e, 0, prompt, greedy(static_cast<std::uint32_t>(expected.size())), 5);
  std::size_t judged = 0;
  while (judged < expected.size() &&
         golden.margin[golden.prompt_len - 1 + judged] > 2 * fp32_tolerance * std::abs(largest))
    ++judged;
  BOOST_TEST(judged > 10u);
  BOOST_TEST(std::span(text.tokens).first(judged) == expected.first(judged), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(scores_are_the_reference_s_across_chunks) {
  const auto e = engine_of("tiny-7v0.pth");
  const golden_case golden = load_golden("text-300", e->info().vocab);
  constexpr std::size_t chunk = 37;
  e->start(2, greedy(1));
  std::vector<float> scores, before;
  for (std::size_t at = 0; at < golden.tokens.size(); at += chunk) {
    const auto piece = std::span(golden.tokens).subspan(at, std::min(chunk, golden.tokens.size() - at));
    if (!before.empty()) scores.push_back(sampling::log_probabilities(before, piece[0], 0).logprob);
    tick_plan plan;
    row& r = add_prefill(plan, 2, piece, false);
    r.kind = row_kind::score;
    r.logits = logits_wanted::last;
    const auto rows = run_tick(*e, plan);
    for (const auto& score : rows[0].scores) scores.push_back(score.logprob);
    before = rows[0].logits;
  }
  BOOST_REQUIRE(scores.size() == golden.logprob_next.size());
  for (std::size_t i = 0; i < scores.size(); ++i) BOOST_TEST(std::abs(scores[i] - golden.logprob_next[i]) < 2e-3);
}

BOOST_AUTO_TEST_CASE(refuses_what_it_cannot_serve) {
  const opened_model v7 = open_model("tiny-7v0.pth");
  cpu_engine_options options = small_engine();
  options.formats = dtype::i8;
  const auto int8 = make_cpu_engine(v7.file, v7.info, options);
  BOOST_REQUIRE(!int8.has_value());
  BOOST_CHECK(int8.error().kind == error_kind::unsupported);
  BOOST_TEST(int8.error().message == "matrices of type int8 are not supported on the CPU; use fp32, bf16 or fp16");
}

BOOST_AUTO_TEST_SUITE_END()
