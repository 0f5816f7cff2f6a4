// Shows that a sequence's logits, sampled tokens and state have the same bits however the CPU engine computes them:
// prefill chunks of 1, 3, 16, 64 and 512 tokens, 0, 1, 7 and 63 other rows that prefill and decode at random, one to
// three threads, any slot and any place in the tick. What the sequence gets alone, in one piece and on one thread, is
// the measure. Here run some of the combinations; the case with the label nightly runs all. A failing run prints its
// seed; SKEIN_SEED=n repeats it.
#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <random>

#include "engine/stages/cpu_engine.hpp"
#include "model/checkpoint.hpp"
#include "tests/engine/engine_fixture.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/random_cases.hpp"

namespace {

using namespace skein;
using namespace skein::engine;
using namespace skein::test;
namespace utf = boost::unit_test;

const std::filesystem::path made_models = SKEIN_GOLDEN_MODELS;
constexpr std::uint32_t samples = 8;
constexpr std::uint32_t mate_chunk_max = 5;

struct combination {
  std::uint32_t chunk, mates, threads;
  dtype type;
};

std::ostream& operator<<(std::ostream& out, const combination& c) {
  return out << "chunk " << c.chunk << ", " << c.mates << " mates, " << c.threads << " threads, " << to_string(c.type);
}

/// How much of the prompt is fed in such chunks: enough for several, and for a last one that is not full.
std::size_t prompt_tokens(std::uint32_t chunk) { return chunk + chunk / 16 + 20; }

/// All that the sequence under test got.
struct trace {
  std::vector<float> logits;     // after each token of the prompt and each sampled token but the last
  std::vector<token_id> tokens;  // sampled
  std::vector<float> state;      // in the end
};

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// One model, and the sequence under test on it.
class subject {
 public:
  explicit subject(const std::filesystem::path& path) : file_(open(path)), info_(describe(file_)) {
    std::mt19937_64 random(7);
    prompt_.resize(prompt_tokens(512));
    for (token_id& t : prompt_) t = random_token(random);
  }

  [[nodiscard]] trace run(const combination& how, std::uint64_t seed) const {
    std::mt19937_64 random(seed);
    const auto e = engine_for(how);
    const auto prompt = std::span(prompt_).first(prompt_tokens(how.chunk));
    std::vector<bool> can_decode(how.mates + 1, false);
    const auto own = static_cast<slot_id>(random() % (how.mates + 1));
    for (slot_id slot = 0; slot <= how.mates; ++slot)
      e->start(slot, slot == own ? greedy(samples) : seeded(slot, 1 << 20));

    trace got;
    for (std::size_t fed = 0; got.tokens.size() < samples;) {
      tick_plan plan;
      std::vector<slot_id> order(how.mates + 1);
      std::iota(order.begin(), order.end(), 0u);
      std::ranges::shuffle(order, random);
      for (const slot_id slot : order) {
        if (slot != own) {
          add_mate(plan, slot, can_decode, random);
        } else if (fed < prompt.size()) {
          const auto chunk = prompt.subspan(fed, std::min<std::size_t>(how.chunk, prompt.size() - fed));
          fed += chunk.size();
          add_prefill(plan, slot, chunk, fed == prompt.size()).logits = logits_wanted::all;
        } else {
          add_decode(plan, slot).logits = logits_wanted::last;
        }
      }
      const auto rows = run_tick(*e, plan);
      const row_result& mine = *std::ranges::find(rows, own, &row_result::slot);
      got.logits.insert(got.logits.end(), mine.logits.begin(), mine.logits.end());
      if (mine.sampled) got.tokens.push_back(mine.token);
    }
    got.state = state_of(*e, own);
    return got;
  }

  /// What the sequence gets alone, in one piece and on one thread, when this much of its prompt is fed.
  [[nodiscard]] trace alone(const combination& how) const {
    const auto e = engine_for({512, 0, 1, how.type});
    const auto prompt = std::span(prompt_).first(prompt_tokens(how.chunk));
    e->start(0, greedy(samples));
    trace got;
    for (row_result last; got.tokens.size() < samples; got.tokens.push_back(last.token)) {
      tick_plan plan;
      if (got.tokens.empty()) {
        add_prefill(plan, 0, prompt, true).logits = logits_wanted::all;
      } else {
        add_decode(plan, 0).logits = logits_wanted::last;
      }
      last = run_tick(*e, plan).front();
      got.logits.insert(got.logits.end(), last.logits.begin(), last.logits.end());
    }
    got.state = state_of(*e, 0);
    return got;
  }

  void compare(const std::vector<combination>& combinations) const {
    for (const combination& how : combinations) {
      const std::uint64_t seed = given_seed().value_or(how.chunk * 1000 + how.mates * 10 + how.threads);
      BOOST_TEST_CONTEXT(file_.path().filename().string() << ", " << how << ", SKEIN_SEED=" << seed) {
        const trace expected = alone(how), got = run(how, seed);
        BOOST_TEST(got.tokens == expected.tokens, boost::test_tools::per_element());
        BOOST_TEST(same_bits(got.logits, expected.logits));
        BOOST_TEST(same_bits(got.state, expected.state));
      }
    }
  }

 private:
  static model::checkpoint open(const std::filesystem::path& path) {
    auto file = model::checkpoint::open(path);
    BOOST_REQUIRE_MESSAGE(file.has_value(), path);
    return std::move(*file);
  }

  static model::model_info describe(const model::checkpoint& file) {
    auto info = model::describe(file);
    BOOST_REQUIRE(info.has_value());
    return std::move(*info);
  }

  [[nodiscard]] std::unique_ptr<skein::engine::engine> engine_for(const combination& how) const {
    cpu_engine_options options;
    options.formats = how.type;
    options.slots = how.mates + 1;
    options.max_tick_tokens = static_cast<std::uint32_t>(prompt_.size()) + how.mates * mate_chunk_max;
    options.max_tick_rows = how.mates + 1;
    options.threads = how.threads;
    auto made = make_cpu_engine(file_, info_, options);
    BOOST_REQUIRE(made.has_value());
    return std::move(*made);
  }

  [[nodiscard]] token_id random_token(std::mt19937_64& random) const {
    return static_cast<token_id>(random() % info_.vocab);
  }

  /// A mate feeds some tokens, after which it may draw one, or decodes, or rests.
  void add_mate(tick_plan& plan, slot_id slot, std::vector<bool>& can_decode, std::mt19937_64& random) const {
    if (can_decode[slot] && random() % 4 != 0) {
      add_decode(plan, slot);
    } else if (random() % 4 != 0) {
      std::vector<token_id> tokens(1 + random() % mate_chunk_max);
      for (token_id& t : tokens) t = random_token(random);
      can_decode[slot] = random() % 2 == 0;
      add_prefill(plan, slot, tokens, can_decode[slot]);
    }
  }

  model::checkpoint file_;
  model::model_info info_;
  std::vector<token_id> prompt_;
};

boost::test_tools::assertion_result have_models(utf::test_unit_id unit) {
  if (const auto oracle = have_oracle(unit); !oracle) return oracle;
  boost::test_tools::assertion_result answer(std::filesystem::exists(made_models / "recital.safetensors"));
  answer.message() << "no models in " << made_models << ": run tests/golden/make_models.py";
  return answer;
}

constexpr std::array types = {dtype::f32, dtype::bf16, dtype::f16};

}  // namespace

BOOST_AUTO_TEST_SUITE(bitwise, *utf::precondition(have_models))

BOOST_AUTO_TEST_CASE(some_combinations) {
  for (const auto& path : {oracle() / "models" / "tiny-7v0.pth", made_models / "gen-7.safetensors"}) {
    subject(path).compare({{1, 7, 2, dtype::f32},
                           {3, 63, 3, dtype::bf16},
                           {16, 1, 1, dtype::f16},
                           {16, 63, 2, dtype::f32},
                           {64, 7, 3, dtype::bf16},
                           {512, 1, 2, dtype::f32}});
  }
}

BOOST_AUTO_TEST_CASE(every_combination, *utf::disabled() * utf::label("nightly")) {
  for (const auto& path : {oracle() / "models" / "tiny-7v0.pth", oracle() / "models" / "tiny-7v0-bf16.pth",
                           oracle() / "models" / "quirk-mixed.pth", made_models / "tiny-7v0-tuned.safetensors",
                           made_models / "gen-7.safetensors", made_models / "gen-7-tuned.safetensors",
                           made_models / "gen-7-world.safetensors"}) {
    std::vector<combination> all;
    for (const std::uint32_t chunk : {1u, 3u, 16u, 64u, 512u})
      for (const std::uint32_t mates : {0u, 1u, 7u, 63u})
        for (const std::uint32_t threads : {1u, 2u, 3u})
          for (const dtype type : types) all.push_back({chunk, mates, threads, type});
    subject(path).compare(all);
  }
}

BOOST_AUTO_TEST_SUITE_END()
