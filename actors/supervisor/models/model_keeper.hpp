#pragma once
#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/request/shared/service_context.hpp"
#include "actors/supervisor/models/known_models.hpp"
#include "actors/supervisor/models/model_catalogue.hpp"
#include "actors/supervisor/models/model_loader.hpp"
#include "actors/supervisor/models/open_engine.hpp"
#include "actors/supervisor/models/retired_models.hpp"
#include "actors/supervisor/models/start_model.hpp"
#include "base/clock.hpp"
#include "config/config.hpp"
#include "storage/states/model_table.hpp"

namespace skein::supervisor {

/// Decides which models are in memory: loads, switches and unloads them while the server runs. It runs on the main
/// thread; a separate thread reads model files, one at a time.
///
/// At most model.resident_max models are in memory. One more displaces the least recently used one, preferably one that
/// is idle. It is loaded while the displaced model still serves, so a failed load costs nothing and requests do not
/// wait. Once it is ready, new requests use the new model. Requests on the old one, queued or running, hold a reference
/// and finish there; after the last one its device ends and its memory is freed. With `force` its device ends at once,
/// and they get an error.
///
/// With model.switch = "replace", for devices without memory for one more model, the old model is unloaded first, and
/// the load begins when its memory is free. New requests wait meanwhile, as they do while a resting model is loaded
/// again. If the load fails, the old model is loaded again.
///
/// If several models may be in memory, a displaced one rests: a request that names it loads it again. If only one may,
/// it is dropped, since requests for different models would otherwise displace each other.
class model_keeper {
 public:
  /// The environment of devices; everything must outlive the keeper.
  struct ports {
    device_environment devices;
    storage::model_table& known;
    std::function<void()> changed;  ///< requests that wait for a model should check again
  };
  model_keeper(boost::asio::io_context& main, std::shared_ptr<const config::config> settings,
               request::service_context& context, ports reach);
  model_keeper(const model_keeper&) = delete;  // its parts refer to each other
  model_keeper& operator=(const model_keeper&) = delete;

  /// Installs the first model.
  void install(opened_engine opened);
  /// Thread safe. `done` is called on the main thread.
  void ask(request::model_change change, request::model_changed done);
  /// Applies new live settings: limits of devices, and the defaults of models.
  void change(std::shared_ptr<const config::config> settings);
  /// Called about once a second: unloads idle models, and sends limits to devices whose mailbox was full.
  void tick();

  /// Whether the loader thread runs.
  [[nodiscard]] bool loading() const { return loader_.busy(); }
  /// Tells the caller that waits for a load that the server is shutting down.
  void give_up();
  /// Tells all devices to end by the deadline. May be repeated.
  void shut_down(steady_time deadline);
  [[nodiscard]] bool ended() const;
  [[nodiscard]] std::uint32_t requests() const;
  [[nodiscard]] std::uint32_t waiting() const;
  /// Ends all devices now and waits for their threads.
  void stop();

 private:
  /// The current load, running or waiting for memory.
  struct running_load {
    request::model_change change;
    std::string name;
    std::string displaced;  // the model that was unloaded first; empty: none
    bool displaced_current = false;
  };

  void change(request::model_change change, request::model_changed done);
  [[nodiscard]] result<std::string> unload(const std::string& id, bool force);
  void wake(const std::string& id);
  void load(request::model_change change, request::model_changed done);
  [[nodiscard]] bool memory_comes() const;
  void begin_load();
  void tell_limits();
  void loaded(result<opened_engine> opened);
  void end_load(const result<std::string>& outcome);
  void nothing_came(const running_load& load);
  void install(opened_engine opened, const request::model_change& how);
  void displace_for(const std::string& name);
  void send_away(const request::model_ref& model, bool force);
  void rest(const request::loaded_model& model);
  void each_model(const std::function<void(const request::loaded_model&)>& visit) const;
  [[nodiscard]] std::uint32_t resident_max() const { return settings_->model.resident_max; }

  boost::asio::io_context& main_;
  std::shared_ptr<const config::config> settings_;
  request::service_context& context_;
  request::loaded_models& models_;
  const ports ports_;
  const model_catalogue catalogue_;
  const bool replaces_;
  known_models known_;
  retired_models retired_;
  bool limits_untold_ = false;  // some device has not received its limits
  std::optional<running_load> running_;
  request::model_changed waiting_;  // the caller that waits for running_
  std::deque<std::string> called_;  // models that requests wait for, loaded one after another
  model_loader loader_;
};

}  // namespace skein::supervisor
