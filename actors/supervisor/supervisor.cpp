#include "actors/supervisor/supervisor.hpp"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actors/connection/io_thread.hpp"
#include "actors/listener/listener.hpp"
#include "actors/persistence/persistence_actor.hpp"
#include "actors/request/service/api_service.hpp"
#include "actors/request/shared/event_router.hpp"
#include "actors/request/shared/reply_router.hpp"
#include "actors/request/status/health.hpp"
#include "actors/supervisor/front_service.hpp"
#include "actors/supervisor/models/model_keeper.hpp"
#include "actors/supervisor/models/open_engine.hpp"
#include "actors/supervisor/models/open_states.hpp"
#include "actors/supervisor/process/allocator.hpp"
#include "actors/supervisor/process/open_sockets.hpp"
#include "actors/supervisor/process/service_manager.hpp"
#include "actors/supervisor/process/worker_pool.hpp"
#include "actors/supervisor/settings/open_keys.hpp"
#include "actors/supervisor/settings/open_store.hpp"
#include "actors/supervisor/settings/settings.hpp"
#include "actors/supervisor/state_carrier.hpp"
#include "app/exit_code.hpp"
#include "app/load_settings.hpp"
#include "base/log/log.hpp"
#include "base/result.hpp"
#include "base/threads/start_thread.hpp"
#include "base/version.hpp"
#include "config/reload.hpp"
#include "config/rules.hpp"

namespace skein::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t worker_queue_max = 256;
constexpr std::size_t events_max = 65536;  // limit of pending events of one io thread
constexpr auto heartbeat = 1s;             // ticks of the request hubs
constexpr auto drain_poll = 10ms;
constexpr auto farewell = 5s;             // for responses that are still in socket buffers
constexpr auto hurried_farewell = 500ms;  // after a second signal
constexpr auto device_patience = 3s;      // for the device to end, after the time for its requests and their last bytes
constexpr auto hurried_flush_time = 3s;   // for writing dirty states to disk after a second signal, at most
constexpr auto report_time = 1s;          // between two reports to a service manager; less if its watchdog is shorter
constexpr auto more_time = 30s;           // timeout extension requested while a load makes progress
constexpr auto load_patience = 120s;      // without progress of a load
constexpr auto flush_patience = 2s;       // for a disk that does not respond, after drain.flush_ms

/// The result of the loader thread.
struct opened_parts {
  opened_engine engine;
  opened_store store;
};

result<opened_parts> open_parts(const config::config& settings, const load_order& order) {
  auto engine = open_engine(settings, order);
  if (!engine) return engine.error();
  if (auto ok = open_states(settings, *engine); !ok) return ok.error();
  auto store = open_store(settings);
  if (!store) return store.error();
  return opened_parts{std::move(*engine), std::move(*store)};
}

/// open_parts with exceptions as errors, for the loader thread.
result<opened_parts> open_parts_or_say_why(const config::config& settings, const load_order& order) {
  try {
    return open_parts(settings, order);
  } catch (const std::exception& trouble) {
    return error_of(trouble);
  }
}

std::int64_t unix_time_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// The URL of the chat page for a browser on this machine; empty: none.
std::string page_address(const config::server_settings& c, std::uint16_t port) {
  if (!c.web_page || port == 0) return {};
  const bool everywhere = c.host == "0.0.0.0" || c.host == "::";
  const std::string host = everywhere                              ? "localhost"
                           : c.host.find(':') != std::string::npos ? '[' + c.host + ']'
                                                                   : c.host;
  return "http://" + host + ':' + std::to_string(port) + '/';
}

/// The objects of one io thread. Hub and service are created when the model is loaded.
struct lane {
  std::unique_ptr<connection::io_thread> thread;
  std::unique_ptr<front_service> front;
  std::unique_ptr<request::request_hub> hub;
  std::unique_ptr<request::api_service> service;
};

/// Owns the actors, in order of lifetime: members use those declared above them. The io threads and the listener start
/// first and answer requests while a separate thread loads the model. The main thread only waits for signals and for
/// the result of that thread.
class server {
 public:
  server(const config::config& settings, std::function<config::loaded()> again)
      : settings_(settings), read_again_(std::move(again)), workers_(worker_queue_max), logins_(settings.limits) {}
  ~server();
  server(const server&) = delete;  // one server per process
  server& operator=(const server&) = delete;

  result<void> run();
  [[nodiscard]] bool loading() const { return loader_.joinable() || (keeper_ && keeper_->loading()); }
  [[noreturn]] void leave_loader(cli::exit_code code);

 private:
  result<void> listen();
  void load();
  void loaded(result<opened_parts> opened);
  void start_actors(opened_parts opened);
  void start_persistence(const opened_parts& parts);
  void await_signal();
  void on_signal(int number);
  void on_lost(const error& why);
  void reload();
  [[nodiscard]] result<config::reloaded> read_again();
  void take_settings(config::config fresh);
  void begin_drain(duration grace);
  void stop_work(duration patience, duration farewell_time);
  void await_end();
  void await_flush();
  [[noreturn]] void leave_behind(std::string_view what);
  void beat();
  void tick();
  void report();
  void report_load(const request::loaded_models::load& load);

  const config::config& settings_;  // settings at the start
  std::shared_ptr<const config::config> live_ = std::make_shared<config::config>(settings_);
  const std::function<config::loaded()> read_again_;
  bool reload_wanted_ = false;  // reload as soon as the server is ready
  boost::asio::io_context main_{1};
  boost::asio::signal_set signals_{main_, SIGTERM, SIGINT, SIGHUP};
  boost::asio::steady_timer heartbeat_{main_};
  boost::asio::steady_timer drain_timer_{main_};
  boost::asio::steady_timer report_timer_{main_};
  service_manager manager_ = service_manager::from_environment();
  std::uint32_t load_percent_ = 0;
  steady_time load_moved_ = real_clock().now();
  std::thread loader_;
  worker_pool workers_;
  request::login_guard logins_;
  std::shared_ptr<request::service_context> loading_context_ = std::make_shared<request::service_context>();
  std::shared_ptr<request::service_context> context_ = std::make_shared<request::service_context>();
  std::unique_ptr<request::event_router> router_;
  std::unique_ptr<request::reply_router> replies_;
  std::vector<lane> lanes_;
  std::unique_ptr<persistence::persistence_actor> persistence_;
  std::unique_ptr<state_carrier> states_;
  std::shared_ptr<storage::model_table> known_models_;
  std::unique_ptr<model_keeper> keeper_;
  std::unique_ptr<listener::listener> listener_;
  std::unique_ptr<open_sockets> sockets_;
  std::optional<error> trouble_;  // why the server ends: the model cannot be loaded, or the device is lost
  int signals_seen_ = 0;
  duration farewell_time_ = duration::max();
  steady_time farewell_until_ = steady_time::max();
  steady_time device_until_ = steady_time::max();
  std::optional<steady_time> flush_until_;  // set when the persistence actor was told to end
};

/// Runs until a signal or an error ends the server.
result<void> server::run() {
  const auto keys = open_keys(settings_);
  if (!keys) return keys.error();
  context_->keys->replace(*keys);
  if (auto ok = listen(); !ok) return ok;
  await_signal();
  if (manager_.is_there()) report();
  load();
  main_.run();
  if (trouble_) return *trouble_;
  return {};
}

/// Runs before the slow parts of the start, so that a port in use is reported at once.
result<void> server::listen() {
  std::vector<listener::io_lane> doors;
  for (std::uint32_t i = 0; i < io_threads(settings_); ++i) {
    lane l;
    l.thread = std::make_unique<connection::io_thread>("io" + std::to_string(i));
    l.front = std::make_unique<front_service>(
        loading_context_, i, [thread = l.thread.get()](std::function<void()> work) { thread->post(std::move(work)); });
    doors.push_back({*l.thread, *l.front});
    lanes_.push_back(std::move(l));
  }
  listener_ = std::make_unique<listener::listener>(doors, connection_limits(settings_));
  context_->settings = service_settings(settings_);
  context_->time = &real_clock();
  context_->connections = &listener_->counts();
  context_->logins = &logins_;
  context_->metrics = std::make_shared<request::request_metrics>(static_cast<std::uint32_t>(lanes_.size()));
  *loading_context_ = *context_;
  loading_context_->ready = shared_flag();
  loading_context_->loading = true;
  sockets_ = std::make_unique<open_sockets>(*listener_);
  if (auto ok = sockets_->open(settings_, context_->guarded()); !ok) return ok;
  log::info("listening", {{"version", build_name()},
                          {"address", sockets_->addresses()},
                          {"port", static_cast<std::uint32_t>(sockets_->port())},
                          {"tls_port", static_cast<std::uint32_t>(sockets_->tls_port())},
                          {"authentication", !context_->guarded()                ? "none"
                                             : settings_.server.password.empty() ? "keys"
                                                                                 : "password"}});
  return {};
}

void server::load() {
  loader_ = start_thread("the thread that loads the model", [this] {
    load_order order;
    order.progress = [models = context_->models](std::uint64_t at, std::uint64_t all) {
      const auto percent = static_cast<std::uint32_t>(all == 0 ? 100 : 100 * at / all);
      models->set_loading(request::loaded_models::load{"", percent});
    };
    auto opened = std::make_shared<result<opened_parts>>(open_parts_or_say_why(settings_, order));
    boost::asio::post(main_, [this, opened] { loaded(std::move(*opened)); });
  });
}

void server::loaded(result<opened_parts> opened) {
  loader_.join();
  if (!opened) {
    trouble_ = opened.error();
    return main_.stop();
  }
  start_actors(std::move(*opened));
  auto opened_doors = sockets_->open_admin(settings_);
  if (opened_doors) opened_doors = sockets_->accept_inherited();
  if (!opened_doors) {
    trouble_ = opened_doors.error();
    return main_.stop();
  }
  beat();
  manager_.ready();
  const auto model = context_->models->current();
  log::info("ready", {{"address", sockets_->addresses()},
                      {"port", static_cast<std::uint32_t>(sockets_->port())},
                      {"page", page_address(settings_.server, sockets_->port())},
                      {"model", model->served.names.front()},
                      {"slots", model->devices.sum(&device::device_counters::slots)}});
  if (reload_wanted_) reload();
}

void server::start_persistence(const opened_parts& parts) {
  const bool on_gpu = parts.engine.model.card_usage != nullptr;
  const opened_store& store = parts.store;
  replies_ = std::make_unique<request::reply_router>(
      static_cast<std::uint32_t>(lanes_.size()),
      [this](std::uint32_t i) { lanes_[i].thread->post([this, i] { lanes_[i].hub->dispatch(replies_->take(i)); }); });
  persistence_ = std::make_unique<persistence::persistence_actor>(
      persistence_options(settings_, on_gpu), store.database, store.states, *replies_, real_clock(), unix_time_ms,
      [models = context_->models](persistence::session_uid gone) {  // a device that ends keeps no states
        bool all = true;
        for (const auto& model : models->resident()) all = model->devices.tell(device::forget{gone}) && all;
        return all;
      });
  states_ = std::make_unique<state_carrier>(persistence_->inbox());
  context_->persistence = &persistence_->inbox();
  context_->persistence_counters = &persistence_->counters();
}

void server::start_actors(opened_parts parts) {
  start_persistence(parts);
  router_ = std::make_unique<request::event_router>(
      static_cast<std::uint32_t>(lanes_.size()), events_max, [this](std::uint32_t i) {
        lanes_[i].thread->post([this, i] { router_->give_back(i, lanes_[i].hub->dispatch(router_->take(i))); });
      });
  context_->requests = std::make_shared<request::request_register>(settings_.pause);
  context_->run_long = [this](const auto& whose, std::function<void()> work) {
    return workers_.run(whose, std::move(work));
  };

  known_models_ = parts.store.models;
  keeper_ = std::make_unique<model_keeper>(
      main_, live_, *context_,
      model_keeper::ports{
          {*router_, *states_, [this](const error& why) { boost::asio::post(main_, [this, why] { on_lost(why); }); }},
          *known_models_,
          [this] { tick(); }});
  context_->change_model = [this](request::model_change change, request::model_changed done) {
    keeper_->ask(std::move(change), std::move(done));
  };
  context_->models->set_loading(std::nullopt);
  keeper_->install(std::move(parts.engine));
  context_->ready = true;

  std::uint32_t number = 0;
  for (lane& l : lanes_) {
    l.hub = std::make_unique<request::request_hub>(number++, &persistence_->inbox());
    l.service = std::make_unique<request::api_service>(
        context_, *l.hub, [thread = l.thread.get()](std::function<void()> work) { thread->post(std::move(work)); });
    l.thread->post([front = l.front.get(), service = l.service.get()] { front->open(*service); });
  }
}

void server::beat() {
  heartbeat_.expires_after(heartbeat);
  heartbeat_.async_wait([this](const boost::system::error_code& ec) {
    if (ec) return;
    keeper_->tick();
    states_->repeat();
    tick();
    beat();
  });
}

/// All calls check their timeouts, and those waiting for a model check whether it is ready.
void server::tick() {
  for (auto& l : lanes_) l.thread->post([hub = l.hub.get()] { hub->tick(real_clock().now()); });
}

/// Reports the state of the process to the service manager. This thread feeds the watchdog only while the device makes
/// progress, so the watchdog fires if either of them hangs.
void server::report() {
  const auto load = context_->models->loading();
  if (load || !context_->ready) report_load(load.value_or(request::loaded_models::load{}));
  if (context_->draining) {
    manager_.status("draining");
  } else if (context_->ready) {
    const std::uint32_t all = keeper_->requests(), waiting = keeper_->waiting();
    if (!load)
      manager_.status(std::to_string(all - std::min(all, waiting)) + " running, " + std::to_string(waiting) +
                      " waiting");
  }
  if (context_->ready && request::live(*context_).status == 200) manager_.alive();

  duration time = report_time;
  if (const auto watchdog = manager_.watchdog()) time = std::min<duration>(time, *watchdog / 4);
  report_timer_.expires_after(time);
  report_timer_.async_wait([this](const boost::system::error_code& ec) {
    if (!ec) report();
  });
}

void server::report_load(const request::loaded_models::load& load) {
  const steady_time now = real_clock().now();
  if (load.percent != load_percent_) load_moved_ = now;
  load_percent_ = load.percent;
  manager_.status("loading " + std::to_string(load.percent) + " %");
  if (now - load_moved_ < load_patience) manager_.extend(more_time);
}

void server::await_signal() {
  signals_.async_wait([this](const boost::system::error_code& ec, int number) {
    if (ec) return;
    await_signal();
    on_signal(number);
  });
}

void server::on_signal(int number) {
  log::info("signal", {{"number", number}});
  if (number == SIGHUP) return reload();
  if (!keeper_) return main_.stop();  // no requests yet
  if (++signals_seen_ > 1) return stop_work(0s, hurried_farewell);
  // SIGINT comes from a terminal, where no load balancer needs the grace time.
  begin_drain(number == SIGTERM ? std::chrono::milliseconds(live_->drain.grace_ms) : 0ms);
}

/// Applies live settings from the configuration files. If a file has a fault, nothing changes.
void server::reload() {
  reload_wanted_ = !context_->ready;
  if (reload_wanted_ || context_->draining) return;
  manager_.reloading();
  auto read = read_again();
  if (read) {
    for (const auto& key : read->need_restart) log::warning("this setting needs a restart", {{"key", key}});
    for (const auto& key : read->changed) log::info("setting changed", {{"key", key}});
    take_settings(std::move(read->settings));
    log::info("reloaded", {{"changed", static_cast<std::uint64_t>(read->changed.size())}});
  } else {
    log::error("the configuration has faults; the old one stays", {{"why", read.error().message}});
  }
  manager_.ready();
}

/// Reads settings and keys, or returns the first fault. Applies the keys if everything is valid.
result<config::reloaded> server::read_again() {
  try {
    const auto loaded = read_again_();
    for (const auto& fault : loaded.faults) log::error("configuration", {{"fault", config::to_string(fault)}});
    if (!loaded.faults.empty()) return error{error_kind::bad_config, config::to_string(loaded.faults.front()), ""};
    auto next = config::take_live(*live_, loaded.settings);
    const auto keys = open_keys(next.settings);
    if (!keys) return keys.error();
    if (context_->guarded() && keys->empty() && !config::asks_for_secret(next.settings))
      return error{
          error_kind::bad_config,
          "neither a password nor keys are left; a server can be opened without authentication only by a restart", ""};
    if (auto ok = sockets_->renew_tls(next.settings); !ok) return ok.error();
    context_->keys->replace(*keys);
    return next;
  } catch (const std::exception& trouble) {
    return error{error_kind::internal, trouble.what(), ""};
  }
}

/// Passes the settings to each actor by a message or on its thread; running requests keep theirs.
void server::take_settings(config::config fresh) {
  live_ = std::make_shared<const config::config>(std::move(fresh));
  log::set_minimum(cli::log_options(live_->log).minimum);
  logins_.change(live_->limits);
  listener_->change(connection_limits(*live_));
  persistence_->change(live_->sessions);
  keeper_->change(live_);
  auto context = std::make_shared<request::service_context>(*context_);
  context->settings = service_settings(*live_);
  for (lane& l : lanes_) l.thread->post([service = l.service.get(), context] { service->use(context); });
}

/// A model without a working device is a failure of the process, whatever the kind of the engine's error. If a drain
/// has begun, it ends at once.
void server::on_lost(const error& why) {
  trouble_ = error{error_kind::internal, why.message, {}};
  if (context_->draining) return stop_work(0s, farewell);
  begin_drain(0s);
}

/// Refuses new work. The listeners stay open for `grace`, so that load balancers see the change of /readyz.
void server::begin_drain(duration grace) {
  if (context_->draining.exchange(true)) return;
  log::info("draining", {{"running", keeper_->requests()}});
  manager_.stopping();
  manager_.status("draining");
  keeper_->give_up();
  drain_timer_.expires_after(grace);
  drain_timer_.async_wait([this](const boost::system::error_code& ec) {
    if (!ec) stop_work(std::chrono::milliseconds(live_->drain.timeout_ms), farewell);
  });
}

/// Running requests may continue for `patience`; then the device ends them, and their last bytes have `farewell_time`
/// to be sent. May be repeated; the shortest times apply.
void server::stop_work(duration patience, duration farewell_time) {
  listener_->stop_accepting();
  listener_->close_idle();
  keeper_->shut_down(real_clock().now() + patience);
  farewell_time_ = std::min(farewell_time_, farewell_time);
  device_until_ = std::min(device_until_, real_clock().now() + patience + farewell_time + device_patience);
  await_end();
}

/// Waits here instead of in a destructor, so that further signals are handled.
void server::await_end() {
  drain_timer_.expires_after(drain_poll);
  drain_timer_.async_wait([this](const boost::system::error_code& ec) {
    if (ec) return;
    const steady_time now = real_clock().now();
    if (!keeper_->ended()) return now < device_until_ ? await_end() : leave_behind("the device");
    farewell_until_ = std::min(farewell_until_, now + farewell_time_);
    const bool busy = listener_->counts().open > 0 || !context_->requests->running().empty();
    if (now < farewell_until_ && busy) return await_end();
    await_flush();
  });
}

/// The device has sent its last states and the calls their last turns: now dirty states are written.
void server::await_flush() {
  const steady_time now = real_clock().now();
  const duration usual = std::chrono::milliseconds(live_->drain.flush_ms);
  const duration patience = signals_seen_ > 1 ? std::min<duration>(hurried_flush_time, usual) : usual;
  if (!flush_until_ || *flush_until_ > now + patience) {
    flush_until_ = now + patience;
    if (!persistence_->inbox().push_urgent(persistence::shutdown{*flush_until_})) persistence_->inbox().close();
  }
  if (persistence_->counters().ended) return main_.stop();
  if (now > *flush_until_ + flush_patience) leave_behind("the disk");
  drain_timer_.expires_after(drain_poll);
  drain_timer_.async_wait([this](const boost::system::error_code& ec) {
    if (!ec) await_flush();
  });
}

/// Exits the process: the loader thread can be neither interrupted nor left running while main destroys the objects
/// that it uses.
void server::leave_loader(cli::exit_code code) {
  listener_->stop(real_clock().now());
  log::info("stopped");
  log::stop();
  std::_Exit(static_cast<int>(code));
}

/// Exits the process: a thread hangs in its engine or in a write, and a destructor would wait for it forever.
void server::leave_behind(std::string_view what) {
  log::error("a thread does not end; exiting without it", {{"where", what}, {"device", settings_.engine.device}});
  log::stop();
  std::_Exit(static_cast<int>(cli::exit_code::internal));
}

server::~server() {
  if (listener_) listener_->stop(real_clock().now());
  workers_.stop();
  for (auto& l : lanes_) l.thread->stop();
  // These send messages to each other: device threads end first, then the persistence actor, then the receivers.
  if (keeper_) keeper_->stop();
  // A background response has no connection that could end it; its call returns its session here.
  for (auto& l : lanes_) l.service.reset();
  persistence_.reset();
  // Models are destroyed last: calls that ended above still sent messages to their devices.
  log::info("stopped");
}

}  // namespace

result<void> serve(const config::config& settings, const std::function<config::loaded()>& again) {
  return_large_blocks();
  std::signal(SIGPIPE, SIG_IGN);  // a closed peer is an error code, not the end of the process
  make_room(settings);
  try {
    server s(settings, again);
    auto ended = s.run();
    if (s.loading()) s.leave_loader(ended ? cli::exit_code::ok : cli::exit_code_of(ended.error().kind));
    return ended;
  } catch (const std::exception& trouble) {
    return error_of(trouble);
  }
}

}  // namespace skein::supervisor
