#include "actors/supervisor/supervisor.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/connection/io_thread.hpp"
#include "actors/device/device_actor.hpp"
#include "actors/listener/listener.hpp"
#include "actors/request/api_service.hpp"
#include "actors/request/event_router.hpp"
#include "actors/supervisor/descriptor_limit.hpp"
#include "actors/supervisor/open_engine.hpp"
#include "actors/supervisor/settings.hpp"
#include "actors/supervisor/worker_pool.hpp"
#include "base/log.hpp"
#include "cli/version.hpp"

namespace skein::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t worker_queue_max = 256;
constexpr std::size_t events_max = 65536;  // of one io thread that is behind
constexpr auto heartbeat = 1s;             // ticks of the request hubs
constexpr auto drain_poll = 10ms;
constexpr auto connections_end = 5s;  // for answers that are still in the sockets' buffers

/// What answers requests on one io thread.
struct lane {
  std::unique_ptr<connection::io_thread> thread;
  std::unique_ptr<request::request_hub> hub;
  std::unique_ptr<request::api_service> service;
};

/// The actors, in order of life: members below use those above.
class server {
 public:
  explicit server(const config::config& settings) : settings_(settings), workers_(worker_queue_max) {}
  ~server();
  server(const server&) = delete;  // one server a process
  server& operator=(const server&) = delete;

  result<void> start();
  result<void> run();

 private:
  result<void> listen();
  void await_signal();
  void on_signal(int number);
  void begin_drain(duration grace);
  void stop_work(duration patience);
  void await_device();
  void beat();

  const config::config& settings_;
  boost::asio::io_context main_{1};
  boost::asio::signal_set signals_{main_};  // filled when listening begins: until then a signal simply ends the process
  boost::asio::steady_timer heartbeat_{main_};
  boost::asio::steady_timer drain_timer_{main_};
  worker_pool workers_;
  std::shared_ptr<request::service_context> context_ = std::make_shared<request::service_context>();
  std::unique_ptr<request::event_router> router_;
  std::vector<lane> lanes_;
  std::unique_ptr<device::device_actor> device_;
  std::unique_ptr<listener::listener> listener_;
  std::optional<error> lost_;
  int signals_seen_ = 0;
};

result<void> server::start() {
  auto opened = open_engine(settings_);
  if (!opened) return opened.error();

  const std::uint32_t count = io_threads(settings_);
  router_ = std::make_unique<request::event_router>(count, events_max, [this](std::uint32_t i) {
    lanes_[i].thread->post([this, i] { lanes_[i].hub->dispatch(router_->take(i)); });
  });
  context_->settings = service_settings(settings_, cli::version_line());
  context_->model = std::move(opened->model);
  context_->time = &real_clock();
  context_->run_long = [this](std::function<void()> work) { return workers_.run(std::move(work)); };

  device_ = std::make_unique<device::device_actor>(std::move(opened->engine), device_options(settings_), *router_,
                                                   real_clock(), [this](const error& why) {
                                                     boost::asio::post(main_, [this, why] {
                                                       lost_ = why;
                                                       begin_drain(0s);
                                                     });
                                                   });
  context_->device = &device_->inbox();
  context_->device_counters = &device_->counters();

  for (std::uint32_t i = 0; i < count; ++i) {
    lane l;
    l.thread = std::make_unique<connection::io_thread>("io" + std::to_string(i));
    l.hub = std::make_unique<request::request_hub>(i, device_->inbox());
    l.service = std::make_unique<request::api_service>(
        context_, *l.hub, [thread = l.thread.get()](std::function<void()> work) { thread->post(std::move(work)); });
    lanes_.push_back(std::move(l));
  }
  return listen();
}

result<void> server::listen() {
  std::vector<listener::io_lane> lanes;
  for (auto& l : lanes_) lanes.push_back({*l.thread, *l.service});
  listener_ = std::make_unique<listener::listener>(lanes, connection_limits(settings_));
  context_->connections = &listener_->counts();
  if (!settings_.server.unix_socket.empty())
    if (auto ok = listener_->listen_unix(settings_.server.unix_socket); !ok) return ok.error();
  auto port = listener_->listen_tcp(settings_.server.host, static_cast<std::uint16_t>(settings_.server.port));
  if (!port) return port.error();
  signals_.add(SIGTERM);
  signals_.add(SIGINT);
  context_->ready = true;
  log::info("listening", {{"address", settings_.server.host},
                          {"port", static_cast<std::uint32_t>(*port)},
                          {"model", context_->model.names.front()},
                          {"slots", device_->info().slots},
                          {"authentication", settings_.server.password.empty() ? "none" : "password"}});
  return {};
}

result<void> server::run() {
  await_signal();
  beat();
  main_.run();
  if (lost_) return *lost_;
  return {};
}

void server::beat() {
  heartbeat_.expires_after(heartbeat);
  heartbeat_.async_wait([this](const boost::system::error_code& ec) {
    if (ec) return;
    for (auto& l : lanes_) l.thread->post([hub = l.hub.get()] { hub->tick(real_clock().now()); });
    beat();
  });
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
  if (++signals_seen_ > 1) return stop_work(0s);
  // An interrupt comes from a person at a terminal, who has no load balancer to wait for.
  begin_drain(number == SIGTERM ? std::chrono::milliseconds(settings_.drain.grace_ms) : 0ms);
}

/// New work is refused from now on. The listeners stay open for `grace`, so that whoever asks /readyz hears of it.
void server::begin_drain(duration grace) {
  if (context_->draining.exchange(true)) return;
  log::info("draining", {{"running", device_->counters().requests.load()}});
  drain_timer_.expires_after(grace);
  drain_timer_.async_wait([this](const boost::system::error_code& ec) {
    if (!ec) stop_work(std::chrono::milliseconds(settings_.drain.timeout_ms));
  });
}

/// Running answers may go on for `patience`; then the device ends them.
void server::stop_work(duration patience) {
  listener_->stop_accepting();
  listener_->close_idle();
  if (!device_->inbox().push_urgent(device::shutdown{real_clock().now() + patience})) device_->inbox().close();
  await_device();
}

void server::await_device() {
  drain_timer_.expires_after(drain_poll);
  drain_timer_.async_wait([this](const boost::system::error_code& ec) {
    if (ec) return;
    if (!device_->counters().ended) return await_device();
    main_.stop();
  });
}

server::~server() {
  if (listener_) listener_->stop(real_clock().now() + connections_end);
  workers_.stop();
  for (auto& l : lanes_) l.thread->stop();
  // Only now the device actor may go: calls that ended above still told it so.
  log::info("stopped");
}

}  // namespace

result<void> serve(const config::config& settings) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves is an error code, not the end of the process
  allow_connections(settings.limits.connections_max);
  server s(settings);
  if (auto ok = s.start(); !ok) return ok;
  return s.run();
}

}  // namespace skein::supervisor
