#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "actors/request/service_context.hpp"
#include "actors/supervisor/model_catalogue.hpp"
#include "actors/supervisor/open_engine.hpp"
#include "base/clock.hpp"
#include "config/config.hpp"
#include "storage/model_table.hpp"

namespace skein::supervisor {

/// Loads, switches and unloads models while the server runs. It lives on the main thread; a thread of its own reads a
/// model's file, one at a time.
///
/// A new model is loaded beside the old one, which goes on serving until the new one is there: so a load that fails
/// costs nothing, and nobody waits. From then on new requests get the new one. Whoever is on the old one, queued or
/// running, holds it and finishes there; when nobody holds it any more its device ends, which gives its memory back. By
/// force its device ends at once, and they get an error.
///
/// Where two models do not fit (model.switch = "replace") the old one goes first, and the load begins when its memory
/// is back. New requests wait meanwhile, as they do while a model that rested is loaded again. When the load fails, the
/// old model is brought back.
class model_keeper {
 public:
  /// What a device speaks with; all of it outlives the keeper.
  struct ports {
    device::event_sink& events;
    device::state_sink& states;
    storage::model_table& known;
    std::function<void(const error&)> on_lost;  ///< called on a device thread
    std::function<void()> changed;              ///< whoever waits for a model is to look again
  };
  model_keeper(boost::asio::io_context& main, std::shared_ptr<const config::config> settings,
               request::service_context& context, ports reach);
  ~model_keeper();
  model_keeper(const model_keeper&) = delete;  // owns a thread
  model_keeper& operator=(const model_keeper&) = delete;

  /// Puts a model in the place of the one that is loaded.
  void install(opened_engine opened, bool force = false);
  /// Thread safe. `done` is told on the main thread.
  void ask(request::model_change change, request::model_changed done);
  /// Live settings are others: limits of devices, and what models do where requests leave things open.
  void change(std::shared_ptr<const config::config> settings);
  /// About once a second: unloads what nobody uses.
  void tick();

  /// Whether a thread reads a file.
  [[nodiscard]] bool loading() const { return loader_.joinable(); }
  /// Whoever waits for a load hears that the server ends.
  void give_up();
  /// All devices end until then; may be repeated.
  void shut_down(steady_time deadline);
  [[nodiscard]] bool ended() const;
  [[nodiscard]] std::uint32_t requests() const;
  /// Ends all devices now and waits for their threads.
  void stop();

 private:
  struct retired {
    request::model_ref model;
    bool told = false;  // its device, to end
  };
  struct remains {
    std::string identity;
    std::shared_ptr<const request::tuned_states::list> states;
  };

  void change(request::model_change change, request::model_changed done);
  void unload(bool force);
  void wake(request::model_changed done);
  void load(request::model_change change, request::model_changed done);
  [[nodiscard]] bool memory_comes() const;
  void begin_load();
  void nothing_comes();
  void remember(const request::loaded_model& model);
  [[nodiscard]] result<config::config> settings_of(const request::model_change& change) const;
  void loaded(result<opened_engine> opened);
  void end_load(const result<std::string>& outcome);
  void replace(request::model_ref next, bool force);
  void cut_off(retired& old);
  void watch();
  void look_after_retired();
  void each_device(const std::function<void(request::loaded_model&)>& visit) const;

  boost::asio::io_context& main_;
  std::shared_ptr<const config::config> settings_;
  request::service_context& context_;
  request::loaded_models& models_;
  const ports ports_;
  const model_catalogue catalogue_;
  const bool replaces_;
  std::vector<retired> retired_;
  boost::asio::steady_timer watch_timer_;
  bool watching_ = false;
  steady_time used_at_{};                           // the current model, as far as tick() saw
  std::optional<request::model_change> last_load_;  // of the current model, or of the one that rests
  std::optional<request::model_change> running_;    // the load that runs, or waits for memory
  request::model_changed waiting_;                  // for it
  std::optional<remains> remains_;                  // of a model that may come back
  std::thread loader_;
};

}  // namespace skein::supervisor
