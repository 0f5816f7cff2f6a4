#include "cli/bench/bench_states.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>

namespace skein::cli {
namespace {

constexpr std::uint32_t together_max = 8;
constexpr std::uint32_t samples = 9, warm_ups = 2, parkings = 3;

using clock = std::chrono::steady_clock;
using states = std::vector<model::state_value>;

/// Seconds per item of work on `count` items.
template <typename Work>
result<double> time_of(std::size_t count, const Work& work) {
  const auto begin = clock::now();
  if (const auto done = work(); !done) return done.error();
  return std::chrono::duration<double>(clock::now() - begin).count() / static_cast<double>(count);
}

result<double> move_in(engine::engine& on, const states& from, std::size_t count) {
  return time_of(count, [&] {
    for (slot_id slot = 0; slot < count; ++slot) on.write_state(slot, from[slot].view());
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
    std::memcpy(to[i].bytes.data(), from[i].bytes.data(), from[i].bytes.size());
  return std::chrono::duration<double>(clock::now() - begin).count() / static_cast<double>(from.size());
}

bool same(const states& a, const states& b) {
  return std::ranges::equal(a, b, {}, &model::state_value::bytes, &model::state_value::bytes);
}

double median_of(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

/// Parks and resumes; every slot has the state of `expected` for its number.
result<void> park_and_resume(engine::engine& on, const states& expected, state_moves_bench& figures) {
  std::vector<double> park_s, resume_s;
  sampling::sampling_params params;
  for (std::uint32_t i = 0; i < parkings; ++i) {
    std::vector<engine::parked_sequence> parked(figures.parked);
    const auto out = time_of(1, [&] {
      for (slot_id slot = 0; slot < figures.parked; ++slot) on.park(slot, parked[slot]);
      return on.finish();
    });
    if (!out) return out.error();
    for (slot_id slot = 0; slot < figures.parked; ++slot)
      if (parked[slot].state != expected[slot % expected.size()])
        return error{error_kind::internal, "a parked state differs from that of its slot", {}};
    const auto in = time_of(1, [&] {
      for (slot_id slot = 0; slot < figures.parked; ++slot) on.unpark(slot, params, parked[slot]);
      return on.finish();
    });
    if (!in) return in.error();
    park_s.push_back(*out), resume_s.push_back(*in);
  }
  figures.park_s = median_of(park_s), figures.resume_s = median_of(resume_s);
  return {};
}

}  // namespace

result<state_moves_bench> bench_states(engine::engine& on) {
  const auto& info = on.info();
  state_moves_bench figures;
  figures.bytes = info.state.bytes();
  figures.together = std::min({together_max, info.slots, info.coming_max, info.leaving_max});
  sampling::sampling_params params;
  for (slot_id slot = 0; slot < figures.together; ++slot) on.start(slot, params);

  std::mt19937 random(1);
  std::uniform_real_distribution<float> value(0.5f, 1.0f);
  const model::state_value empty{info.state, std::vector<std::byte>(info.state.bytes())};
  states there(figures.together, empty), back = there, elsewhere = there;
  std::vector<float> floats(info.state.floats());
  for (std::uint32_t i = 0; i < samples + warm_ups; ++i) {
    for (auto& state : there) {
      for (auto& x : floats) x = value(random);
      state = state_of(info.state, floats);
    }
    state_move_sample sample{};
    sample.copy_s = copy(there, elsewhere);
    const auto in = move_in(on, there, there.size());
    if (!in) return in.error();
    const auto out = move_out(on, back, back.size());
    if (!out) return out.error();
    if (!same(there, back))
      return error{error_kind::internal, "a state differs after a round trip through its slot", {}};
    const auto alone_in = move_in(on, there, 1);
    if (!alone_in) return alone_in.error();
    const auto alone_out = move_out(on, back, 1);
    if (!alone_out) return alone_out.error();
    if (i >= warm_ups) figures.samples.push_back({sample.copy_s, *in, *out, *alone_in, *alone_out});
  }
  figures.parked = static_cast<std::uint32_t>(std::min<std::size_t>(info.slots, parked_bytes_max / figures.bytes));
  for (slot_id slot = 0; slot < figures.parked; ++slot) {
    on.start(slot, params);
    on.write_state(slot, there[slot % there.size()]);
  }
  if (const auto done = on.finish(); !done) return done.error();
  if (const auto done = park_and_resume(on, there, figures); !done) return done.error();
  return figures;
}

}  // namespace skein::cli
