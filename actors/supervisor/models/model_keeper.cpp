#include "actors/supervisor/models/model_keeper.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "actors/supervisor/models/load_settings.hpp"
#include "actors/supervisor/settings/settings.hpp"
#include "base/log/log.hpp"

namespace skein::supervisor {
namespace {

using absence = request::loaded_models::absence;
using request::model_change;
using request::model_changed;

constexpr std::uint32_t log_step = 25;  // percent

/// Maps an error of loading an engine to one for the request that asked for it: the cause is the file or the request.
error as_answer(error why) {
  if (why.kind == error_kind::unavailable)
    why.kind = why.field == "device" ? error_kind::invalid_argument : error_kind::no_memory;
  if (why.kind == error_kind::conflict || why.kind == error_kind::damaged || why.kind == error_kind::too_large)
    why.kind = error_kind::bad_file;
  return why;
}

request::loaded_models::place coming(const std::string& id) {
  request::loaded_models::place place{{id}, nullptr, absence::coming};
  place.card.id = id;
  return place;
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
      known_(*context.models, *context.time),
      retired_(main,
               [this] {
                 if (running_ && !loading() && !context_.draining && !memory_comes()) begin_load();
               }),
      loader_(main) {}

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

/// Loads a model that requests wait for, unless it was dropped in the meantime.
void model_keeper::wake(const std::string& id) {
  if (running_) {
    if (running_->name != id && std::ranges::find(called_, id) == called_.end()) called_.push_back(id);
    return;
  }
  const bool is_known = known_.contains(id);
  if (known_.resident(id) || (!is_known && resident_max() == 1)) return;
  model_change again;
  again.file = id;
  again.by_id = true;
  if (is_known) again = known_.how(id);
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
  const auto settings = load_settings(change, catalogue_, *settings_);
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
  request::model_ref old = known_.resident(name);
  if (!old && models_.resident().size() >= resident_max()) old = known_.least_used(name, false);
  if (!old) return;
  running_->displaced = old->id();
  running_->displaced_current = old == models_.current();
  const bool was_asked = running_->change.what == model_change::task::load;
  models_.put(coming(name), was_asked || running_->displaced_current);
  if (old->id() == name) {
    known_.remember(*old);
    retired_.add(old, running_->change.force);
  } else {
    send_away(old, running_->change.force);
  }
}

/// Whether models are ending whose memory the next one may need.
bool model_keeper::memory_comes() const { return replaces_ ? !retired_.empty() : retired_.any_ending(); }

/// Called when no more memory will be freed.
void model_keeper::begin_load() {
  const auto settings = load_settings(running_->change, catalogue_, *settings_);
  if (!settings) return end_load(settings.error());
  const std::string name = settings->model.name;
  load_order order;
  order.refuse_unmatched_patterns = false;
  order.progress = [this, name, said = 0u](std::uint64_t at, std::uint64_t all) mutable {
    const auto percent = static_cast<std::uint32_t>(all == 0 ? 100 : 100 * at / all);
    models_.set_loading(request::loaded_models::load{name, percent});
    if (percent < said + log_step) return;
    said = percent;
    log::info("loading", {{"model", name}, {"percent", percent}});
  };
  order.memory_taken = 0;
  each_model([&](const request::loaded_model& m) { *order.memory_taken += m.devices.memory().bytes(); });
  const auto begun =
      loader_.start(*settings, std::move(order), [this](result<opened_engine> opened) { loaded(std::move(opened)); });
  if (!begun) end_load(begun.error());
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
  if (!known_.resident(load.name) && load.name != load.displaced) {
    if (known_.contains(load.name))
      as_it_was(load.name, absence::resting, false);
    else
      models_.forget(load.name);
  }
}

void model_keeper::loaded(result<opened_engine> opened) {
  if (!opened) {
    const error why = as_answer(opened.error());
    if (why.kind != error_kind::no_memory || resident_max() == 1) return end_load(why);
    const auto idle = known_.least_used(running_->name, true);
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
  if (!was_asked)
    if (const auto states = known_.states_of(id, info.model_identity)) opened.states = *states;

  const auto next = start_model(std::move(opened), *settings_, ports_.devices);
  next->change_defaults(how.defaults);
  known_.add(id, how);
  log::info("model ready", {{"model", id}});
  const auto same = known_.resident(id);
  models_.put(next, was_asked);
  if (same) retired_.add(same, how.force);
  while (models_.resident().size() > resident_max()) send_away(known_.least_used(id, false), how.force);
  if (resident_max() == 1) known_.keep_only(id);
  models_.set_available(catalogue_.ids(), resident_max() > 1);
}

void model_keeper::change(std::shared_ptr<const config::config> settings) {
  settings_ = std::move(settings);
  tell_limits();
  for (const auto& model : models_.resident()) {
    const auto loaded = load_settings(known_.how(model->id()), catalogue_, *settings_);
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

/// Retires a model; its requests finish on it. It rests if several models may be in memory; otherwise it is dropped.
void model_keeper::send_away(const request::model_ref& model, bool force) {
  rest(*model);
  if (resident_max() == 1) models_.forget(model->id());
  retired_.add(model, force);
}

void model_keeper::rest(const request::loaded_model& model) {
  known_.remember(model);
  models_.put({model.served.names, nullptr, absence::resting, model.served.card}, false);
  known_.forget_resting(settings_->model.resting_max, [this](const std::string& id) {
    return running_ && (running_->name == id || running_->displaced == id);
  });
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
    known_.forget(name);
    std::erase(called_, name);
    if (!running_ || running_->name != name || place.model) models_.forget(name);
    if (place.model) retired_.add(place.model, force);
  }
  if (!any) return error{error_kind::not_found, "there is no model '" + id + "'", "model"};
  if (force && id.empty()) retired_.cut_off();
  if (running_ && (id.empty() || id == running_->displaced)) running_->displaced.clear();
  if (was_current)  // then the most recently used one becomes current
    if (const auto all = known_.uses(); !all.empty())
      models_.make_current(std::ranges::max_element(all, {}, &known_models::use::at)->model->id());
  return std::string();
}

void model_keeper::tick() {
  if (limits_untold_) tell_limits();
  if (settings_->model.idle_unload_s == 0 || running_) return;
  for (known_models::use& u : known_.uses()) {
    if (context_.time->now() - u.at < std::chrono::seconds(settings_->model.idle_unload_s)) continue;
    log::info("model idle", {{"model", u.model->id()}});
    rest(*u.model);
    retired_.add(std::move(u.model), false);
  }
}

// ---------------------------------------------------------------- the end

void model_keeper::each_model(const std::function<void(const request::loaded_model&)>& visit) const {
  for (const auto& model : models_.resident()) visit(*model);
  retired_.each(visit);
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
  retired_.stop();
  each_model([](const request::loaded_model& m) { m.devices.stop(); });
}

}  // namespace skein::supervisor
