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
#include "actors/request/api_service.hpp"
#include "actors/request/event_router.hpp"
#include "actors/request/health.hpp"
#include "actors/request/reply_router.hpp"
#include "actors/supervisor/allocator.hpp"
#include "actors/supervisor/front_service.hpp"
#include "actors/supervisor/model_keeper.hpp"
#include "actors/supervisor/open_engine.hpp"
#include "actors/supervisor/open_keys.hpp"
#include "actors/supervisor/open_sockets.hpp"
#include "actors/supervisor/open_states.hpp"
#include "actors/supervisor/open_store.hpp"
#include "actors/supervisor/service_manager.hpp"
#include "actors/supervisor/settings.hpp"
#include "actors/supervisor/state_carrier.hpp"
#include "actors/supervisor/worker_pool.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "cli/exit_code.hpp"
#include "cli/load_settings.hpp"
#include "config/reload.hpp"
#include "config/rules.hpp"

namespace skein::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t worker_queue_max = 256;
constexpr std::size_t events_max = 65536;  // of one io thread that is behind
constexpr auto heartbeat = 1s;             // ticks of the request hubs
constexpr auto drain_poll = 10ms;
constexpr auto farewell = 5s;             // for answers that are still in the sockets' buffers
constexpr auto hurried_farewell = 500ms;  // after a second signal
constexpr auto device_patience = 3s;      // for the device's end, beyond patience and farewell of those it serves
constexpr auto flush_time = 10s;          // for states that are not on disk yet
constexpr auto hurried_flush_time = 3s;   // after a second signal
constexpr auto report_time = 1s;          // between two reports to a service manager, or less when it watches closely
constexpr auto more_time = 30s;           // that a load asks for while it makes progress
constexpr auto load_patience = 120s;      // without progress of a load
constexpr auto flush_patience = 2s;       // for a disk that does not answer, beyond that

/// What the loader brings.
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

/// As open_parts, on a thread that nobody catches exceptions of.
result<opened_parts> open_parts_or_say_why(const config::config& settings, const load_order& order) {
  try {
    return open_parts(settings, order);
  } catch (const std::exception& trouble) {
    return error{error_kind::internal, trouble.what(), ""};
  }
}

std::int64_t unix_time_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Where a browser on this machine finds the chat page; empty: nowhere.
std::string page_address(const config::server_settings& c, std::uint16_t port) {
  if (!c.web_page || port == 0) return {};
  const bool everywhere = c.host == "0.0.0.0" || c.host == "::";
  const std::string host = everywhere                              ? "localhost"
                           : c.host.find(':') != std::string::npos ? '[' + c.host + ']'
                                                                   : c.host;
  return "http://" + host + ':' + std::to_string(port) + '/';
}

/// What answers requests on one io thread. Hub and service come when the model is loaded.
struct lane {
  std::unique_ptr<connection::io_thread> thread;
  std::unique_ptr<front_service> front;
  std::unique_ptr<request::request_hub> hub;
  std::unique_ptr<request::api_service> service;
};

/// The actors, in order of life: members below use those above. The io threads and the listener come first and answer
/// while a thread of its own loads the model; the main thread only waits for signals and what that thread brings.
class server {
 public:
  server(const config::config& settings, std::function<config::loaded()> again)
      : settings_(settings),
        read_again_(std::move(again)),
        workers_(worker_queue_max),
        logins_(login_limits(settings)) {}
  ~server();
  server(const server&) = delete;  // one server a process
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

  const config::config& settings_;  // as it was started
  std::shared_ptr<const config::config> live_ = std::make_shared<config::config>(settings_);
  const std::function<config::loaded()> read_again_;
  bool reload_wanted_ = false;  // as soon as the server is ready
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
  std::optional<error> trouble_;  // that ended it: the model cannot be loaded, or the device is lost
  int signals_seen_ = 0;
  duration farewell_time_ = duration::max();
  steady_time farewell_until_ = steady_time::max();
  steady_time device_until_ = steady_time::max();
  std::optional<steady_time> flush_until_;  // once the persistence actor was told to end
};

/// Until a signal or trouble ends it.
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

/// Before anything that takes time: whoever starts the server hears at once that the port is taken.
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
  log::info("listening", {{"address", sockets_->addresses()},
                          {"port", static_cast<std::uint32_t>(sockets_->port())},
                          {"tls_port", static_cast<std::uint32_t>(sockets_->tls_port())},
                          {"authentication", !context_->guarded()                ? "none"
                                             : settings_.server.password.empty() ? "keys"
                                                                                 : "password"}});
  return {};
}

void server::load() {
  loader_ = std::thread([this] {
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
  if (auto ok = sockets_->open_admin(settings_); !ok) {
    trouble_ = ok.error();
    return main_.stop();
  }
  beat();
  manager_.ready();
  const auto model = context_->models->current();
  log::info("ready", {{"address", sockets_->addresses()},
                      {"port", static_cast<std::uint32_t>(sockets_->port())},
                      {"page", page_address(settings_.server, sockets_->port())},
                      {"model", model->served.names.front()},
                      {"slots", model->counters->slots.load()}});
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
      [models = context_->models](persistence::session_uid gone) {  // a device that ends keeps nothing anyway
        bool all = true;
        for (const auto& model : models->resident())
          all = (model->device->push_urgent(device::forget{gone}) || model->device->closed()) && all;
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
  context_->requests = std::make_shared<request::request_register>(pause_limits(settings_));
  context_->run_long = [this](std::function<void()> work) { return workers_.run(std::move(work)); };

  known_models_ = parts.store.models;
  keeper_ = std::make_unique<model_keeper>(
      main_, live_, *context_,
      model_keeper::ports{*router_, *states_, *known_models_,
                          [this](const error& why) { boost::asio::post(main_, [this, why] { on_lost(why); }); },
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

/// All calls look at the clock, and whoever waits for a model at that.
void server::tick() {
  for (auto& l : lanes_) l.thread->post([hub = l.hub.get()] { hub->tick(real_clock().now()); });
}

/// Tells a service manager how the process is. The watchdog is fed by this thread, as long as the device's own progress
/// allows it to be: where one of them hangs, it is not.
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
  if (!keeper_) return main_.stop();  // there is no work yet
  if (++signals_seen_ > 1) return stop_work(0s, hurried_farewell);
  // An interrupt comes from a person at a terminal, who has no load balancer to wait for.
  begin_drain(number == SIGTERM ? std::chrono::milliseconds(live_->drain.grace_ms) : 0ms);
}

/// What may change while the server runs becomes what the files say now. A file that is wrong changes nothing.
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
    log::error("the configuration is wrong; the old one stays", {{"why", read.error().message}});
  }
  manager_.ready();
}

/// Settings and keys, or the first thing that is wrong with them. The keys count when they were read.
result<config::reloaded> server::read_again() {
  try {
    const auto loaded = read_again_();
    for (const auto& fault : loaded.faults) log::error("configuration", {{"fault", config::to_string(fault)}});
    if (!loaded.faults.empty()) return error{error_kind::bad_config, config::to_string(loaded.faults.front()), ""};
    auto next = config::take_live(*live_, loaded.settings);
    const auto keys = open_keys(next.settings);
    if (!keys) return keys.error();
    if (context_->guarded() && keys->empty() && !config::asks_for_secret(next.settings))
      return error{error_kind::bad_config,
                   "the server would be left without a password and without keys; only a restart may open it", ""};
    if (auto ok = sockets_->renew_tls(next.settings); !ok) return ok.error();
    context_->keys->replace(*keys);
    return next;
  } catch (const std::exception& trouble) {
    return error{error_kind::internal, trouble.what(), ""};
  }
}

/// Each actor gets its part by a message or on its thread; requests that run keep what they began with.
void server::take_settings(config::config fresh) {
  live_ = std::make_shared<const config::config>(std::move(fresh));
  log::set_minimum(cli::log_options(live_->log).minimum);
  logins_.change(login_limits(*live_));
  listener_->change(connection_limits(*live_));
  persistence_->change(tenant_limits(*live_));
  keeper_->change(live_);
  auto context = std::make_shared<request::service_context>(*context_);
  context->settings = service_settings(*live_);
  for (lane& l : lanes_) l.thread->post([service = l.service.get(), context] { service->use(context); });
}

/// Whatever the engine calls it: a device that is lost while it serves is a failure of the process, and no answer to
/// its start. A drain that has begun has nothing left to be graceful about.
void server::on_lost(const error& why) {
  trouble_ = error{error_kind::internal, why.message, {}};
  if (context_->draining) return stop_work(0s, farewell);
  begin_drain(0s);
}

/// New work is refused from now on. The listeners stay open for `grace`, so that whoever asks /readyz hears of it.
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

/// Running answers may go on for `patience`; then the device ends them, and their last bytes have `farewell_time` to
/// leave. May be repeated: the shortest times count.
void server::stop_work(duration patience, duration farewell_time) {
  listener_->stop_accepting();
  listener_->close_idle();
  keeper_->shut_down(real_clock().now() + patience);
  farewell_time_ = std::min(farewell_time_, farewell_time);
  device_until_ = std::min(device_until_, real_clock().now() + patience + farewell_time + device_patience);
  await_end();
}

/// All waiting is done here and not in a destructor, so that a further signal is heard.
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

/// The device has sent its last states and the calls their last turns: now what is dirty is written.
void server::await_flush() {
  const steady_time now = real_clock().now();
  const duration patience = signals_seen_ > 1 ? duration(hurried_flush_time) : duration(flush_time);
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

/// Ends the process: the thread that reads the model can be neither interrupted nor left running while main destroys
/// what it uses.
void server::leave_loader(cli::exit_code code) {
  listener_->stop(real_clock().now());
  log::info("stopped");
  log::stop();
  std::_Exit(static_cast<int>(code));
}

/// Ends the process: a thread hangs in its engine or in a write, and a destructor would wait for it forever.
void server::leave_behind(std::string_view what) {
  log::error("a thread does not end; leaving it behind", {{"where", what}, {"device", settings_.engine.device}});
  log::stop();
  std::_Exit(static_cast<int>(cli::exit_code::internal));
}

server::~server() {
  if (listener_) listener_->stop(real_clock().now());
  workers_.stop();
  for (auto& l : lanes_) l.thread->stop();
  // These tell each other things: the devices' threads end first, then the other actor, then what they told goes.
  if (keeper_) keeper_->stop();
  // A response that runs in the background has no connection that ended it; its call gives its session back now.
  for (auto& l : lanes_) l.service.reset();
  persistence_.reset();
  // Only now the models may go: calls that ended above still told their devices so.
  log::info("stopped");
}

}  // namespace

result<void> serve(const config::config& settings, const std::function<config::loaded()>& again) {
  return_large_blocks();
  std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves is an error code, not the end of the process
  make_room(settings);
  server s(settings, again);
  auto ended = s.run();
  if (s.loading()) s.leave_loader(ended ? cli::exit_code::ok : cli::exit_code_of(ended.error().kind));
  return ended;
}

}  // namespace skein::supervisor
