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

#include "actors/device/device_actor.hpp"
#include "actors/request/tuned_states.hpp"
#include "base/result.hpp"
#include "protocol/generation_request.hpp"
#include "protocol/models_response.hpp"
#include "tokenizer/vocabulary.hpp"

namespace skein::request {

/// Of the card that a model is on.
struct card_memory {
  std::size_t total_bytes = 0, free_bytes = 0;
};

/// A model as requests need it.
struct served_model {
  std::vector<std::string> names;  ///< the id first, then other names that clients may send
  std::string path;                ///< of its file; empty for the fake engine
  std::shared_ptr<const tokenizer::vocabulary> vocabulary;
  protocol::model_preset preset;
  protocol::model_card card;
  std::string fingerprint;                  ///< model, weight type and build, for system_fingerprint
  std::uint32_t vocab = 0;                  ///< rows of the head; every token id is below it
  std::uint32_t prefill_chunk_tokens = 64;  ///< of a tick in which others decode
  std::uint32_t chunk_tokens = 0;           ///< engine_info::chunk_tokens
  /// Reads a state-tuning file for this model; none where there can be none (the fake engine).
  std::function<result<std::vector<float>>(const std::string& path)> load_state;
  std::function<result<card_memory>()> card_usage;  ///< asks the card, which may take a while; none on a CPU
};

/// A model in memory, with the device that runs it. A call that needs one takes a reference at its start and keeps it
/// to its end, so that another model may come meanwhile: who is on the old one finishes there.
struct loaded_model {
  served_model served;
  std::unique_ptr<device::device_actor> actor;  ///< null only in tests
  device::mailbox* device = nullptr;
  const device::device_counters* counters = nullptr;
  tuned_states tuned;                ///< they fit no other model, and go with this one
  std::atomic<bool> cut_off{false};  ///< unloaded by force: what runs ends with an error

  [[nodiscard]] const std::string& id() const { return served.names.front(); }
  /// What a request that leaves things open gets: as the model was loaded, or as the settings say since. Thread safe.
  [[nodiscard]] std::shared_ptr<const protocol::model_preset> preset() const;
  /// What clients set stays.
  void change_preset(protocol::model_preset preset);
  void change_defaults(const protocol::client_defaults& newer);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const protocol::model_preset> preset_;  // null: as it was loaded
};
using model_ref = std::shared_ptr<loaded_model>;

/// The mailbox of a model's device, which lives as long as this does.
[[nodiscard]] inline std::shared_ptr<device::mailbox> door_of(const model_ref& model) { return {model, model->device}; }

/// Which models there are: those in memory, those that come, and those that rest until somebody names them. One of them
/// is current: it answers requests that name none. Thread safe; the supervisor writes, all others read.
class loaded_models {
 public:
  /// Why a model is not in memory.
  enum class absence : std::uint8_t {
    unloaded,   ///< nobody wants it: requests are refused
    available,  ///< it could be loaded: for who may load models, its name is enough
    resting,    ///< nobody used it, or another one needed its room: the next request has it loaded again
    coming,     ///< it is on its way: requests wait
  };
  struct place {
    std::vector<std::string> names;  ///< the id first
    model_ref model;                 ///< null: it is not in memory
    absence why = absence::resting;  ///< then
    protocol::model_card card{};     ///< as it was when it was in memory; else only its id
  };

  /// Null: the current model is not in memory, or there is none.
  [[nodiscard]] model_ref current() const;
  /// Of the current model where that is null.
  [[nodiscard]] absence why_none() const;
  /// The current one first.
  [[nodiscard]] std::vector<place> places() const;
  [[nodiscard]] std::optional<place> place_of(std::string_view id) const;
  /// Of these, models in memory.
  [[nodiscard]] std::vector<model_ref> resident() const;
  /// Whether a request's field `model` may change who answers it.
  [[nodiscard]] bool may_choose() const;

  /// The model that a request means.
  struct meant {
    std::string id;                   ///< empty: there is none at all
    model_ref model;                  ///< null: it is not in memory
    absence why = absence::unloaded;  ///< then
  };
  /// By a name of it, also followed by that of a tuned state, or by a tuned state's bare name; `may_load`: also by an
  /// id that could be loaded. The current one for all other names.
  [[nodiscard]] meant find(std::string_view name, bool may_load) const;

  /// A model that rests or is available comes; true: who calls this is the first, and has to tell the supervisor.
  [[nodiscard]] bool call(const std::string& id);

  /// In place of what had that id.
  void put(place there, bool as_current);
  void put(const model_ref& loaded, bool as_current);
  void forget(std::string_view id);
  void make_current(std::string_view id);

  /// Ids that a load may name; `by_name`: requests may have them loaded.
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

/// What a client wants done with the models; the supervisor does it.
struct model_change {
  enum class task : std::uint8_t { load, unload, wake };
  task what = task::load;
  std::string file;  ///< a path, or an id where `by_id`; to unload: an id, or all where it is empty
  bool by_id = false;
  std::string name;                    ///< the id in the API from now on; empty: the file's name without its ending
  std::string strategy;                ///< see model/strategy.hpp
  protocol::client_defaults defaults;  ///< from now on, until the model is loaded anew
  bool force = false;                  ///< what runs on the old model ends with an error, at once
};
/// Told once, on any thread: the id of the model that is loaded now, or why not; then all is as it was.
using model_changed = std::function<void(const result<std::string>&)>;

[[nodiscard]] inline error cut_off_by_force() {
  return {error_kind::unavailable, "the model was unloaded by force while this request ran", ""};
}

}  // namespace skein::request
