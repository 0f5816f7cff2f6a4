#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/request/devices/model_devices.hpp"
#include "actors/request/shared/tuned_states.hpp"
#include "base/result.hpp"
#include "model/state_value.hpp"
#include "protocol/requests/generation_request.hpp"
#include "protocol/server/models_response.hpp"
#include "tokenizer/vocabulary.hpp"

namespace skein::request {

/// Memory of the GPUs that a model is on.
struct card_memory {
  std::size_t total_bytes = 0, free_bytes = 0;
};

/// A model as requests need it.
struct served_model {
  std::vector<std::string> names;  ///< the id first, then other names that clients may send
  std::string path;                ///< path of its file; empty for the fake engine
  std::shared_ptr<const tokenizer::vocabulary> vocabulary;
  protocol::model_preset preset;
  protocol::model_card card;
  std::string fingerprint;                  ///< model, weight type and build, for system_fingerprint
  std::uint32_t vocab = 0;                  ///< rows of the head; every token id is below it
  std::uint32_t prefill_chunk_tokens = 64;  ///< in a tick with decode rows
  std::uint32_t chunk_tokens = 0;           ///< engine_info::chunk_tokens
  model::state_format state;                ///< of the engine
  bool constrains = true;                   ///< engine_info::constrains
  /// Reads a state-tuning file for this model; null if the engine has none (the fake engine).
  std::function<result<std::vector<float>>(const std::string& path)> load_state;
  std::function<result<card_memory>()> card_usage;  ///< queries the GPUs, which may be slow; null on a CPU
};

/// A model in memory, with the devices that run it. A call takes a reference at its start and keeps it to its end, so
/// that models can be switched meanwhile: calls on the old model finish there.
struct loaded_model {
  served_model served;
  model_devices devices;             ///< at least one
  tuned_states tuned;                ///< they fit only this model and are dropped with it
  std::atomic<bool> cut_off{false};  ///< unloaded by force: running requests end with an error

  [[nodiscard]] const std::string& id() const { return served.names.front(); }
  /// Defaults for fields that a request omits: as of the load, or the latest change. Thread safe.
  [[nodiscard]] std::shared_ptr<const protocol::model_preset> preset() const;
  /// Keeps the defaults that clients have set.
  void change_preset(protocol::model_preset preset);
  void change_defaults(const protocol::client_defaults& newer);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const protocol::model_preset> preset_;  // null: as it was loaded
};
using model_ref = std::shared_ptr<loaded_model>;

/// The mailbox of one of a model's devices. The pointer keeps the model alive.
[[nodiscard]] inline std::shared_ptr<device::mailbox> door_of(const model_ref& model, device_id device) {
  return {model, model->devices[device].inbox};
}

/// All models: in memory, being loaded, or resting until a request names them. The current model answers requests that
/// name none. Thread safe; the supervisor writes, all others read.
class loaded_models {
 public:
  /// Why a model is not in memory.
  enum class absence : std::uint8_t {
    unloaded,   ///< there is no model: requests are refused
    available,  ///< it can be loaded; a caller that may load models only has to name it
    resting,    ///< it was idle, or another model needed its memory: the next request loads it again
    coming,     ///< it is being loaded: requests wait
  };
  struct place {
    std::vector<std::string> names;  ///< the id first
    model_ref model;                 ///< null: it is not in memory
    absence why = absence::resting;  ///< then
    protocol::model_card card{};     ///< from when it was in memory; else only its id
  };

  /// Null: the current model is not in memory, or there is none.
  [[nodiscard]] model_ref current() const;
  /// Why current() is null.
  [[nodiscard]] absence why_none() const;
  /// The current one first.
  [[nodiscard]] std::vector<place> places() const;
  [[nodiscard]] std::optional<place> place_of(std::string_view id) const;
  /// All models in memory.
  [[nodiscard]] std::vector<model_ref> resident() const;
  /// Whether a request's field `model` can change which model answers.
  [[nodiscard]] bool may_choose() const;

  /// The model that a request means.
  struct meant {
    std::string id;                   ///< empty: there is no model at all
    model_ref model;                  ///< null: it is not in memory
    absence why = absence::unloaded;  ///< then
  };
  /// Finds a model by one of its names, which a tuned state's name may follow, or by a tuned state's bare name. With
  /// `may_load`, also by an available id. All other names give the current model.
  [[nodiscard]] meant find(std::string_view name, bool may_load) const;

  /// Marks a resting or available model as being loaded. True: this is the first call, and the caller must tell the
  /// supervisor.
  [[nodiscard]] bool call(const std::string& id);

  /// Replaces the entry with that id.
  void put(place there, bool as_current);
  void put(const model_ref& loaded, bool as_current);
  void forget(std::string_view id);
  void make_current(std::string_view id);

  /// Ids that can be loaded; `by_name`: naming one in a request loads it.
  [[nodiscard]] std::vector<std::string> available() const;
  [[nodiscard]] bool is_available(std::string_view id) const;
  void set_available(std::vector<std::string> ids, bool by_name = false);

  struct load {
    std::string model;
    std::uint32_t percent = 0;
  };
  [[nodiscard]] std::optional<load> loading() const;
  void set_loading(std::optional<load> load);

 private:
  mutable std::mutex mutex_;
  std::vector<place> places_;  // the current one first
  std::vector<std::string> available_;
  bool by_name_ = false;
  std::optional<load> loading_;
};

/// A client's request to load or unload models; the supervisor carries it out.
struct model_change {
  enum class task : std::uint8_t { load, unload, wake };
  task what = task::load;
  std::string file;  ///< a path, or an id if `by_id`; to unload: an id, or empty for all
  bool by_id = false;
  std::string name;                   ///< the new id in the API; empty: the file's name without its extension
  std::vector<std::string> adapters;  ///< paths; empty: as configured for the model that the server started with
  std::optional<double> adapter_scale;
  std::string strategy;                ///< see model/strategy.hpp
  protocol::client_defaults defaults;  ///< until the model is loaded again
  bool force = false;                  ///< requests on the old model end with an error at once
};
/// Called once, on any thread, with the id of the loaded model, or with an error; then nothing has changed.
using model_changed = std::function<void(const result<std::string>&)>;

[[nodiscard]] inline error cut_off_by_force() {
  return {error_kind::unavailable, "the model was unloaded by force while this request ran", ""};
}

}  // namespace skein::request
