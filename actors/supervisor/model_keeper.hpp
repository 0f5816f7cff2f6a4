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
/// model.resident_max models are in memory; one more makes the one go that nobody used for the longest time, at best
/// one that nobody uses. It is loaded beside the one that has to go, which serves until the new one is there: so a load
/// that fails costs nothing, and nobody waits. From then on new requests get the new one. Whoever is on the old one,
/// queued or running, holds it and finishes there; when nobody holds it any more its device ends, which gives its
/// memory back. By force its device ends at once, and they get an error.
///
/// Where one too many does not fit (model.switch = "replace") the old one goes first, and the load begins when its
/// memory is back. New requests wait meanwhile, as they do while a model that rested is loaded again. When the load
/// fails, the old model is brought back.
///
/// Where several may be in memory, the one that went rests: a request that names it has it loaded again. Where only one
/// may, it is forgotten, since names would then fight for the one place.
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

  /// The first model.
  void install(opened_engine opened);
  /// Thread safe. `done` is told on the main thread.
  void ask(request::model_change change, request::model_changed done);
  /// Live settings are others: limits of devices, and what models do where requests leave things open.
  void change(std::shared_ptr<const config::config> settings);
  /// About once a second: models that nobody uses rest, and devices hear of limits that their mailbox had no room for.
  void tick();

  /// Whether a thread reads a file.
  [[nodiscard]] bool loading() const { return loader_.joinable(); }
  /// Whoever waits for a load hears that the server ends.
  void give_up();
  /// All devices end until then; may be repeated.
  void shut_down(steady_time deadline);
  [[nodiscard]] bool ended() const;
  [[nodiscard]] std::uint32_t requests() const;
  [[nodiscard]] std::uint32_t waiting() const;
  /// Ends all devices now and waits for their threads.
  void stop();

 private:
  struct retired {
    request::model_ref model;
    bool told = false;  // its device, to end
  };
  /// A model that is in memory or rests.
  struct known_model {
    request::model_change how;  // it is loaded again
    steady_time used_at{};      // as far as anybody looked
    std::string identity;       // with the tuned states that it had, when it left memory
    std::shared_ptr<const request::tuned_states::list> states;
  };
  /// The load that runs, or waits for memory.
  struct running_load {
    request::model_change change;
    std::string name;
    std::string displaced;  // the model that went first; empty: none
    bool displaced_current = false;
  };

  /// How a model in memory is used.
  struct use {
    request::model_ref model;
    bool idle = false;  // right now
    steady_time at{};   // the last time
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
  void each_device(const std::function<void(request::loaded_model&)>& visit) const;

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
  bool limits_untold_ = false;  // to some device
  std::optional<running_load> running_;
  request::model_changed waiting_;  // for it
  std::deque<std::string> called_;  // models that requests wait for, to be loaded one after another
  std::thread loader_;
};

}  // namespace skein::supervisor
