#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "storage/records/records.hpp"

namespace skein::request {

/// One of the states of a mixture.
struct mixed_state {
  storage::state_buffer values;  ///< null: the zero state
  float weight = 1.0f;
};

/// A state that was trained in place of a prompt, or a mixture of such states; a request may begin with it.
struct tuned_state {
  std::string name;
  std::string identity;  ///< of its values (model::state_identity): a session remembers the state with which it began
  storage::state_buffer values;
  std::optional<float> temperature, top_p;  ///< defaults for requests that name none
  std::vector<mixed_state> mixture{};       ///< if not empty, these states replace identity and values
  std::string file{};                       ///< name of the file as it was loaded; requests may use it too
};

/// Sets the weights of a mixture's states, in order; states beyond the last weight get 0. Errors: invalid_argument
/// naming `field` if it is no mixture, or for too many weights.
[[nodiscard]] result<void> set_weights(tuned_state& mixture, const std::vector<float>& weights,
                                       const std::string& field);

/// The tuned states of the model. Shared by all io threads: a reader gets an immutable list, and a change replaces the
/// list.
class tuned_states {
 public:
  using list = std::vector<tuned_state>;

  [[nodiscard]] std::shared_ptr<const list> all() const;
  /// Adds a state, or replaces the one with the same name. Each state of a mixture counts. Errors: overloaded above
  /// `states_max`.
  [[nodiscard]] result<void> put(tuned_state state, std::size_t states_max);
  /// Replaces the state with that name by an edited copy. Errors: not_found; those of `edit`.
  [[nodiscard]] result<void> change(std::string_view name, const std::function<result<void>(tuned_state&)>& edit);
  /// False if there is none with that name.
  [[nodiscard]] bool remove(std::string_view name);
  void clear();

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const list> states_ = std::make_shared<const list>();
};

/// The initial state of a request.
struct chosen_model {
  bool known = false;                ///< `model` names the model, or the model and a state, or is empty
  std::optional<tuned_state> state;  ///< none: the zero state
};

/// The state that a request selects by `model` ("<model> <state>", or a state's bare name) or by `state_name`, which
/// has priority and may also be its file. `names` are the names of the model. Errors: not_found naming state_name.
[[nodiscard]] result<chosen_model> choose_model(const std::vector<std::string>& names, const tuned_states::list& states,
                                                std::string_view model, std::string_view state_name);

/// The path of a state file that a client names, below `root`: no link and no ".." leads out of it.
/// Errors, without a field: forbidden if `root` is empty or the file is not below it; missing_file.
[[nodiscard]] result<std::string> path_below(const std::string& root, const std::string& name);

}  // namespace skein::request
