#include "actors/supervisor/models/model_keeper.hpp"

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <charconv>
#include <chrono>
#include <exception>
#include <utility>

#include "actors/supervisor/models/open_states.hpp"
#include "actors/supervisor/settings/settings.hpp"
#include "app/data_files.hpp"
#include "base/log/log.hpp"
#include "model/strategy.hpp"

namespace skein::supervisor {
namespace {

using namespace std::chrono_literals;
using absence = request::loaded_models::absence;
using request::model_change;
using request::model_changed;

constexpr auto watch_pause = 10ms;
constexpr auto retirement = 30s;        // for a device without requests to deliver its settled states
constexpr std::uint32_t log_step = 25;  // percent

/// Maps an error of loading an engine to one for the request that asked for it: the cause is the file or the request.
error as_answer(error why) {
  if (why.kind == error_kind::unavailable)
    why.kind = why.field == "device" ? error_kind::invalid_argument : error_kind::no_memory;
  if (why.kind == error_kind::conflict || why.kind == error_kind::damaged || why.kind == error_kind::too_large)
    why.kind = error_kind::bad_file;
  return why;
}

result<opened_engine> open_or_say_why(const config::config& settings, const load_order& order) {
  try {
    auto opened = open_engine(settings, order);
    if (opened) open_fitting_states(settings, *opened);
    return opened;
  } catch (const std::bad_alloc&) {
    return error{error_kind::no_memory, "not enough memory for the model", "model"};
  } catch (const std::exception& trouble) {
    return error{error_kind::internal, trouble.what(), ""};
  }
}

/// For one of several devices: calls `on_lost` when the last of them is lost. A call may be repeated.
std::function<void(const error&)> last_of(const std::shared_ptr<std::atomic<std::size_t>>& working,
                                          const std::function<void(const error&)>& on_lost) {
  return [=, counted = false, is_last = false](const error& why) mutable {
    if (!std::exchange(counted, true)) is_last = --*working == 0;
    if (is_last) on_lost(why);
  };
}

request::loaded_models::place coming(const std::string& id) {
  request::loaded_models::place place{{id}, nullptr, absence::coming};
  place.card.id = id;
  return place;
}

using adapter_list = std::vector<std::string>;

/// The adapter that a client names, as in model.adapters; otherwise those that are configured.
result<adapter_list> adapters_of(const request::model_change& change, const model_catalogue& catalogue,
                                 adapter_list configured) {
  if (change.adapter.empty()) return configured;
  const auto path = catalogue.adapter(change.adapter);
  if (!path) return path.error();
  std::string text = path->string();
  char scale[32];
  if (change.adapter_scale)
    text += ':' + std::string(scale, std::to_chars(scale, scale + sizeof scale, *change.adapter_scale).ptr);
  return adapter_list{std::move(text)};
}

}  // namespace

model_keeper::model_keeper(boost::asio::io_context& main, std::shared_ptr<const config::config> settings,
                           request::service_context& context, ports reach)
    : main_(main),
      settings_(std::move(settings)),
      context_(context),
      models_(*context.models),
      ports_(std::move(reach)),
      catalogue_(*settings_),
      replaces_(settings_->model.on_switch == "replace"),
      watch_timer_(main) {}

model_keeper::~model_keeper() {
  if (loader_.joinable()) loader_.join();
}

void model_keeper::ask(model_change change, model_changed done) {
  boost::asio::post(main_, [this, change = std::move(change), done = std::move(done)]() mutable {
    this->change(std::move(change), std::move(done));
  });
}

void model_keeper::change(model_change change, model_changed done) {
  if (context_.draining) return done(error{error_kind::unavailable, "the server is shutting down", ""});
  switch (change.what) {
    case model_change::task::unload: return done(unload(change.file, change.force));
    case model_change::task::wake: wake(change.file); return done(std::string());
    case model_change::task::load: return load(std::move(change), std::move(done));
  }
}

// ---------------------------------------------------------------- loading

result<config::config> model_keeper::settings_of(const model_change& change) const {
  const auto strategy = model::parse_strategy(change.strategy);
  if (!strategy) return strategy.error();
  const auto plain = model::buildable(*strategy);
  if (!plain) return plain.error();
  const auto chosen = change.by_id ? catalogue_.by_id(change.file) : catalogue_.by_path(change.file);
  if (!chosen) return chosen.error();

  config::config c = *settings_;
  if (!plain->device.empty()) c.engine.device = plain->device;
  if (!plain->dtype.empty()) c.engine.dtype = plain->dtype;
  if (!plain->dtype.empty() || !plain->weight_format.empty()) c.engine.weight_format = plain->weight_format;
  c.model.path = chosen->path.string();
  auto adapters = adapters_of(change, catalogue_, chosen->is_own ? settings_->model.adapters : adapter_list{});
  if (!adapters) return adapters.error();
  c.model.adapters = std::move(*adapters);
  c.model.name = change.name.empty() ? chosen->id : change.name;
  if (c.model.name != chosen->id) c.model.aliases.push_back(chosen->id);
  const auto own_words = chosen->path.parent_path() / (chosen->id + ".vocab.txt");
  if (!chosen->is_own && cli::is_file(own_words)) c.model.vocab = own_words.string();
  // A model with another name keeps the settings for the name of its file.
  auto preset = c.models.find(c.model.name);
  if (preset == c.models.end()) preset = c.models.find(chosen->id);
  if (preset != c.models.end()) c.models[c.model.name] = config::model_defaults(preset->second);
  return c;
}

/// Loads a model that requests wait for, unless it was dropped in the meantime.
void model_keeper::wake(const std::string& id) {
  if (running_) {
    if (running_->name != id && std::ranges::find(called_, id) == called_.end()) called_.push_back(id);
    return;
  }
  const auto known = known_.find(id);
  if (resident(id) || (known == known_.end() && resident_max() == 1)) return;
  model_change again;
  again.file = id;
  again.by_id = true;
  if (known != known_.end()) again = known->second.how;
  again.what = model_change::task::wake;
  again.force = false;
  load(again, [](const result<std::string>&) {});
  if (running_) return;
  nothing_came({again, id, {}, false});
  ports_.changed();
}

void model_keeper::load(model_change change, model_changed done) {
  if (running_)
    return done(error{error_kind::conflict, "the model '" + running_->name + "' is being loaded; try again later", ""});
  const auto settings = settings_of(change);
  if (!settings) {
    log::warning("a model cannot be loaded", {{"model", change.file}, {"why", settings.error().message}});
    return done(settings.error());
  }
  const std::string name = settings->model.name;
  log::info("loading", {{"model", name}, {"percent", 0u}});
  models_.set_loading(request::loaded_models::load{name, 0});
  running_ = running_load{std::move(change), name, {}, false};
  waiting_ = std::move(done);
  if (replaces_) displace_for(name);
  if (!memory_comes()) begin_load();  // otherwise when they have ended
}

/// Unloads the displaced model first; requests wait for the new one. Requests read the list concurrently, so it always
/// contains a model that they can wait for.
void model_keeper::displace_for(const std::string& name) {
  request::model_ref old = resident(name);
  if (!old && models_.resident().size() >= resident_max()) old = least_used(name, false);
  if (!old) return;
  running_->displaced = old->id();
  running_->displaced_current = old == models_.current();
  const bool was_asked = running_->change.what == model_change::task::load;
  models_.put(coming(name), was_asked || running_->displaced_current);
  if (old->id() == name) {
    remember(*old);
    retire(old, running_->change.force);
  } else {
    send_away(old, running_->change.force);
  }
}

/// Whether models are ending whose memory the next one may need.
bool model_keeper::memory_comes() const {
  return std::ranges::any_of(retired_,
                             [this](const retired& r) { return replaces_ || r.told || r.model.use_count() == 1; });
}

/// Called when no more memory will be freed.
void model_keeper::begin_load() {
  const auto settings = settings_of(running_->change);
  if (!settings) return end_load(settings.error());
  const std::string name = settings->model.name;
  load_order order;
  order.progress = [this, name, said = 0u](std::uint64_t at, std::uint64_t all) mutable {
    const auto percent = static_cast<std::uint32_t>(all == 0 ? 100 : 100 * at / all);
    models_.set_loading(request::loaded_models::load{name, percent});
    if (percent < said + log_step) return;
    said = percent;
    log::info("loading", {{"model", name}, {"percent", percent}});
  };
  order.memory_taken = 0;
  each_model([&](const request::loaded_model& m) { *order.memory_taken += m.devices.memory().bytes(); });
  try {
    loader_ = std::thread([this, c = *settings, order = std::move(order)] {
      auto opened = std::make_shared<result<opened_engine>>(open_or_say_why(c, order));
      boost::asio::post(main_, [this, opened] { loaded(std::move(*opened)); });
    });
  } catch (const std::exception& trouble) {  // no thread, or no memory
    end_load(error{error_kind::internal, trouble.what(), ""});
  }
}

/// Reports the outcome to the waiting caller, unless give_up() already did.
void model_keeper::end_load(const result<std::string>& outcome) {
  const running_load over = *std::exchange(running_, std::nullopt);
  models_.set_loading(std::nullopt);
  if (!outcome) {
    log::warning("a model cannot be loaded", {{"model", over.name}, {"why", outcome.error().message}});
    nothing_came(over);
  }
  if (const auto done = std::exchange(waiting_, nullptr)) done(outcome);
  ports_.changed();
  while (!running_ && !called_.empty() && !context_.draining) {
    const std::string next = called_.front();
    called_.pop_front();
    wake(next);
  }
}

/// Restores the entries of a model that failed to load and of the one displaced for it. Waiting requests are notified.
void model_keeper::nothing_came(const running_load& load) {
  const auto as_it_was = [&](const std::string& id, absence why, bool as_current) {
    auto place = models_.place_of(id).value_or(coming(id));
    place.why = why;
    models_.put(std::move(place), as_current);
  };
  // First, because requests read concurrently and need a model that they can wait for.
  if (!load.displaced.empty() && known_.contains(load.displaced)) {
    as_it_was(load.displaced, absence::coming, load.displaced_current);
    called_.push_front(load.displaced);
  }
  if (!resident(load.name) && load.name != load.displaced) {
    if (known_.contains(load.name))
      as_it_was(load.name, absence::resting, false);
    else
      models_.forget(load.name);
  }
}

void model_keeper::loaded(result<opened_engine> opened) {
  loader_.join();
  if (!opened) {
    const error why = as_answer(opened.error());
    if (why.kind != error_kind::no_memory || resident_max() == 1) return end_load(why);
    const auto idle = least_used(running_->name, true);
    if (!idle) return end_load(why);
    send_away(idle, false);  // the load is retried when its memory is free
    return;
  }
  if (context_.draining) return;  // the caller was told by give_up()
  const std::string id = opened->model.names.front();
  try {
    install(std::move(*opened), running_->change);
  } catch (const std::exception& trouble) {  // no thread, or no memory
    return end_load(error{error_kind::internal, trouble.what(), ""});
  }
  end_load(id);
}

void model_keeper::install(opened_engine opened) {
  model_change how;
  how.file = catalogue_.own_id();
  how.by_id = true;
  install(std::move(opened), how);
}

/// A requested model starts without earlier state and becomes current; one that is loaded again keeps the tuned states
/// that clients added.
void model_keeper::install(opened_engine opened, const model_change& how) {
  const engine::engine_info& info = opened.engines.front()->info();
  ports_.known.add(info.model_identity, opened.former_identity, {info.state, info.vocab});
  const bool was_asked = how.what == model_change::task::load;
  const std::string id = opened.model.names.front();
  if (const auto it = known_.find(id); !was_asked && it != known_.end())
    if (const known_model& was = it->second; was.states && was.identity == info.model_identity)
      opened.states = *was.states;

  auto next = std::make_shared<request::loaded_model>();
  next->served = std::move(opened.model);
  next->change_defaults(how.defaults);
  auto options = device_options(*settings_);
  options.scheduling.prefill_chunk_tokens = next->served.prefill_chunk_tokens;
  const auto working = std::make_shared<std::atomic<std::size_t>>(opened.engines.size());
  for (auto& engine : opened.engines) {
    options.id = static_cast<device_id>(next->devices.size());
    next->devices.add(std::make_unique<device::device_actor>(std::move(engine), options, ports_.events, real_clock(),
                                                             last_of(working, ports_.on_lost), &ports_.states));
  }
  for (auto& state : opened.states)
    ignore(next->tuned.put(std::move(state), settings_->model.tuned_states_max), "their number was checked");
  known_[id] = {how, context_.time->now(), {}, nullptr};
  log::info("model ready", {{"model", id}});
  const auto same = resident(id);
  models_.put(next, was_asked);
  if (same) retire(same, how.force);
  while (models_.resident().size() > resident_max()) send_away(least_used(id, false), how.force);
  if (resident_max() == 1) keep_only(id);
  models_.set_available(catalogue_.ids(), resident_max() > 1);
}

/// Drops the least recently used resting models above model.resting_max.
void model_keeper::forget_resting() {
  const auto rests = [this](const auto& k) {
    const bool is_needed = running_ && (running_->name == k.first || running_->displaced == k.first);
    return !is_needed && !resident(k.first);
  };
  while (std::ranges::count_if(known_, rests) > settings_->model.resting_max) {
    auto oldest = known_.end();
    for (auto it = known_.begin(); it != known_.end(); ++it)
      if (rests(*it) && (oldest == known_.end() || it->second.used_at < oldest->second.used_at)) oldest = it;
    models_.forget(oldest->first);
    known_.erase(oldest);
  }
}

void model_keeper::keep_only(const std::string& id) {
  std::erase_if(known_, [&](const auto& k) { return k.first != id; });
  for (const auto& place : models_.places())
    if (place.names.front() != id) models_.forget(place.names.front());
}

void model_keeper::change(std::shared_ptr<const config::config> settings) {
  settings_ = std::move(settings);
  tell_limits();
  for (const auto& model : models_.resident()) {
    const auto loaded = settings_of(known_.at(model->id()).how);
    model->change_preset(model_preset(loaded ? *loaded : *settings_, model->id()));
  }
}

/// A device with a full mailbox gets them at a later tick; a closed one does not need them.
void model_keeper::tell_limits() {
  limits_untold_ = false;
  each_model([&](const request::loaded_model& m) {
    if (!m.devices.tell(device::change_limits{settings_->queue})) limits_untold_ = true;
  });
}

// ---------------------------------------------------------------- unloading

request::model_ref model_keeper::resident(std::string_view id) const {
  const auto all = models_.resident();
  const auto found = std::ranges::find(all, id, &request::loaded_model::id);
  return found == all.end() ? nullptr : *found;
}

/// A held reference counts as use, so the caller must not hold one.
std::vector<model_keeper::use> model_keeper::uses() {
  constexpr long held_here_and_shown = 2;
  std::vector<use> all;
  for (auto& model : models_.resident()) {
    steady_time& used_at = known_.at(model->id()).used_at;
    const bool idle =
        model.use_count() <= held_here_and_shown && model->devices.sum(&device::device_counters::requests) == 0;
    if (!idle) used_at = context_.time->now();
    const steady_time worked_at = model->devices.last_tick_at();
    all.push_back({std::move(model), idle, std::max(used_at, worked_at)});
  }
  return all;
}

/// Prefers idle models. Null: there is no other model, or, with `idle_only`, all others are in use.
request::model_ref model_keeper::least_used(std::string_view but, bool idle_only) {
  auto all = uses();
  std::erase_if(all, [&](const use& u) { return u.model->id() == but || (idle_only && !u.idle); });
  const auto least = std::ranges::min_element(all, {}, [](const use& u) { return std::pair(!u.idle, u.at); });
  return least == all.end() ? nullptr : least->model;
}

/// Retires a model; its requests finish on it. It rests if several models may be in memory; otherwise it is dropped.
void model_keeper::send_away(const request::model_ref& model, bool force) {
  rest(*model);
  if (resident_max() == 1) models_.forget(model->id());
  retire(model, force);
}

void model_keeper::remember(const request::loaded_model& model) {
  known_model& known = known_.at(model.id());
  known.identity = model.served.card.identity;
  known.states = model.tuned.all();
}

void model_keeper::rest(const request::loaded_model& model) {
  remember(model);
  models_.put({model.served.names, nullptr, absence::resting, model.served.card}, false);
  forget_resting();
}

void model_keeper::retire(request::model_ref old, bool force) {
  log::info(
      "model retired",
      {{"model", old->id()}, {"requests", old->devices.sum(&device::device_counters::requests)}, {"by_force", force}});
  retired_.push_back({std::move(old)});
  if (force) cut_off(retired_.back());
  watch();
}

/// Unloads one model, or all if `id` is empty. A running load continues.
result<std::string> model_keeper::unload(const std::string& id, bool force) {
  bool any = id.empty(), was_current = false;
  const std::string current = models_.find("", false).id;
  for (const auto& place : models_.places()) {
    const std::string& name = place.names.front();
    if (!id.empty() && id != name) continue;
    any = true;
    was_current = was_current || name == current;
    known_.erase(name);
    std::erase(called_, name);
    if (!running_ || running_->name != name || place.model) models_.forget(name);
    if (place.model) retire(place.model, force);
  }
  if (!any) return error{error_kind::not_found, "there is no model '" + id + "'", "model"};
  if (force && id.empty())
    for (retired& r : retired_) cut_off(r);
  if (running_ && (id.empty() || id == running_->displaced)) running_->displaced.clear();
  if (was_current)  // then the most recently used one becomes current
    if (const auto all = uses(); !all.empty())
      models_.make_current(std::ranges::max_element(all, {}, &use::at)->model->id());
  return std::string();
}

void model_keeper::cut_off(retired& old) {
  old.told = true;
  old.model->cut_off = true;
  old.model->devices.shut_down(real_clock().now());
}

void model_keeper::watch() {
  if (std::exchange(watching_, true)) return;
  watch_timer_.expires_after(watch_pause);
  watch_timer_.async_wait([this](const boost::system::error_code& ec) {
    watching_ = false;
    if (ec) return;
    look_after_retired();
    if (!retired_.empty()) watch();
  });
}

/// A model is unused if only this list holds it, since no further references are handed out.
void model_keeper::look_after_retired() {
  for (retired& r : retired_) {
    if (r.told || r.model.use_count() > 1) continue;
    r.told = true;
    r.model->devices.shut_down(real_clock().now() + retirement);
  }
  std::erase_if(retired_, [](const retired& r) {
    if (!r.told || !r.model->devices.ended()) return false;
    log::info("model unloaded", {{"model", r.model->id()}});
    return true;
  });
  if (running_ && !loading() && !context_.draining && !memory_comes()) begin_load();
}

void model_keeper::tick() {
  if (limits_untold_) tell_limits();
  if (settings_->model.idle_unload_s == 0 || running_) return;
  for (use& u : uses()) {
    if (context_.time->now() - u.at < std::chrono::seconds(settings_->model.idle_unload_s)) continue;
    log::info("model idle", {{"model", u.model->id()}});
    rest(*u.model);
    retire(std::move(u.model), false);
  }
}

// ---------------------------------------------------------------- the end

void model_keeper::each_model(const std::function<void(const request::loaded_model&)>& visit) const {
  for (const auto& model : models_.resident()) visit(*model);
  for (const retired& r : retired_) visit(*r.model);
}

void model_keeper::give_up() {
  if (const auto done = std::exchange(waiting_, nullptr))
    done(error{error_kind::unavailable, "the server is shutting down", ""});
}

void model_keeper::shut_down(steady_time deadline) {
  each_model([&](const request::loaded_model& m) { m.devices.shut_down(deadline); });
}

bool model_keeper::ended() const {
  bool all = true;
  each_model([&](const request::loaded_model& m) { all = all && m.devices.ended(); });
  return all;
}

std::uint32_t model_keeper::requests() const {
  std::uint32_t all = 0;
  each_model([&](const request::loaded_model& m) { all += m.devices.sum(&device::device_counters::requests); });
  return all;
}

std::uint32_t model_keeper::waiting() const {
  std::uint32_t all = 0;
  each_model([&](const request::loaded_model& m) { all += m.devices.sum(&device::device_counters::waiting); });
  return all;
}

void model_keeper::stop() {
  watch_timer_.cancel();
  each_model([](const request::loaded_model& m) { m.devices.stop(); });
}

}  // namespace skein::supervisor
