#include "actors/supervisor/open_engine.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <string>
#include <utility>

#include "actors/supervisor/settings.hpp"
#include "base/check.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "cli/device_choice.hpp"
#include "cli/open_model.hpp"
#include "engine/fake_engine.hpp"
#include "model/model_info.hpp"
#include "model/nonfinite.hpp"

namespace skein::supervisor {
namespace {

constexpr std::uint32_t fake_slots = 1024;

/// What ticks carry, also where nobody says so.
struct tick_sizes {
  tick_sizes(const config::engine_settings& given, bool on_gpu)
      : chunk_tokens(given.prefill_chunk_tokens ? given.prefill_chunk_tokens
                     : on_gpu                   ? 512
                                                : 64),
        tokens(given.max_tick_tokens ? given.max_tick_tokens : std::max(on_gpu ? 2048u : 256u, chunk_tokens)) {
    chunk_tokens = std::min(chunk_tokens, tokens);
  }
  std::uint32_t chunk_tokens, tokens;
};

request::served_model served(const config::config& c, std::string name, const engine::engine& engine,
                             const tick_sizes& ticks) {
  const engine::engine_info& info = engine.info();
  request::served_model m;
  m.names = {name};
  for (const auto& alias : c.model.aliases)
    if (std::ranges::find(m.names, alias) == m.names.end()) m.names.push_back(alias);
  m.preset = model_preset(c, name);
  m.vocab = info.vocab;
  m.prefill_chunk_tokens = ticks.chunk_tokens;
  m.chunk_tokens = info.chunk_tokens;
  m.fingerprint = "skein-" + info.model_identity.substr(0, 12) + "-" + info.weight_type + "-" + build_name();
  m.card.id = std::move(name);
  m.card.created = std::time(nullptr);
  m.card.device = info.device;
  m.card.weight_type = info.weight_type;
  m.card.identity = info.model_identity;
  m.card.vocab = info.vocab;
  m.card.state_bytes = info.state_floats * sizeof(float);
  return m;
}

result<opened_engine> open_fake(const config::config& c) {
  auto vocabulary = cli::open_vocabulary(c.model.vocab.empty() ? "bytes" : c.model.vocab);
  if (!vocabulary) return vocabulary.error();
  engine::fake_engine_options options;
  options.model.vocab = std::max(options.model.vocab, (*vocabulary)->size());
  options.slots = c.engine.slots ? c.engine.slots : fake_slots;
  options.max_tick_rows = options.slots;
  const tick_sizes ticks(c.engine, false);
  options.max_tick_tokens = std::max(ticks.tokens, options.slots);
  options.tick_latency = std::chrono::microseconds(c.engine.fake_tick_us);
  options.throws_at_tick = c.engine.fake_throw_tick;
  options.lost_at_tick = c.engine.fake_lost_tick;
  opened_engine opened;
  opened.engine = engine::make_fake_engine(options);
  opened.model = served(c, c.model.name.empty() ? "fake" : c.model.name, *opened.engine, ticks);
  opened.model.vocabulary = *vocabulary;
  opened.layout = {.layers = 1, .embd = static_cast<std::uint32_t>(options.model.state_floats / 2)};
  check(opened.layout.floats() == opened.engine->info().state_floats, "a fake state is two rows of floats");
  return opened;
}

/// Bytes that one more resident sequence costs: its state and its sampler.
std::size_t slot_bytes(const model::model_info& info) { return info.state.bytes() + std::size_t{info.vocab} * 9; }

/// How many sequences are resident when nobody says so.
std::uint32_t chosen_slots(const model::model_info& info, const cli::device_choice& device, bool is_fast,
                           std::uint32_t models_max) {
  if (!device.gpu) return default_slots(slot_bytes(info));
  constexpr std::size_t weight_bytes = 2, activations = std::size_t{2} << 30, sampler_bytes_per_token = 12;
  const std::size_t turned = is_fast ? std::size_t{info.layers} * info.embd * info.ffn : 0;  // see sparse_value
  const std::uint32_t all =
      default_gpu_slots(info.state.bytes() + info.vocab * sampler_bytes_per_token, device.free_bytes,
                        (info.parameters + turned) * weight_bytes + activations);
  return std::max(all / models_max, 1u);  // the next model needs room too
}

/// Weights, states and samplers; activations are small beside them.
result<void> check_memory(const model::model_info& info, const cli::engine_wish& wish, const cli::device_choice& device,
                          std::size_t bytes_max, const load_order& order) {
  if (!order.memory_taken) return {};
  const std::size_t taken = *order.memory_taken;
  std::size_t left = device.gpu ? device.free_bytes : available_memory();
  if (bytes_max > 0) left = std::min(left, bytes_max - std::min(bytes_max, taken));
  const std::string stored(to_string(info.matrix_type));
  const bool is_wide = wish.dtype == "fp32" || (wish.dtype == "auto" && stored == "fp32");
  const std::size_t needed = info.parameters * (is_wide ? 4 : 2) + wish.slots * slot_bytes(info);
  if (needed <= left) return {};
  return error{error_kind::no_memory,
               "the model needs about " + std::to_string(needed) + " bytes, and " + std::to_string(left) +
                   " are left beside the " + std::to_string(taken) + " of what is loaded; unload that first",
               "model"};
}

void log_memory(const engine::engine_info& info) {
  log::info("engine ready", {{"device", info.device},
                             {"weight_type", info.weight_type},
                             {"weight_bytes", static_cast<std::uint64_t>(info.weight_bytes)},
                             {"activation_bytes", static_cast<std::uint64_t>(info.activation_bytes)},
                             {"workspace_bytes", static_cast<std::uint64_t>(info.workspace_bytes)},
                             {"slots", info.slots},
                             {"slot_bytes", static_cast<std::uint64_t>(info.slot_bytes)},
                             {"state_bytes", static_cast<std::uint64_t>(info.state_floats * sizeof(float))}});
}

}  // namespace

result<opened_engine> open_engine(const config::config& c, const load_order& order) {
  if (c.engine.device == "fake") {
    auto opened = open_fake(c);
    if (opened) log_memory(opened->engine->info());
    return opened;
  }
  auto model = cli::open_model(c.model.path);
  if (!model) return model.error();
  auto vocabulary = cli::open_vocabulary(c.model.vocab, *model);
  if (!vocabulary) return vocabulary.error();

  const auto device = cli::choose_device(c.engine.device);
  if (!device) return device.error();
  if (!device->remark.empty()) log::info("no GPU: the CPU serves", {{"why", device->remark}});

  cli::engine_wish wish;
  wish.device = c.engine.device;
  wish.dtype = c.engine.dtype;
  wish.state_dtype = c.engine.state_dtype;
  wish.invariance = c.engine.invariance;
  wish.row_max = row_limits(c);
  wish.moving_bytes_max = c.engine.moving_bytes_max;
  wish.threads = c.engine.threads;
  wish.slots = c.engine.slots ? c.engine.slots
                              : chosen_slots(model->info, *device, c.engine.invariance == "fast", c.model.resident_max);
  const tick_sizes ticks(c.engine, device->gpu != nullptr);
  wish.max_tick_tokens = std::max(ticks.tokens, wish.slots);
  wish.progress = order.progress;
  if (auto fits = check_memory(model->info, wish, *device, c.model.memory_bytes_max, order); !fits) return fits.error();
  auto read = model::identify(model->file, (*vocabulary)->hash());
  if (!read.nonfinite.empty() && !c.model.allow_nonfinite) return model::nonfinite_tensor(model->file, read.nonfinite);
  wish.model_identity = std::move(read.identity);
  auto engine = cli::open_engine(*model, wish);
  if (!engine) return engine.error();

  opened_engine opened;
  opened.engine = std::move(*engine);
  const std::string name = c.model.name.empty() ? model->file.path().stem().string() : c.model.name;
  opened.model = served(c, name, *opened.engine, ticks);
  opened.model.vocabulary = *vocabulary;
  opened.model.path = model->file.path().string();
  opened.model.load_state = [info = model->info, allowed = c.model.allow_nonfinite](const std::string& path) {
    return model::load_tuned_state(path, info, allowed);
  };
  if (device->gpu)
    opened.model.card_usage = [gpu = device->gpu, index = device->index]() -> result<request::card_memory> {
      const auto card = gpu->describe_device(index);
      if (!card) return card.error();
      return request::card_memory{card->memory_bytes, card->free_bytes};
    };
  opened.layout = model->info.state;
  opened.model.card.version = to_string(model->info.version);
  opened.model.card.layers = model->info.layers;
  opened.model.card.embd = model->info.embd;
  opened.model.card.parameters = model->info.parameters;
  log_memory(opened.engine->info());
  return opened;
}

}  // namespace skein::supervisor
