#include "actors/supervisor/model_keeper.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "actors/supervisor/open_states.hpp"
#include "actors/supervisor/settings.hpp"
#include "base/log.hpp"
#include "cli/data_files.hpp"
#include "model/strategy.hpp"

namespace skein::supervisor {
namespace {

using namespace std::chrono_literals;
using absence = request::loaded_models::absence;
using request::model_change;
using request::model_changed;

constexpr auto watch_pause = 10ms;
constexpr auto retirement = 30s;        // for what a device still owes when nobody waits for it: settled states
constexpr std::uint32_t log_step = 25;  // percent

/// What an engine says at a start, where a request asked for it: the file or the wish is at fault.
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
    return error{error_kind::no_memory, "there is no memory for the model", "model"};
  } catch (const std::exception& trouble) {
    return error{error_kind::internal, trouble.what(), ""};
  }
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
      watch_timer_(main) {
  last_load_.emplace();
  last_load_->file = catalogue_.own_id();
  last_load_->by_id = true;
}

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
    case model_change::task::unload: unload(change.force); return done(std::string());
    case model_change::task::wake: return wake(std::move(done));
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
  c.model.path = chosen->path.string();
  c.model.name = change.name.empty() ? chosen->id : change.name;
  if (c.model.name != chosen->id) c.model.aliases.push_back(chosen->id);
  const auto own_words = chosen->path.parent_path() / (chosen->path.stem().string() + ".vocab.txt");
  if (!chosen->is_own && cli::is_file(own_words)) c.model.vocab = own_words.string();
  // Defaults that come with the load hold for this model until it is loaded anew.
  auto preset = c.models.find(c.model.name);
  if (preset == c.models.end()) preset = c.models.find(chosen->id);
  config::model_defaults defaults = preset == c.models.end() ? config::model_defaults{} : preset->second;
  if (change.temperature) defaults.temperature = *change.temperature;
  if (change.top_p) defaults.top_p = *change.top_p;
  if (change.end_text)
    defaults.stop = change.end_text->empty() ? std::vector<std::string>() : std::vector{*change.end_text};
  c.models[c.model.name] = std::move(defaults);
  return c;
}

/// A load that runs already brings a model too.
void model_keeper::wake(model_changed done) {
  if (running_ || models_.current() || !last_load_) return done(std::string());
  model_change again = *last_load_;
  again.what = model_change::task::wake;
  again.force = false;
  load(std::move(again), std::move(done));
  if (!running_) nothing_comes();
}

/// Of those who wait for a model, each hears so.
void model_keeper::nothing_comes() {
  models_.why_none = last_load_ ? absence::resting : absence::unloaded;
  ports_.changed();
}

void model_keeper::load(model_change change, model_changed done) {
  if (running_)
    return done(error{error_kind::conflict, "the model '" + running_->file + "' is being loaded; try again later", ""});
  const auto settings = settings_of(change);
  if (!settings) {
    log::warning("a model cannot be loaded", {{"model", change.file}, {"why", settings.error().message}});
    return done(settings.error());
  }
  const std::string name = settings->model.name;
  log::info("loading", {{"model", name}, {"percent", 0u}});
  models_.set_loading(request::loaded_models::load{name, 0});
  running_ = std::move(change);
  waiting_ = std::move(done);
  if (replaces_ && models_.current()) {
    remember(*models_.current());
    models_.why_none = absence::coming;
    replace(nullptr, running_->force);
  }
  if (!memory_comes()) begin_load();  // else when they have gone
}

/// Whether models are about to go whose memory the next one may need.
bool model_keeper::memory_comes() const {
  return std::ranges::any_of(retired_,
                             [this](const retired& r) { return replaces_ || r.told || r.model.use_count() == 1; });
}

/// A model that comes back brings the tuned states that clients gave it.
void model_keeper::remember(const request::loaded_model& model) {
  remains_ = remains{model.served.card.identity, model.tuned.all()};
}

/// Now there is all the memory that there will be.
void model_keeper::begin_load() {
  const auto settings = settings_of(*running_);
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
  each_device(
      [&](request::loaded_model& m) { *order.memory_taken += m.counters->ended ? 0 : memory_of(m.actor->info()); });
  try {
    loader_ = std::thread([this, c = *settings, order = std::move(order)] {
      auto opened = std::make_shared<result<opened_engine>>(open_or_say_why(c, order));
      boost::asio::post(main_, [this, opened] { loaded(std::move(*opened)); });
    });
  } catch (const std::exception& trouble) {  // no thread, or no memory
    end_load(error{error_kind::internal, trouble.what(), ""});
  }
}

/// Whoever waits hears how it went, unless the server's end was told already.
void model_keeper::end_load(const result<std::string>& outcome) {
  if (!outcome) log::warning("a model cannot be loaded", {{"model", running_->file}, {"why", outcome.error().message}});
  models_.set_loading(std::nullopt);
  const bool was_asked = std::exchange(running_, std::nullopt)->what == model_change::task::load;
  if (const auto done = std::exchange(waiting_, nullptr)) done(outcome);
  if (!models_.current() && models_.why_none == absence::coming) {  // this one failed, and the old one has gone
    if (was_asked && last_load_) return wake([](const result<std::string>&) {});
    return nothing_comes();
  }
  ports_.changed();
}

void model_keeper::loaded(result<opened_engine> opened) {
  loader_.join();
  if (!opened) return end_load(as_answer(opened.error()));
  if (context_.draining) return;  // whoever waited has heard it
  const std::string id = opened->model.names.front();
  const auto left = std::exchange(remains_, std::nullopt);
  if (left && left->identity == opened->model.card.identity && running_->what == model_change::task::wake)
    opened->states = *left->states;
  try {
    install(std::move(*opened), running_->force);
  } catch (const std::exception& trouble) {  // as above
    return end_load(error{error_kind::internal, trouble.what(), ""});
  }
  last_load_ = running_;
  end_load(id);
}

void model_keeper::install(opened_engine opened, bool force) {
  const auto& info = opened.engine->info();
  ports_.known.add(info.model_identity, {opened.layout, info.vocab});
  auto next = std::make_shared<request::loaded_model>();
  next->served = std::move(opened.model);
  auto options = device_options(*settings_);
  options.prefill_chunk_tokens = next->served.prefill_chunk_tokens;
  next->actor = std::make_unique<device::device_actor>(std::move(opened.engine), options, ports_.events, real_clock(),
                                                       ports_.on_lost, &ports_.states);
  next->device = &next->actor->inbox();
  next->counters = &next->actor->counters();
  for (auto& state : opened.states)
    ignore(next->tuned.put(std::move(state), settings_->model.tuned_states_max), "they were counted");
  replace(std::move(next), force);
}

void model_keeper::change(std::shared_ptr<const config::config> settings) {
  settings_ = std::move(settings);
  const auto options = device_options(*settings_);
  each_device([&](request::loaded_model& m) {
    (void)m.device->push_urgent(device::change_limits{options.waiting_max, options.waiting_per_client_max,
                                                      options.turn_tokens, options.parked_max,
                                                      options.parked_bytes_max});  // closed: it ends anyway
  });
  const auto model = models_.current();
  if (!model) return;
  const auto loaded = last_load_ ? settings_of(*last_load_) : result<config::config>(*settings_);
  if (loaded) model->change_preset(model_preset(*loaded, model->served.names.front()));
}

// ---------------------------------------------------------------- one goes, another comes

void model_keeper::unload(bool force) {
  models_.why_none = absence::unloaded;
  last_load_.reset();
  remains_.reset();
  if (force)
    for (retired& r : retired_) cut_off(r);
  replace(nullptr, force);
}

void model_keeper::replace(request::model_ref next, bool force) {
  used_at_ = context_.time->now();
  if (next) {
    log::info("model ready", {{"model", next->served.names.front()}});
  }
  request::model_ref old = models_.current();
  models_.show(std::move(next));
  models_.set_available(catalogue_.ids());
  if (!old) return;
  log::info("model retires",
            {{"model", old->served.names.front()}, {"requests", old->counters->requests.load()}, {"by_force", force}});
  retired_.push_back({std::move(old)});
  if (force) cut_off(retired_.back());
  watch();
}

void model_keeper::cut_off(retired& old) {
  old.told = true;
  old.model->cut_off = true;
  (void)old.model->device->push_urgent(device::shutdown{real_clock().now()});
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

/// A model is nobody's when only this list holds it: no more references are given out.
void model_keeper::look_after_retired() {
  for (retired& r : retired_) {
    if (r.told || r.model.use_count() > 1) continue;
    r.told = true;
    if (!r.model->device->push_urgent(device::shutdown{real_clock().now() + retirement})) r.model->device->close();
  }
  std::erase_if(retired_, [](const retired& r) {
    if (!r.told || !r.model->counters->ended) return false;
    log::info("model unloaded", {{"model", r.model->served.names.front()}});
    return true;
  });
  if (running_ && !loading() && !context_.draining && !memory_comes()) begin_load();
}

void model_keeper::tick() {
  if (settings_->model.idle_unload_s == 0 || running_) return;
  request::model_ref model = models_.current();
  if (!model) return;
  constexpr long held_here_and_shown = 2;
  const steady_time now = context_.time->now();
  const steady_time worked_at{steady_time::duration(model->counters->last_tick_at.load())};
  if (model.use_count() > held_here_and_shown) used_at_ = now;
  if (now - std::max(used_at_, worked_at) < std::chrono::seconds(settings_->model.idle_unload_s)) return;
  log::info("nobody uses the model", {{"model", model->served.names.front()}});
  remember(*model);
  model.reset();
  models_.why_none = absence::resting;
  replace(nullptr, false);
}

// ---------------------------------------------------------------- the end

void model_keeper::each_device(const std::function<void(request::loaded_model&)>& visit) const {
  if (const auto model = models_.current()) visit(*model);
  for (const retired& r : retired_) visit(*r.model);
}

void model_keeper::give_up() {
  if (const auto done = std::exchange(waiting_, nullptr))
    done(error{error_kind::unavailable, "the server is shutting down", ""});
}

void model_keeper::shut_down(steady_time deadline) {
  each_device([&](request::loaded_model& m) {
    if (!m.device->push_urgent(device::shutdown{deadline})) m.device->close();
  });
}

bool model_keeper::ended() const {
  bool all = true;
  each_device([&](request::loaded_model& m) { all = all && m.counters->ended; });
  return all;
}

std::uint32_t model_keeper::requests() const {
  std::uint32_t all = 0;
  each_device([&](request::loaded_model& m) { all += m.counters->requests; });
  return all;
}

void model_keeper::stop() {
  watch_timer_.cancel();
  each_device([](request::loaded_model& m) {
    m.device->close();
    m.actor->join();
  });
}

}  // namespace skein::supervisor
