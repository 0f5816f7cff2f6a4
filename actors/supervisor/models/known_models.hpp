#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/request/shared/loaded_models.hpp"
#include "base/clock.hpp"

namespace skein::supervisor {

/// The models that are in memory or resting: how to load each again, its last use, and the tuned states that it had
/// when it left memory. Its entries are a part of `shown`, the list that requests read. Runs on the main thread.
class known_models {
 public:
  /// Both outlive this.
  known_models(request::loaded_models& shown, const clock& time) : shown_(shown), time_(time) {}

  /// It is in memory from now on.
  void add(const std::string& id, const request::model_change& how) { known_[id] = {how, time_.now(), {}, nullptr}; }
  [[nodiscard]] bool contains(const std::string& id) const { return known_.contains(id); }
  /// How to load it again; it must be known.
  [[nodiscard]] const request::model_change& how(const std::string& id) const { return known_.at(id).how; }
  /// The tuned states of a model that left memory; null: none, or its weights have changed since.
  [[nodiscard]] std::shared_ptr<const request::tuned_states::list> states_of(const std::string& id,
                                                                             std::string_view identity) const;
  /// Keeps what a model that leaves memory needs when it is loaded again.
  void remember(const request::loaded_model& model);
  void forget(const std::string& id) { known_.erase(id); }
  /// Forgets all other models, also those that can only be waited for.
  void keep_only(const std::string& id);
  /// Forgets the least recently used resting models above `resting_max`, except those for which `is_needed`.
  void forget_resting(std::uint32_t resting_max, const std::function<bool(const std::string& id)>& is_needed);

  /// Usage of a model in memory.
  struct use {
    request::model_ref model;
    bool idle = false;  ///< no requests at present
    steady_time at{};   ///< time of the last use
  };
  /// A held reference counts as use, so the caller must not hold one.
  [[nodiscard]] std::vector<use> uses();
  /// The model in memory; null: it is not.
  [[nodiscard]] request::model_ref resident(std::string_view id) const;
  /// Prefers idle models. Null: there is no other model, or, with `idle_only`, all others are in use.
  [[nodiscard]] request::model_ref least_used(std::string_view but, bool idle_only);

 private:
  struct known_model {
    request::model_change how;
    steady_time used_at{};  // as of the last call of uses()
    std::string identity;   // as remembered
    std::shared_ptr<const request::tuned_states::list> states;
  };

  request::loaded_models& shown_;
  const clock& time_;
  std::map<std::string, known_model> known_;  // by id
};

}  // namespace skein::supervisor
