#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "storage/records.hpp"

namespace skein::request {

/// One of the states of a mixture.
struct mixed_state {
  storage::state_buffer values;  ///< null: the zero state
  float weight = 1.0f;
};

/// A state that was trained in place of a prompt, or a mixture of such; a request may begin with it.
struct tuned_state {
  std::string name;
  std::string identity;  ///< of its numbers (model::state_identity): a session remembers with which it began
  storage::state_buffer values;
  std::optional<float> temperature, top_p;  ///< for requests that name none
  std::vector<mixed_state> mixture{};       ///< if not empty, it is these states, and there are no identity and values
  std::string file{};                       ///< as it was named when it was loaded; requests may say it too
};

/// Gives the states of a mixture other weights, in order; those beyond the last weigh nothing. Errors: invalid_argument
/// naming `field` for what is no mixture and for too many weights.
[[nodiscard]] result<void> set_weights(tuned_state& mixture, const std::vector<float>& weights,
                                       const std::string& field);

/// The tuned states of the model. All io threads share it: whoever reads gets a list that never changes, and a change
/// puts another in its place.
class tuned_states {
 public:
  using list = std::vector<tuned_state>;

  [[nodiscard]] std::shared_ptr<const list> all() const;
  /// Adds it; one of the same name is replaced. Each state of a mixture counts. Errors: overloaded above `states_max`.
  [[nodiscard]] result<void> put(tuned_state state, std::size_t states_max);
  /// Puts what `edit` makes of it in the place of the one of that name. Errors: not_found; those of `edit`.
  [[nodiscard]] result<void> change(std::string_view name, const std::function<result<void>(tuned_state&)>& edit);
  /// False when there is none of that name.
  [[nodiscard]] bool remove(std::string_view name);
  void clear();

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const list> states_ = std::make_shared<const list>();
};

/// What a request begins with.
struct chosen_model {
  bool known = false;                ///< `model` names the model, or the model and a state, or is empty
  std::optional<tuned_state> state;  ///< none: the zero state
};

/// The state that a request means by `model` ("<model> <state>", or a state's bare name) or by `state_name`, which
/// counts more and may also be its file. `names` are the model's own. Errors: not_found naming state_name.
[[nodiscard]] result<chosen_model> choose_model(const std::vector<std::string>& names, const tuned_states::list& states,
                                                std::string_view model, std::string_view state_name);

/// The path of a state file that a client names, below `root`: no link and no ".." leads out of it.
/// Errors, without a field: forbidden without a root and for what is not below it; missing_file.
[[nodiscard]] result<std::string> path_below(const std::string& root, const std::string& name);

}  // namespace skein::request
