#include "cli/bench/bench_states.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

namespace skein::cli {
namespace {

constexpr std::uint32_t together_max = 8;
constexpr std::uint32_t samples = 9, warm_ups = 2;

using clock = std::chrono::steady_clock;
using states = std::vector<std::vector<float>>;

/// Seconds per item of work on `count` items.
template <typename Work>
result<double> time_of(std::size_t count, const Work& work) {
  const auto begin = clock::now();
  if (const auto done = work(); !done) return done.error();
  return std::chrono::duration<double>(clock::now() - begin).count() / static_cast<double>(count);
}

result<double> move_in(engine::engine& on, const states& from, std::size_t count) {
  return time_of(count, [&] {
    for (slot_id slot = 0; slot < count; ++slot) on.write_state(slot, from[slot]);
    return on.finish();
  });
}

result<double> move_out(engine::engine& on, states& to, std::size_t count) {
  return time_of(count, [&] {
    for (slot_id slot = 0; slot < count; ++slot) on.read_state(slot, to[slot]);
    return on.finish();
  });
}

double copy(const states& from, states& to) {
  const auto begin = clock::now();
  for (std::size_t i = 0; i < from.size(); ++i)
    std::memcpy(to[i].data(), from[i].data(), from[i].size() * sizeof(float));
  return std::chrono::duration<double>(clock::now() - begin).count() / static_cast<double>(from.size());
}

bool same(const states& a, const states& b, bool half_precision) {
  const float relative = half_precision ? 1.0f / 1024 : 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto differs = [&](float x, float y) { return !(std::abs(x - y) <= relative * std::abs(x)); };
    if (std::ranges::mismatch(a[i], b[i], [&](float x, float y) { return !differs(x, y); }).in1 != a[i].end())
      return false;
  }
  return true;
}

}  // namespace

result<state_moves_bench> bench_states(engine::engine& on, bool half_precision) {
  const auto& info = on.info();
  state_moves_bench figures;
  figures.bytes = info.state_floats * sizeof(float);
  figures.together = std::min({together_max, info.slots, info.coming_max, info.leaving_max});
  sampling::sampling_params params;
  for (slot_id slot = 0; slot < figures.together; ++slot) on.start(slot, params);

  std::mt19937 random(1);
  std::uniform_real_distribution<float> value(0.5f, 1.0f);
  states there(figures.together, std::vector<float>(info.state_floats)), back = there, elsewhere = there;
  for (std::uint32_t i = 0; i < samples + warm_ups; ++i) {
    for (auto& state : there)
      for (auto& x : state) x = value(random);
    state_move_sample sample{};
    sample.copy_s = copy(there, elsewhere);
    const auto in = move_in(on, there, there.size());
    if (!in) return in.error();
    const auto out = move_out(on, back, back.size());
    if (!out) return out.error();
    if (!same(there, back, half_precision))
      return error{error_kind::internal, "a state differs after a round trip through its slot", {}};
    const auto alone_in = move_in(on, there, 1);
    if (!alone_in) return alone_in.error();
    const auto alone_out = move_out(on, back, 1);
    if (!alone_out) return alone_out.error();
    if (i >= warm_ups) figures.samples.push_back({sample.copy_s, *in, *out, *alone_in, *alone_out});
  }
  return figures;
}

}  // namespace skein::cli
