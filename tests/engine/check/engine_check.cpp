// Compares an engine with the CPU engine in fp32, which the goldens of the reference vouch for, on one model:
//   engine_check MODEL TOKENS_FILE DTYPE DEVICE STATE_DTYPE DRAWS [INVARIANCE]
// TOKENS_FILE holds a sequence of ids a line. Teacher-forced over whole sequences, in several cuts and batches, logits
// must be near and the best token the same wherever the margin is more than twice what is permitted; rows alone must
// have the bits of rows in a batch; greedy and seeded texts of DRAWS tokens must be the same alone and in a batch, and
// greedy ones those of the CPU up to its first narrow margin. With the invariance strict, the bits must not depend on
// cuts either; with fast, bits are not compared. JSON to stdout; 0: all held, 1: something did not.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>

#include "app/open_model.hpp"
#include "cli/token_list.hpp"
#include "protocol/json/json_writer.hpp"
#include "tests/engine/check/driven_engine.hpp"

using namespace skein;
using namespace skein::test;

namespace {

constexpr std::uint32_t prompt_tokens = 16, tick_tokens = 1024, alone_max = 8;

struct options {
  std::string model, tokens_file, dtype, device, state_dtype;
  std::uint32_t samples;
  std::string invariance = "default";
};

/// The oracle's bounds: largest difference as a share of the largest logit.
double permitted_share(const std::string& dtype) { return dtype == "fp32" ? 1e-4 : dtype == "bf16" ? 3e-2 : 5e-3; }

class report {
 public:
  explicit report(const options& of, const engine::engine_info& info) : json_(text_) {
    json_.begin_object().key("model").value(of.model).key("device").value(info.device).key("dtype").value(of.dtype);
    json_.key("state_dtype").value(of.state_dtype).key("invariance").value(of.invariance).key("checks").begin_array();
  }
  template <typename... Figures>
  void add(const std::string& what, bool ok, const Figures&... name_and_value) {
    json_.begin_object().key("check").value(what).key("ok").value(ok);
    put(name_and_value...);
    json_.end_object();
    all_ok_ = all_ok_ && ok;
    std::fprintf(stderr, "%s %s\n", ok ? "ok    " : "FAILED", what.c_str());
  }
  int finish() {
    json_.end_array().key("ok").value(all_ok_).end_object();
    std::printf("%s\n", text_.c_str());
    return all_ok_ ? 0 : 1;
  }

 private:
  void put() {}
  template <typename Value, typename... Rest>
  void put(const char* name, Value value, const Rest&... rest) {
    json_.key(name).value(value);
    put(rest...);
  }

  std::string text_;
  protocol::json_writer json_;
  bool all_ok_ = true;
};

sequences read_sequences(const std::string& path, std::uint32_t vocab) {
  sequences all;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    auto ids = cli::parse_tokens(line);
    if (!ids) throw std::runtime_error(path + ": " + ids.error().message);
    if (const auto legal = cli::check_tokens(*ids, vocab); !legal) throw std::runtime_error(legal.error().message);
    all.push_back(std::move(*ids));
    if (all.back().size() <= prompt_tokens) throw std::runtime_error(path + ": a sequence is too short");
  }
  if (all.empty()) throw std::runtime_error(path + " holds no sequence");
  return all;
}

std::unique_ptr<skein::engine::engine> open(const cli::opened_model& model, const options& of, bool judge,
                                            std::uint32_t slots) {
  cli::engine_wish wish;
  wish.device = judge ? "cpu" : of.device;
  wish.dtype = judge ? "fp32" : of.dtype;
  wish.state_dtype = judge ? "fp32" : of.state_dtype;
  if (!judge) wish.invariance = of.invariance;
  wish.slots = slots;
  wish.max_tick_tokens = tick_tokens;
  auto made = cli::open_engine(model, wish);
  if (!made) throw std::runtime_error(made.error().message);
  return std::move(*made);
}

/// Logits against the judge's. The oracle's bound is meant for a few positions of a golden; of thousands, one in a
/// thousand may be up to twice as far off. Where the best token is judged, it must be right at all of them.
void compare(report& to, const std::string& what, const std::vector<std::vector<float>>& got,
             const std::vector<std::vector<float>>& expected, std::uint32_t vocab, double share) {
  double largest = 0, error = 0;
  std::uint64_t positions = 0, beyond = 0, judged = 0, wrong = 0, broken = 0;
  for (const auto& row : expected)
    for (const float logit : row) largest = std::max<double>(largest, std::abs(logit));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (got[i].size() != expected[i].size()) throw std::runtime_error("an engine gave too few logits");
    for (std::size_t at = 0; at < expected[i].size(); at += vocab, ++positions) {
      const float *mine = &got[i][at], *judge = &expected[i][at];
      double here = 0;
      for (std::uint32_t v = 0; v < vocab; ++v) {
        if (std::isfinite(mine[v]))
          here = std::max<double>(here, std::abs(mine[v] - judge[v]));
        else
          ++broken;
      }
      error = std::max(error, here);
      beyond += here > share * largest;
      const float* const best = std::max_element(judge, judge + vocab);
      float second = -INFINITY;
      for (const float* v = judge; v < judge + vocab; ++v)
        if (v != best) second = std::max(second, *v);
      if (*best - second <= 2 * share * largest) continue;
      ++judged;
      wrong += std::max_element(mine, mine + vocab) - mine != best - judge;
    }
  }
  const bool is_near = beyond <= positions / 1000 && error <= 2 * share * largest;
  to.add(what, broken == 0 && wrong == 0 && is_near, "error", error / largest, "permitted", share, "beyond", beyond,
         "positions", positions, "judged", judged, "wrong_best", wrong, "not_finite", broken);
}

std::uint64_t different_rows(const std::vector<float>& a, const std::vector<float>& b, std::uint32_t vocab) {
  std::uint64_t count = 0;
  for (std::size_t at = 0; at < a.size(); at += vocab) count += std::memcmp(&a[at], &b[at], vocab * sizeof(float)) != 0;
  return count;
}

void check_logits(report& to, skein::engine::engine& tested, skein::engine::engine& judge, const sequences& all,
                  std::span<const slot_id> slots, double share, const std::string& invariance) {
  const std::uint32_t vocab = tested.info().vocab;
  const auto whole = [](std::uint32_t left) { return left; };
  std::mt19937 random(1);
  const auto anywhere = [&](std::uint32_t left) { return 1 + static_cast<std::uint32_t>(random() % left); };
  const auto single = [](std::uint32_t) { return 1u; };
  const auto chunks = [](std::uint32_t) { return 50u; };

  const auto expected = feed_together(judge, all, slots, whole);
  const auto together = feed_together(tested, all, slots, chunks);
  compare(to, "logits, chunks of 50, all in a batch", together, expected, vocab, share);
  const auto singly = feed_together(tested, all, slots, single);
  compare(to, "logits, token by token, all in a batch", singly, expected, vocab, share);
  const auto pieces = feed_together(tested, all, slots, anywhere);
  compare(to, "logits, cut anywhere, all in a batch", pieces, expected, vocab, share);
  if (invariance == "fast") return;
  if (invariance == "strict") {
    std::uint64_t rows = 0, different = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      rows += 2 * all[i].size();
      different += different_rows(together[i], singly[i], vocab) + different_rows(together[i], pieces[i], vocab);
    }
    to.add("bits of logits in other cuts", different == 0, "rows", rows, "different", different);
  }
  for (const auto& [name, cut] : {std::pair<const char*, cutter>{"chunks of 50", chunks}, {"token by token", single}}) {
    const auto batch = feed_together(tested, all, slots, cut);
    std::uint64_t rows = 0, different = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), alone_max); ++i) {
      const slot_id elsewhere = slots[(i + 3) % slots.size()];
      const auto alone = feed_together(tested, {all[i]}, {&elsewhere, 1}, cut);
      rows += all[i].size();
      different += different_rows(alone[0], batch[i], vocab);
    }
    to.add(std::string("bits of logits alone and in a batch, ") + name, different == 0, "rows", rows, "different",
           different);
  }
}

std::vector<sampling::sampling_params> params_of(std::size_t count, std::uint32_t samples, bool greedy) {
  std::vector<sampling::sampling_params> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    all[i].max_tokens = samples;
    all[i].logprobs = true;
    all[i].seed = 1000 + i;
    all[i].temperature = greedy ? 0.0f : 0.8f + 0.1f * static_cast<float>(i % 6);
    if (greedy) continue;
    all[i].top_p = i % 3 == 0 ? 1.0f : 0.8f;
    all[i].top_k = i % 2 == 0 ? 0 : 40;
    all[i].first_penalty = all[i].repeat_penalty = 0.2f * static_cast<float>(i % 4);
    all[i].penalty_decay = 0.99f;
  }
  return all;
}

bool same(const transcript& a, const transcript& b) {
  return a.tokens == b.tokens && a.logprobs.size() == b.logprobs.size() &&
         std::memcmp(a.logprobs.data(), b.logprobs.data(), a.logprobs.size() * sizeof(float)) == 0;
}

void check_texts(report& to, skein::engine::engine& tested, skein::engine::engine& judge, const sequences& prompts,
                 std::span<const slot_id> slots, std::uint32_t samples, double permitted, bool bits) {
  for (const bool greedy : {true, false}) {
    const std::string kind = greedy ? "greedy" : "seeded";
    const auto params = params_of(prompts.size(), samples, greedy);
    const auto together = continue_together(tested, prompts, slots, params, samples, false);
    const std::size_t some = std::min<std::size_t>(prompts.size(), alone_max);
    std::size_t differ = 0;
    for (std::size_t i = 0; i < some; ++i) {
      const slot_id elsewhere = slots[(i + 5) % slots.size()];
      const auto alone = continue_together(tested, {prompts[i]}, {&elsewhere, 1}, {params[i]}, samples, false);
      differ += !same(alone[0], together[i]);
    }
    if (bits)
      to.add(kind + " tokens and log-probabilities alone and in a batch, to the bit", differ == 0, "texts", some,
             "different", differ);

    const auto expected = continue_together(judge, prompts, slots, params, samples, true);
    std::uint64_t judged = 0, wrong = 0;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      for (std::size_t t = 0; t < samples; ++t, ++judged) {
        if (greedy && expected[i].margins[t] <= 2 * permitted) break;
        if (expected[i].tokens[t] == together[i].tokens[t]) continue;
        ++wrong;  // what follows is another text
        break;
      }
    }
    // A seeded draw may fall on either side of a boundary that rounding moves; a greedy one may not.
    to.add(kind + " texts against the CPU engine", !greedy || wrong == 0, "texts", prompts.size(), "tokens_judged",
           judged, "texts_that_part", wrong);
  }
}

int run(const options& of) {
  const auto model = cli::open_model(of.model);
  if (!model) throw std::runtime_error(model.error().message);
  const sequences all = read_sequences(of.tokens_file, model->info.vocab);
  const auto count = static_cast<std::uint32_t>(all.size());
  const auto tested = open(*model, of, false, count + 3), judge = open(*model, of, true, count + 3);
  std::vector<slot_id> slots;
  for (slot_id s = 0; s < count + 3; ++s) slots.push_back(s);
  std::shuffle(slots.begin(), slots.end(), std::mt19937(2));
  slots.resize(count);

  report to(of, tested->info());
  const double share = permitted_share(of.dtype);
  check_logits(to, *tested, *judge, all, slots, share, of.invariance);
  sequences prompts = all;
  for (auto& ids : prompts) ids.resize(prompt_tokens);
  double largest = 0;
  for (const auto& row : feed_together(*judge, prompts, slots, [](std::uint32_t left) { return left; }))
    for (const float logit : row) largest = std::max<double>(largest, std::abs(logit));
  check_texts(to, *tested, *judge, prompts, slots, of.samples, share * largest, of.invariance != "fast");
  return to.finish();
}

}  // namespace

int main(int count, char** words) {
  if (count != 7 && count != 8) {
    std::fprintf(stderr, "usage: %s MODEL TOKENS_FILE DTYPE DEVICE STATE_DTYPE DRAWS [INVARIANCE]\n", words[0]);
    return 64;
  }
  try {
    return run({words[1], words[2], words[3], words[4], words[5], static_cast<std::uint32_t>(std::stoul(words[6])),
                count == 8 ? words[7] : "default"});
  } catch (const std::exception& trouble) {
    std::fprintf(stderr, "engine_check: %s\n", trouble.what());
    return 70;
  }
}
