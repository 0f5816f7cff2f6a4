#include "actors/supervisor/models/open_engine.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <string>
#include <utility>

#include "actors/supervisor/models/load_admission.hpp"
#include "actors/supervisor/settings/settings.hpp"
#include "app/device_choice.hpp"
#include "app/open_model.hpp"
#include "base/check.hpp"
#include "base/log/log.hpp"
#include "base/version.hpp"
#include "model/model_info.hpp"
#include "model/nonfinite.hpp"
#if SKEIN_FAKE_ENGINE
#include "engine/fake/fake_engine.hpp"
#endif

namespace skein::supervisor {
namespace {

/// Limits of ticks, with defaults for values that are not configured.
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
  m.constrains = info.constrains;
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

#if SKEIN_FAKE_ENGINE
result<opened_engine> open_fake(const config::config& c) {
  constexpr std::uint32_t fake_slots = 1024;
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
#endif

/// Memory on the chosen device for one more model.
memory_room room_on(const cli::device_choice& device, const config::config& c, const load_order& order) {
  const std::size_t free_bytes =
      device.gpu ? device.free_bytes - std::min(device.free_bytes, gpu_reserve_bytes) : available_memory();
  return room_beside(order.memory_taken.value_or(0), free_bytes, order.memory_taken ? c.model.memory_bytes_max : 0);
}

/// The memory plan of the next engine. Chooses the number of slots if the configuration leaves it open.
result<memory_plan> plan_memory(const config::config& c, const cli::opened_model& model,
                                const cli::device_choice& device, const memory_room& room, cli::engine_wish& wish) {
  const tick_sizes ticks(c.engine, device.gpu != nullptr);
  const auto plan = [&](std::uint32_t slots) {
    wish.slots = slots;
    wish.max_tick_tokens = std::max(ticks.tokens, slots);
    return cli::plan_engine(model, device, wish);
  };
  if (c.engine.slots > 0) return plan(c.engine.slots);
  const auto chosen = device.gpu ? default_gpu_slots(plan, room.left) : default_slots(plan, free_memory(), room.left);
  if (!chosen) return chosen.error();
  return plan(device.gpu ? std::max(*chosen / c.model.resident_max, 1u) : *chosen);  // leaves room for the other models
}

void log_memory(const engine::engine_info& info) {
  const memory_plan& taken = info.memory;
  log::info("engine ready", {{"device", info.device},
                             {"weight_type", info.weight_type},
                             {"weight_bytes", static_cast<std::uint64_t>(taken.weight_bytes)},
                             {"activation_bytes", static_cast<std::uint64_t>(taken.activation_bytes)},
                             {"workspace_bytes", static_cast<std::uint64_t>(taken.workspace_bytes)},
                             {"slots", info.slots},
                             {"slot_bytes", static_cast<std::uint64_t>(taken.slot_bytes)},
                             {"total_bytes", static_cast<std::uint64_t>(taken.bytes())},
                             {"state_bytes", static_cast<std::uint64_t>(info.state_floats * sizeof(float))}});
}

}  // namespace

result<opened_engine> open_engine(const config::config& c, const load_order& order) {
#if SKEIN_FAKE_ENGINE
  if (c.engine.device == "fake") {
    auto opened = open_fake(c);
    if (opened) log_memory(opened->engine->info());
    return opened;
  }
#endif
  auto model = cli::open_model(c.model.path);
  if (!model) return model.error();
  auto vocabulary = cli::open_vocabulary(c.model.vocab, *model);
  if (!vocabulary) return vocabulary.error();

  const auto device = cli::choose_device(c.engine.device);
  if (!device) return device.error();
  if (!device->remark.empty()) log::info("no GPU, using the CPU", {{"why", device->remark}});

  cli::engine_wish wish;
  wish.device = c.engine.device;
  wish.dtype = c.engine.dtype;
  wish.weight_format = c.engine.weight_format;
  wish.state_dtype = c.engine.state_dtype;
  wish.invariance = c.engine.invariance;
  wish.row_max = row_limits(c);
  wish.moving_bytes_max = c.engine.moving_bytes_max;
  wish.threads = c.engine.threads;
  wish.progress = order.progress;
  const memory_room room = room_on(*device, c, order);
  const auto plan = plan_memory(c, *model, *device, room, wish);
  if (!plan) return plan.error();
  if (order.memory_taken)
    if (auto fits = admit(*plan, room); !fits) return fits.error();
  auto read = model::identify(model->file, (*vocabulary)->hash());
  if (!read.nonfinite.empty() && !c.model.allow_nonfinite) return model::nonfinite_tensor(model->file, read.nonfinite);
  wish.model_identity = std::move(read.identity);
  auto engine = cli::open_engine(*model, wish);
  if (!engine) return engine.error();

  opened_engine opened;
  opened.engine = std::move(*engine);
  const std::string name = c.model.name.empty() ? model->file.path().stem().string() : c.model.name;
  opened.model = served(c, name, *opened.engine, tick_sizes(c.engine, device->gpu != nullptr));
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
