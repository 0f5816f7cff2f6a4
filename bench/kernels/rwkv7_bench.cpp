// Breaks down a tick's time by stage: a whole RWKV-7 of 0.4B parameters with random weights, for decode of 1 and 8
// sequences and prefill of 512 tokens. `skein bench engine` compares whole ticks with the machine's limits.
//
//   rwkv7_bench [fp32|bf16|fp16] [threads]
//
// Times are means over the rounds; each stage's figure is its share of the tick in percent.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string_view>
#include <vector>

#include "kernels/make_stages.hpp"
#include "model/forward.hpp"
#include "tests/kernels/random_rwkv7.hpp"

namespace {

using namespace skein;

constexpr kernels::model_dims dims{24, 1024, 16, 64, 4096, 65536, 64, 64, 32, 128};
constexpr double seconds_each = 3;

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Time spent in each stage, over all layers and rounds.
class stage_clock {
 public:
  template <typename Stage>
  void time(std::size_t stage, const Stage& run) {
    const double start = now_s();
    run();
    spent_[stage] += now_s() - start;
  }
  [[nodiscard]] double part(std::size_t stage) const { return spent_[stage]; }
  [[nodiscard]] double sum() const { return std::accumulate(spent_.begin(), spent_.end(), 0.0); }

  static constexpr std::array names = {"embed", "mix in", "state", "mix out", "ffn in", "ffn out", "head"};

 private:
  std::array<double, names.size()> spent_{};
};

void measure(const char* what, kernels::stages& stages, std::uint32_t sequences, std::uint32_t tokens) {
  std::vector<kernels::sequence_run> runs;
  std::vector<token_id> ids;
  std::vector<std::uint32_t> wanted;
  for (std::uint32_t s = 0; s < sequences; ++s) {
    runs.push_back({s, s * tokens, tokens});
    wanted.push_back((s + 1) * tokens - 1);
    for (std::uint32_t t = 0; t < tokens; ++t) ids.push_back(static_cast<token_id>((s * 977 + t * 131) % dims.vocab));
  }
  const kernels::batch rows{ids, runs};
  std::vector<float> logits(static_cast<std::size_t>(sequences) * dims.vocab);
  stage_clock clock;
  int rounds = 0;
  for (const double end = now_s() + seconds_each; now_s() < end; ++rounds) {
    clock.time(0, [&] { stages.embed(rows); });
    for (std::uint32_t layer = 0; layer < dims.layers; ++layer) {
      clock.time(1, [&] { stages.time_mix_in(layer, rows); });
      clock.time(2, [&] { stages.time_mix_state(layer, rows); });
      clock.time(3, [&] { stages.time_mix_out(layer, rows); });
      clock.time(4, [&] { stages.channel_mix_in(layer, rows); });
      clock.time(5, [&] { stages.channel_mix_out(layer, rows); });
    }
    clock.time(6, [&] { stages.head(rows, wanted, logits); });
  }
  std::printf("%-12s %8.2f ms per tick:", what, clock.sum() / rounds * 1e3);
  for (std::size_t stage = 0; stage < stage_clock::names.size(); ++stage)
    std::printf(" %s %.1f", stage_clock::names[stage], 100 * clock.part(stage) / clock.sum());
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view type = argc > 1 ? argv[1] : "bf16";
  const dtype matrix_type = type == "fp32" ? dtype::f32 : type == "fp16" ? dtype::f16 : dtype::bf16;
  const auto threads = static_cast<std::uint32_t>(argc > 2 ? std::atoi(argv[2]) : 0);

  std::unique_ptr<kernels::stages> stages;
  {
    const test::random_rwkv7 model(dims, matrix_type, 1);
    const double start = now_s();
    auto made = kernels::make_cpu_stages(model.weights(), matrix_type,
                                         {.slots = 8, .max_rows = 512, .max_logit_rows = 512, .threads = threads});
    if (!made) return std::fprintf(stderr, "%s\n", made.error().message.c_str()), 1;
    std::printf("loaded in %.2f s\n", now_s() - start);
    stages = std::move(*made);
  }
  measure("decode 1", *stages, 1, 1);
  measure("decode 8", *stages, 8, 1);
  measure("8 x 4 tokens", *stages, 8, 4);
  measure("prefill 512", *stages, 1, 512);
}
