#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/device/device_actor.hpp"
#include "actors/request/tuned_states.hpp"
#include "base/result.hpp"
#include "protocol/generation_request.hpp"
#include "protocol/models_response.hpp"
#include "tokenizer/vocabulary.hpp"

namespace skein::request {

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
  /// Reads a state-tuning file for this model; none where there can be none (the fake engine).
  std::function<result<std::vector<float>>(const std::string& path)> load_state;
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

  /// What a request that leaves things open gets: as the model was loaded, or as the settings say since. Thread safe.
  [[nodiscard]] std::shared_ptr<const protocol::model_preset> preset() const;
  void change_preset(protocol::model_preset preset);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const protocol::model_preset> preset_;  // null: as it was loaded
};
using model_ref = std::shared_ptr<loaded_model>;

/// The mailbox of a model's device, which lives as long as this does.
[[nodiscard]] inline std::shared_ptr<device::mailbox> door_of(const model_ref& model) { return {model, model->device}; }

/// Which model new requests get, what else could be loaded, and how far a load is. Thread safe; the supervisor writes,
/// all others read.
class loaded_models {
 public:
  struct load {
    std::string model;
    std::uint32_t percent = 0;
  };

  /// Null: none is loaded.
  [[nodiscard]] model_ref current() const;
  void show(model_ref model);

  /// Ids that a load may name.
  [[nodiscard]] std::vector<std::string> available() const;
  void set_available(std::vector<std::string> ids);

  [[nodiscard]] std::optional<load> loading() const;
  void set_loading(std::optional<load> load);

  /// Why there is no current model.
  enum class absence : std::uint8_t {
    unloaded,  ///< somebody wanted it so: requests are refused
    resting,   ///< nobody used it: the next request has it loaded again
    coming,    ///< it is on its way: requests wait
  };
  std::atomic<absence> why_none{absence::unloaded};

 private:
  mutable std::mutex mutex_;
  model_ref current_;
  std::vector<std::string> available_;
  std::optional<load> loading_;
};

/// What a client wants done with the models; the supervisor does it.
struct model_change {
  enum class task : std::uint8_t { load, unload, wake };
  task what = task::load;
  std::string file;  ///< a path, or an id where `by_id`
  bool by_id = false;
  std::string name;      ///< the id in the API from now on; empty: the file's name without its ending
  std::string strategy;  ///< see model/strategy.hpp
  std::optional<float> temperature, top_p;  ///< defaults from now on
  std::optional<std::string> end_text;      ///< in place of the preset's stop strings
  bool force = false;                       ///< what runs on the old model ends with an error, at once
};
/// Told once, on any thread: the id of the model that is loaded now, or why not; then all is as it was.
using model_changed = std::function<void(const result<std::string>&)>;

[[nodiscard]] inline error cut_off_by_force() {
  return {error_kind::unavailable, "the model was unloaded by force while this request ran", ""};
}

}  // namespace skein::request
