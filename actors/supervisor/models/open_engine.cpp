#include "actors/supervisor/models/open_engine.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>
#include <set>
#include <string>
#include <thread>
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

using engine_list = std::vector<std::unique_ptr<engine::engine>>;

request::served_model served(const config::config& c, std::string name, const engine_list& engines,
                             const tick_sizes& ticks) {
  const engine::engine_info& info = engines.front()->info();
  request::served_model m;
  m.names = {name};
  for (const auto& alias : c.model.aliases)
    if (std::ranges::find(m.names, alias) == m.names.end()) m.names.push_back(alias);
  m.preset = model_preset(c, name);
  m.vocab = info.vocab;
  m.prefill_chunk_tokens = std::min(ticks.chunk_tokens, info.max_tick_tokens);
  m.chunk_tokens = info.chunk_tokens;
  m.constrains = info.constrains;
  m.fingerprint = "skein-" + info.model_identity.substr(0, 12) + "-" + info.weight_type + "-" + build_name();
  m.card.id = std::move(name);
  m.card.created = std::time(nullptr);
  for (const auto& each : engines) m.card.device += (m.card.device.empty() ? "" : ", ") + each->info().device;
  m.card.weight_type = info.weight_type;
  m.card.identity = info.model_identity;
  m.card.vocab = info.vocab;
  m.card.state_bytes = info.state.bytes();
  return m;
}

/// The same error, at least about `field`.
error about(error why, const char* field) {
  if (why.field.empty()) why.field = field;
  return why;
}

#if SKEIN_FAKE_ENGINE
result<opened_engine> open_fake(const config::config& c, std::size_t devices) {
  constexpr std::uint32_t fake_slots = 1024;
  auto vocabulary = cli::open_vocabulary(c.model.vocab.empty() ? "bytes" : c.model.vocab);
  if (!vocabulary) return about(vocabulary.error(), "model.vocab");
  engine::fake_engine_options options;
  options.model.vocab = std::max(options.model.vocab, (*vocabulary)->size());
  options.slots = c.engine.slots ? c.engine.slots : fake_slots;
  options.max_tick_rows = options.slots;
  const tick_sizes ticks(c.engine, false);
  options.max_tick_tokens = std::max(ticks.tokens, options.slots);
  options.tick_latency = std::chrono::microseconds(c.engine.fake_tick_us);
  opened_engine opened;
  for (std::size_t i = 0; i < devices; ++i) {
    const bool has_faults = i == c.engine.fake_faulty_device;
    options.throws_at_tick = has_faults ? c.engine.fake_throw_tick : 0;
    options.lost_at_tick = has_faults ? c.engine.fake_lost_tick : 0;
    opened.engines.push_back(engine::make_fake_engine(options));
  }
  opened.model = served(c, c.model.name.empty() ? "fake" : c.model.name, opened.engines, ticks);
  opened.model.vocabulary = *vocabulary;
  return opened;
}
#endif

/// Memory on the chosen device for one more model.
memory_room room_on(const cli::device_choice& device, const config::config& c, const load_order& order) {
  const std::size_t free_bytes =
      device.gpu ? device.free_bytes - std::min(device.free_bytes, gpu_reserve_bytes) : available_memory();
  return room_beside(order.memory_taken.value_or(0), free_bytes, order.memory_taken ? c.model.memory_bytes_max : 0);
}

buffer_sizes most_buffers(const config::config& c, bool on_gpu) {
  return {tick_sizes(c.engine, on_gpu).tokens, c.engine.moving_bytes_max};
}

/// The plan of an engine with this many slots.
result<memory_plan> plan_slots(const cli::opened_model& model, const cli::device_choice& device,
                               const buffer_sizes& buffers, std::uint32_t slots, cli::engine_wish& wish) {
  wish.slots = slots;
  wish.max_tick_tokens = std::max(buffers.tick_tokens, slots);
  wish.moving_bytes_max = buffers.moving_bytes;
  return cli::plan_engine(model, device, wish);
}

/// The buffers of the next engine on a GPU. Where memory is short they are smaller, so that a model with few slots
/// still fits; a configured size of ticks stays.
result<buffer_sizes> buffers_on_gpu(const config::config& c, const cli::opened_model& model,
                                    const cli::device_choice& device, const memory_room& room, cli::engine_wish& wish) {
  constexpr std::uint32_t usual_slots = 16, usual_tokens = 256;
  const std::uint32_t slots = c.engine.slots > 0 ? c.engine.slots : usual_slots;
  const std::uint32_t tokens_least =
      c.engine.max_tick_tokens > 0 ? c.engine.max_tick_tokens : std::max(usual_tokens, c.engine.prefill_chunk_tokens);
  return first_that_fits(
      smaller_and_smaller(most_buffers(c, true), tokens_least),
      [&](const buffer_sizes& buffers) { return plan_slots(model, device, buffers, slots, wish); }, room.left);
}

/// The memory plan of the next engine. Chooses the number of slots if the configuration leaves it open; `sharing`
/// engines of this model, including this one, are still to come on the same device.
result<memory_plan> plan_memory(const config::config& c, const cli::opened_model& model,
                                const cli::device_choice& device, const memory_room& room, std::size_t sharing,
                                cli::engine_wish& wish) {
  buffer_sizes buffers = most_buffers(c, device.gpu != nullptr);
  if (device.gpu) {
    const auto fitting = buffers_on_gpu(c, model, device, room, wish);
    if (!fitting) return fitting.error();
    buffers = *fitting;
  }
  const auto plan = [&](std::uint32_t slots) { return plan_slots(model, device, buffers, slots, wish); };
  if (c.engine.slots > 0) return plan(c.engine.slots);
  const auto chosen = device.gpu ? default_gpu_slots(plan, room.left) : default_slots(plan, free_memory(), room.left);
  if (!chosen) return chosen.error();
  const auto fewer = static_cast<std::uint32_t>(device.gpu ? c.model.resident_max * sharing : 1);
  return plan(std::max(*chosen / fewer, 1u));  // leaves room for the other models
}

void log_memory(const engine::engine_info& info, std::size_t id) {
  const memory_plan& taken = info.memory;
  log::info("engine ready", {{"device", info.device},
                             {"device_id", static_cast<std::uint64_t>(id)},
                             {"weight_type", info.weight_type},
                             {"weight_bytes", static_cast<std::uint64_t>(taken.weight_bytes)},
                             {"activation_bytes", static_cast<std::uint64_t>(taken.activation_bytes)},
                             {"workspace_bytes", static_cast<std::uint64_t>(taken.workspace_bytes)},
                             {"tick_tokens", info.max_tick_tokens},
                             {"slots", info.slots},
                             {"slot_bytes", static_cast<std::uint64_t>(taken.slot_bytes)},
                             {"total_bytes", static_cast<std::uint64_t>(taken.bytes())},
                             {"state_bytes", static_cast<std::uint64_t>(info.state.bytes())}});
}

/// Templates are not run: one that is known chooses the form of chats, another one has no effect.
void log_chat_template(const model::checkpoint& file) {
  const std::string name(to_string(file.chat()));
  if (file.chat() == model::chat_form::unknown)
    log::warning("the model's chat template is not used: it is not one of RWKV models",
                 {{"file", file.path().string()}});
  else if (file.chat() != model::chat_form::none)
    log::info("the model's chat template is known", {{"tool_template", name}});
}

/// The devices of a model. Errors: those of cli::choose_device; unavailable if some are GPUs and others are not.
result<std::vector<cli::device_choice>> choose_devices(const std::string& list) {
  std::vector<cli::device_choice> all;
  for (const std::string& name : cli::split_devices(list)) {
    auto device = cli::choose_device(name);
    if (!device) return device.error();
    if (!all.empty() && all.front().gpu != device->gpu)
      return error{error_kind::unavailable,
                   "device: " + list + " has CPUs and GPUs; accepted: devices of one kind, whose answers are equal",
                   "device"};
    if (!device->remark.empty()) log::info("no GPU, using the CPU", {{"why", device->remark}});
    all.push_back(std::move(*device));
  }
  return all;
}

/// Queries all GPUs of a model, each once.
std::function<result<request::card_memory>()> card_usage(const std::vector<cli::device_choice>& devices) {
  std::set<int> indices;
  for (const auto& device : devices) indices.insert(device.index);
  return [gpu = devices.front().gpu, indices]() -> result<request::card_memory> {
    request::card_memory all;
    for (const int index : indices) {
      const auto card = gpu->describe_device(index);
      if (!card) return card.error();
      all.total_bytes += card->memory_bytes;
      all.free_bytes += card->free_bytes;
    }
    return all;
  };
}

/// The wishes that all engines of a model share.
cli::engine_wish wish_of(const config::config& c, std::size_t engines, bool on_gpu) {
  cli::engine_wish wish;
  wish.dtype = c.engine.dtype;
  wish.weight_format = c.engine.weight_format;
  wish.state_dtype = c.engine.state_dtype;
  wish.invariance = c.engine.invariance;
  wish.row_max = row_limits(c);
  wish.threads = c.engine.threads;
  if (wish.threads == 0 && !on_gpu && engines > 1)  // several CPU engines divide the cores
    wish.threads = std::max(std::thread::hardware_concurrency() / static_cast<std::uint32_t>(engines), 1u);
  return wish;
}

/// Loads a model on the devices, in order, and reads its identities. Errors: those of cli::plan_engine and
/// cli::open_engine; no_memory, before the weights are read; bad_file for numbers that are not finite.
result<engine_list> open_engines(const config::config& c, const load_order& order, const cli::opened_model& model,
                                 const tokenizer::vocabulary& vocabulary,
                                 const std::vector<cli::device_choice>& devices, std::string& former_identity) {
  const auto names = cli::split_devices(c.engine.device);
  cli::engine_wish wish = wish_of(c, devices.size(), devices.front().gpu != nullptr);
  wish.refuse_unmatched_patterns = order.refuse_unmatched_patterns;
  load_order rest = order;
  engine_list engines;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto device = cli::choose_device(names[i]);  // again, since its free memory may have changed
    if (!device) return device.error();
    const auto is_same = [&](const cli::device_choice& other) { return other.index == device->index; };
    const auto sharing = std::count_if(devices.begin() + static_cast<std::ptrdiff_t>(i), devices.end(), is_same);
    wish.device = names[i];
    if (order.progress)
      wish.progress = [&order, i, all = devices.size()](std::uint64_t done, std::uint64_t total) {
        order.progress(i * total + done, all * total);
      };
    const memory_room room = room_on(*device, c, rest);
    const auto plan = plan_memory(c, model, *device, room, static_cast<std::size_t>(sharing), wish);
    if (!plan) return plan.error();
    if (rest.memory_taken) {
      if (auto fits = admit(*plan, room); !fits) return fits.error();
      *rest.memory_taken += plan->bytes();
    }
    if (i == 0) {
      auto read = model::identify(model.file, vocabulary.hash());
      if (const auto same = model.file.check_unchanged(); !same) return same.error();
      if (!read.nonfinite.empty() && !c.model.allow_nonfinite)
        return model::nonfinite_tensor(model.file, read.nonfinite);
      wish.model_identity = std::move(read.identity);
      former_identity = std::move(read.former_identity);
    }
    auto engine = cli::open_engine(model, wish);
    if (!engine) return engine.error();
    log_memory((*engine)->info(), i);
    engines.push_back(std::move(*engine));
  }
  return engines;
}

/// What the settings name, before any weight is read.
struct named_parts {
  cli::opened_model model;
  std::shared_ptr<const tokenizer::vocabulary> vocabulary;
  std::vector<cli::device_choice> devices;
};

result<cli::opened_model> open_named_model(const config::config& c) {
  auto model = cli::open_model(c.model.path, c.model.adapters);
  if (!model) return about(model.error(), "model.path");
  return model;
}

result<std::shared_ptr<const tokenizer::vocabulary>> open_named_vocabulary(const config::config& c,
                                                                           const cli::opened_model& model) {
  auto vocabulary = cli::open_vocabulary(c.model.vocab, model);
  if (!vocabulary) return about(vocabulary.error(), c.model.vocab.empty() ? "model.path" : "model.vocab");
  return vocabulary;
}

result<named_parts> open_named(const config::config& c) {
  auto model = open_named_model(c);
  if (!model) return model.error();
  auto vocabulary = open_named_vocabulary(c, *model);
  if (!vocabulary) return vocabulary.error();
  auto devices = choose_devices(c.engine.device);
  if (!devices) return devices.error();
  return named_parts{std::move(*model), std::move(*vocabulary), std::move(*devices)};
}

std::function<result<std::vector<float>>(const std::string&)> state_loader(const config::config& c,
                                                                           const model::model_info& info) {
  return [info, allowed = c.model.allow_nonfinite](const std::string& path) {
    return model::load_tuned_state(path, info, allowed);
  };
}

}  // namespace

std::optional<request::served_model> check_engine(const config::config& c, std::vector<error>& faults) {
  request::served_model checked;
#if SKEIN_FAKE_ENGINE
  if (cli::split_devices(c.engine.device).front() == "fake") {
    const auto vocabulary = cli::open_vocabulary(c.model.vocab.empty() ? "bytes" : c.model.vocab);
    if (!vocabulary) faults.push_back(about(vocabulary.error(), "model.vocab"));
    return checked;
  }
#endif
  const auto model = open_named_model(c);
  if (!model) faults.push_back(model.error());
  if (model) {
    const auto vocabulary = open_named_vocabulary(c, *model);
    if (!vocabulary) faults.push_back(vocabulary.error());
  }
  const auto devices = choose_devices(c.engine.device);
  if (!devices) faults.push_back(devices.error());
  if (!model) return std::nullopt;
  if (devices) {
    cli::engine_wish wish = wish_of(c, devices->size(), devices->front().gpu != nullptr);
    for (const auto& device : *devices) {
      const auto plan =
          plan_slots(*model, device, most_buffers(c, device.gpu != nullptr), std::max(c.engine.slots, 1u), wish);
      if (plan) continue;
      faults.push_back(plan.error());
      break;
    }
  }
  checked.load_state = state_loader(c, model->info);
  checked.state = {model->info.state, dtype::f32};
  return checked;
}

result<opened_engine> open_engine(const config::config& c, const load_order& order) {
#if SKEIN_FAKE_ENGINE
  if (const auto names = cli::split_devices(c.engine.device); names.front() == "fake") {
    auto opened = open_fake(c, names.size());
    for (std::size_t i = 0; opened && i < names.size(); ++i) log_memory(opened->engines[i]->info(), i);
    return opened;
  }
#endif
  const auto named = open_named(c);
  if (!named) return named.error();
  const auto& [model, vocabulary, devices] = *named;
  const bool on_gpu = devices.front().gpu != nullptr;
  opened_engine opened;
  auto engines = open_engines(c, order, model, *vocabulary, devices, opened.former_identity);
  if (!engines) return engines.error();
  opened.engines = std::move(*engines);
  const std::string name = c.model.name.empty() ? model.file.name() : c.model.name;
  opened.model = served(c, name, opened.engines, tick_sizes(c.engine, on_gpu));
  opened.model.vocabulary = vocabulary;
  opened.model.preset.headed_tools = model.file.chat() == model::chat_form::headings;
  opened.model.preset.bot_turns = model::answers_as_bot(model.file.name());
  log_chat_template(model.file);
  opened.model.path = model.file.path().string();
  opened.model.state = opened.engines.front()->info().state;
  opened.model.load_state = state_loader(c, model.info);
  if (on_gpu) opened.model.card_usage = card_usage(devices);
  opened.model.card.version = to_string(model.info.version);
  opened.model.card.layers = model.info.layers;
  opened.model.card.embd = model.info.embd;
  opened.model.card.parameters = model.info.parameters;
  return opened;
}

}  // namespace skein::supervisor
