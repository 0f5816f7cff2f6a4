#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "app/device_choice.hpp"
#include "app/open_model.hpp"
#include "app/tuning/tuning_file.hpp"
#include "cli/bench/tick_maker.hpp"
#include "cli/commands.hpp"
#include "cli/tune/tuning_search.hpp"

namespace skein::cli {
namespace {

using kernels::gpu::gpu_tuning;

constexpr std::uint32_t tuning_warm_up_ticks = 3;
constexpr double sample_s = 0.2;
constexpr int tuning_samples = 3;

/// The fastest of a few samples.
result<double> seconds_of_tick(tick_maker& ticks, std::uint32_t rows) {
  if (const auto begun = ticks.begin(rows); !begun) return begun.error();
  const auto plan = tick_maker::decoding(rows);
  const auto next = [&]() -> const engine::tick_plan& { return plan; };
  double least = 0;
  auto warm = ticks.time(tuning_warm_up_ticks, next);
  if (warm) warm = ticks.time(tuning_warm_up_ticks, next);
  if (!warm) return warm.error();
  const auto count = static_cast<std::uint32_t>(std::clamp(sample_s * tuning_warm_up_ticks / *warm, 1.0, 2000.0));
  for (int i = 0; i < tuning_samples; ++i) {
    const auto seconds = ticks.time(count, next);
    if (!seconds) return seconds.error();
    if (i == 0 || *seconds / count < least) least = *seconds / count;
  }
  return least;
}

std::string words_of(const gpu_tuning& tuning) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f", tuning.blocks_per_sm);
  std::string all = tuning.blocks_per_sm > 0 ? std::string(text) + " blocks per SM" : "blocks per SM by rule";
  if (tuning.led_rows) all += ", shared launches up to " + std::to_string(*tuning.led_rows) + " rows";
  return all;
}

void print_rates(const char* what, const decode_times& times) {
  std::printf("%-12s", what);
  for (std::size_t i = 0; i < tuned_rows.size(); ++i) std::printf(" %10.1f", tuned_rows[i] / times[i]);
  std::printf("\n");
}

}  // namespace

result<void> tune(const tune_command& what) {
  const auto begin = std::chrono::steady_clock::now();
  const auto device = choose_device(what.model.device);
  if (!device) return device.error();
  if (!device->gpu)
    return error{error_kind::invalid_argument, "device: a CPU has nothing to tune; accepted: cuda:N, hip:N", "device"};
  const auto model = open_model(what.model.path, what.model.adapters);
  if (!model) return model.error();
  engine_wish wish = wish_of(what.model);
  wish.slots = tuned_rows.back(), wish.max_tick_tokens = tuned_rows.back() * tick_maker::first_tokens;
  const auto path = what.out.empty() ? tuning_file_of(model->file) : what.out;
  const auto key = tuning_key_of(*model, *device, wish);
  if (!key) return key.error();
  if (const auto readable = read_tuning(path, *key); !readable) return readable.error();

  gpu_tuning from;
  const auto tiles = measure_tiles(*model, *device, wish);
  if (!tiles) return tiles.error();
  from.tile_us = *tiles;
  const decode_timer time = [&](const gpu_tuning& tuning) -> result<decode_times> {
    wish.tuning = tuning;
    const auto engine = open_engine(*model, wish);
    if (!engine) return engine.error();
    wish.refuse_nonfinite = false;  // they were looked for the first time
    tick_maker ticks(**engine, 0);
    decode_times times{};
    for (std::size_t i = 0; i < times.size(); ++i) {
      const auto seconds = seconds_of_tick(ticks, tuned_rows[i]);
      if (!seconds) return seconds.error();
      times[i] = *seconds;
    }
    std::fprintf(stderr, "%s: %.3f, %.3f, %.3f ms\n", words_of(tuning).c_str(), 1e3 * times[0], 1e3 * times[1],
                 1e3 * times[2]);
    return times;
  };
  const auto found = search_tuning(from, time, [&] { return seconds_since(begin) < what.seconds; });
  if (!found) return found.error();
  if (const auto written = write_tuning(path, *key, found->tuning); !written) return written;

  std::printf("%s, %s weights: %s\n", key->device.c_str(), key->weights.c_str(), words_of(found->tuning).c_str());
  std::printf("tokens/s    ");
  for (const auto rows : tuned_rows) std::printf("   %3u rows", rows);
  std::printf("\n");
  print_rates("before", found->before);
  print_rates("now", found->after);
  if (found->out_of_time) std::printf("Not all candidates were tried within %.0f s; see --seconds.\n", what.seconds);
  std::printf("Written to %s\n", path.c_str());
  return {};
}

}  // namespace skein::cli
