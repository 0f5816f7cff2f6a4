#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "actors/request/shared/service_context.hpp"
#include "actors/supervisor/models/model_catalogue.hpp"
#include "actors/supervisor/models/open_engine.hpp"
#include "base/clock.hpp"
#include "config/config.hpp"
#include "storage/states/model_table.hpp"

namespace skein::supervisor {

/// Loads, switches and unloads models while the server runs. It runs on the main thread; a separate thread reads model
/// files, one at a time.
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
    device::event_sink& events;
    device::state_sink& states;
    storage::model_table& known;
    std::function<void(const error&)> on_lost;  ///< a model lost its last device; called on a device thread
    std::function<void()> changed;              ///< requests that wait for a model should check again
  };
  model_keeper(boost::asio::io_context& main, std::shared_ptr<const config::config> settings,
               request::service_context& context, ports reach);
  ~model_keeper();
  model_keeper(const model_keeper&) = delete;  // owns a thread
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
  [[nodiscard]] bool loading() const { return loader_.joinable(); }
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
  struct retired {
    request::model_ref model;
    bool told = false;  // the device was told to end
  };
  /// A model that is in memory or resting.
  struct known_model {
    request::model_change how;  // how to load it again
    steady_time used_at{};      // as of the last call of uses()
    std::string identity;       // identity and tuned states at the time it left memory
    std::shared_ptr<const request::tuned_states::list> states;
  };
  /// The current load, running or waiting for memory.
  struct running_load {
    request::model_change change;
    std::string name;
    std::string displaced;  // the model that was unloaded first; empty: none
    bool displaced_current = false;
  };

  /// Usage of a model in memory.
  struct use {
    request::model_ref model;
    bool idle = false;  // no requests at present
    steady_time at{};   // time of the last use
  };

  void change(request::model_change change, request::model_changed done);
  [[nodiscard]] result<std::string> unload(const std::string& id, bool force);
  void wake(const std::string& id);
  void load(request::model_change change, request::model_changed done);
  [[nodiscard]] bool memory_comes() const;
  void begin_load();
  void tell_limits();
  [[nodiscard]] result<config::config> settings_of(const request::model_change& change) const;
  void loaded(result<opened_engine> opened);
  void end_load(const result<std::string>& outcome);
  void nothing_came(const running_load& load);
  void install(opened_engine opened, const request::model_change& how);
  void displace_for(const std::string& name);
  void forget_resting();
  void keep_only(const std::string& id);

  [[nodiscard]] std::uint32_t resident_max() const { return settings_->model.resident_max; }
  [[nodiscard]] request::model_ref resident(std::string_view id) const;
  [[nodiscard]] std::vector<use> uses();
  [[nodiscard]] request::model_ref least_used(std::string_view but, bool idle_only);
  void send_away(const request::model_ref& model, bool force);
  void remember(const request::loaded_model& model);
  void rest(const request::loaded_model& model);
  void retire(request::model_ref old, bool force);
  void cut_off(retired& old);
  void watch();
  void look_after_retired();
  void each_model(const std::function<void(const request::loaded_model&)>& visit) const;

  boost::asio::io_context& main_;
  std::shared_ptr<const config::config> settings_;
  request::service_context& context_;
  request::loaded_models& models_;
  const ports ports_;
  const model_catalogue catalogue_;
  const bool replaces_;
  std::map<std::string, known_model> known_;  // by id
  std::vector<retired> retired_;
  boost::asio::steady_timer watch_timer_;
  bool watching_ = false;
  bool limits_untold_ = false;  // some device has not received its limits
  std::optional<running_load> running_;
  request::model_changed waiting_;  // the caller that waits for running_
  std::deque<std::string> called_;  // models that requests wait for, loaded one after another
  std::thread loader_;
};

}  // namespace skein::supervisor
